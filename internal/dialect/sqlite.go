// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// SQLite is the dialect of SQLite 3.35 and newer, which has RETURNING.
type SQLite struct{}

var _ Dialect = SQLite{}

// Name returns "sqlite".
func (SQLite) Name() string { return "sqlite" }

// Quote quotes with double quotes, as in the SQL standard.
func (SQLite) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Placeholder returns "?".
func (SQLite) Placeholder(int) string { return "?" }

// sqliteFaults match the text, because drivers show the same code for several of them.
var sqliteFaults = []struct {
	text string
	Fault
}{
	{"no such table", NoTable},
	{"no such column", NoColumn}, {"has no column named", NoColumn},
	{"attempt to write a readonly database", ReadOnly},
	{"unable to open database file", NoDatabase}, {"file is not a database", NoDatabase},
}

func sqliteFault(err error) Fault {
	for _, f := range sqliteFaults {
		if strings.Contains(err.Error(), f.text) {
			return f.Fault
		}
	}
	return NoFault
}
