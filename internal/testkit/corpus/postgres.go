// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// ForPostgreSQL returns the file in PostgreSQL's dialect: names in double quotes, numbered
// parameters, TIMESTAMP instead of DATETIME, and SMALLINT instead of BOOLEAN, because booleans are
// written as 0 and 1. It omits statements that only MySQL accepts. It keeps statements with
// functions that PostgreSQL does not know.
func (f File) ForPostgreSQL() File {
	to := File{Name: f.Name, Tables: append([]Table(nil), f.Tables...)}
	for i := range to.Tables {
		to.Tables[i].Create = strings.NewReplacer("DATETIME", "TIMESTAMP", "BOOLEAN", "SMALLINT", "DOUBLE", "DOUBLE PRECISION", "BLOB", "BYTEA", "`", `"`).Replace(f.Tables[i].Create)
	}
	for _, s := range f.Statements {
		if s.For(SQLite) {
			s.Text = Numbered(s.Text)
			to.Statements = append(to.Statements, s)
		}
	}
	return to
}

// Numbered returns a text of MySQL or SQLite with numbers instead of its question marks.
func Numbered(text string) string {
	var out strings.Builder
	params := 0
	scanner := sqltext.NewScanner(text, sqltext.SQLite)
	for token, ok := scanner.Next(); ok; token, ok = scanner.Next() {
		switch token.Kind {
		case sqltext.Param:
			params++
			out.WriteString("$" + strconv.Itoa(params))
		case sqltext.QuotedIdent:
			out.WriteString(strings.ReplaceAll(token.Text(text), "`", `"`))
		default:
			out.WriteString(token.Text(text))
		}
	}
	return out.String()
}
