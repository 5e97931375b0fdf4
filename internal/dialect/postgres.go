package dialect

import (
	"strconv"
	"strings"
)

// Postgres is the dialect of PostgreSQL 12 and newer.
type Postgres struct{}

var _ Dialect = Postgres{}

// Name returns "postgres".
func (Postgres) Name() string { return "postgres" }

// Quote quotes with double quotes. A quoted name keeps its capitals, which
// PostgreSQL folds to small letters otherwise.
func (Postgres) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Placeholder returns "$1" for the first argument.
func (Postgres) Placeholder(n int) string { return "$" + strconv.Itoa(n) }
