package dialect

import "strings"

// SQLite is the dialect of SQLite 3.35 and newer, which has RETURNING.
type SQLite struct{}

var _ Dialect = SQLite{}

// Name returns "sqlite".
func (SQLite) Name() string { return "sqlite" }

// Quote quotes with double quotes, as the SQL standard does.
func (SQLite) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Placeholder returns "?".
func (SQLite) Placeholder(int) string { return "?" }
