package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/sqltext"
)

// definition is what the text of SQLite's CREATE TABLE says about columns, which
// nothing else tells. Names are in lower case.
type definition struct {
	collated map[string]bool // columns whose texts are compared by other than their bytes
	numbered map[string]bool // columns with AUTOINCREMENT
	columns  map[string]bool
}

// readDefinition reads the definition of a table; of one that does not exist, or
// that is no common table, it knows no columns.
func readDefinition(ctx context.Context, on gorm.ConnPool, table string) (definition, error) {
	var text sql.NullString
	row := queryRow(ctx, on, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", []any{table})
	if err := row.Scan(&text); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return definition{}, err
	}
	return parseDefinition(text.String), nil
}

func parseDefinition(text string) definition {
	d := definition{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	var tokens []sqltext.Token
	scanner := sqltext.NewScanner(text, sqltext.SQLite)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		tokens = append(tokens, t)
	}
	for open, t := range tokens {
		if !t.Is(text, "(") {
			continue
		}
		if end := closing(text, tokens, open); end > 0 {
			for _, column := range split(text, tokens[open+1:end]) {
				d.add(text, column)
			}
		}
		break
	}
	return d
}

// add reads one column.
func (d *definition) add(text string, tokens []sqltext.Token) {
	if len(tokens) == 0 || !isName(tokens[0]) {
		return
	}
	name := strings.ToLower(sqltext.Ident(text, tokens[0]))
	d.columns[name] = true
	for i, t := range tokens {
		switch {
		case t.Is(text, "AUTOINCREMENT"):
			d.numbered[name] = true
		case t.Is(text, "COLLATE") && i+1 < len(tokens):
			d.collated[name] = !strings.EqualFold(sqltext.Ident(text, tokens[i+1]), "BINARY")
		}
	}
}
