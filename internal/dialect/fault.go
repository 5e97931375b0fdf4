// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"strings"
)

// Fault is what keeps a database from doing what it was told until somebody
// changes something: the same statement fails again.
type Fault int

// The faults that are told apart; what is none of them may be gone later, as an
// outage is.
const (
	NoFault    Fault = iota
	NoTable          // the table does not exist, or the schema it should be in
	NoColumn         // the table lacks a column
	NoRight          // the user lacks a right
	ReadOnly         // the file may not be written
	NoLogin          // the server refuses user or password
	NoDatabase       // the database does not exist, or is no database, or none is selected
	OutOfRange       // a number does not fit its column
	Unprepared       // a prepared statement is not on the connection, or another one is
)

// Advised adds to an error of an Unprepared what to do, and returns others as they are.
// It may help to ask again, as a pool can have lost its connections.
func Advised(err error) error {
	if FaultOf(err) != Unprepared {
		return err
	}
	return fmt.Errorf("%w; a pooler between here and the server, PgBouncer in transaction mode say, does not keep prepared statements: open the database with default_query_exec_mode=exec (pgx), or let PgBouncer 1.21 or newer keep them (max_prepared_statements)", err)
}

// FaultOf returns what is wrong, by what servers and drivers say. It goes by
// codes in the text, as instrumented drivers hide the error's type, and so need
// not be told which database it was.
func FaultOf(err error) Fault {
	if err == nil {
		return NoFault
	}
	for _, of := range []func(error) Fault{mysqlFault, postgresFault, sqliteFault} {
		if f := of(err); f != NoFault {
			return f
		}
	}
	return NoFault
}

// wordAfter returns the letters and digits that follow mark in text.
func wordAfter(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') })
	if end < 0 {
		return rest
	}
	return rest[:end]
}

// IsDuplicate reports whether MySQL, MariaDB or PostgreSQL says that a unique key has the
// value already.
func IsDuplicate(err error) bool {
	return err != nil && (SQLState(err) == "23505" || strings.Contains(err.Error(), "Error 1062"))
}
