package gormplugin

import (
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// isRemark reports whether what a clause has beside its own expression is nothing
// but comments, those to the optimizer among them: they change no row.
func isRemark(stmt *gorm.Statement, e clause.Expression) bool {
	if e == nil {
		return true
	}
	written := &gorm.Statement{DB: stmt.DB, Context: stmt.Context, Schema: stmt.Schema, Table: stmt.Table}
	e.Build(written)
	return len(written.Vars) == 0 && isComments(written.SQL.String())
}

// isComments reports whether a text is of closed comments that no server runs as
// code, and that do not set a variable, such as a limit of rows, for the statement.
func isComments(text string) bool {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		body, begins := strings.CutPrefix(text, "/*")
		if !begins || strings.HasPrefix(body, "!") || strings.HasPrefix(body, "M!") || containsFold(body, "set_var") {
			return false
		}
		var ends bool
		if _, text, ends = strings.Cut(body, "*/"); !ends {
			return false
		}
	}
	return true
}
