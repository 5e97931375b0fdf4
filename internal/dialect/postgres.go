// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
)

// Postgres is the dialect of PostgreSQL 12 and newer.
type Postgres struct{}

var _ Dialect = Postgres{}

// Name returns "postgres".
func (Postgres) Name() string { return "postgres" }

// Quote quotes with double quotes. A quoted name keeps its capitals, which PostgreSQL otherwise
// converts to lower case.
func (Postgres) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Placeholder returns "$1" for the first argument.
func (Postgres) Placeholder(n int) string { return "$" + strconv.Itoa(n) }

// ReadAs is an expression of PostgreSQL: the encoding in which the driver reads texts, or NULL if it is that of the database.
const ReadAs = "NULLIF(pg_client_encoding()::text, getdatabaseencoding()::text)"

// KeepsOrder is an expression of PostgreSQL that is true if the bytes of texts that the driver reads have the order of those in the
// database. The server converts none from or to SQL_ASCII, and the bytes of UTF8 and LATIN1 have the order of the code points.
const KeepsOrder = "(" + ReadAs + " IS NULL OR 'SQL_ASCII' IN (getdatabaseencoding()::text, pg_client_encoding()::text)" +
	" OR getdatabaseencoding()::text || pg_client_encoding()::text IN ('UTF8LATIN1', 'LATIN1UTF8'))"

// postgresFaults maps SQLSTATEs.
var postgresFaults = map[string]Fault{
	"42P01": NoTable, "3F000": NoTable, "42703": NoColumn,
	"42501": NoRight,
	"28000": NoLogin, "28P01": NoLogin,
	"3D000": NoDatabase,
	"22003": OutOfRange,
	"26000": Unprepared, "42P05": Unprepared, "08P01": Unprepared,
}

// SQLState returns the SQLSTATE of an error of PostgreSQL's drivers, or "".
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// state returns the SQLSTATE also of drivers that report it only in the text.
func state(err error) string { return cmp.Or(SQLState(err), wordAfter(err, "SQLSTATE ")) }
