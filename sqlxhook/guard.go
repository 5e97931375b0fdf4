package sqlxhook

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// guard refuses SQL that names a sharded table where a table is meant: no
// physical table has that name, and nothing says which one to take.
func (h *Hook) guard(query string, f family) error {
	for _, flavor := range f.guardReadings() {
		if table := h.shardedName(query, flavor); table != "" {
			return &sharding.RouteError{
				Op: "statement", Table: table, Err: sharding.ErrRawTable,
				Hint: "use the database and the physical table that Hook.For or GroupBy return",
			}
		}
	}
	return nil
}

// Words behind which tables are named, and words that end such a list.
var (
	opensTables = words("FROM JOIN STRAIGHT_JOIN UPDATE INTO INSERT REPLACE DELETE TABLE TABLES TRUNCATE USING COPY")
	shutsTables = words("WHERE SET VALUES VALUE SELECT ON GROUP ORDER HAVING LIMIT RETURNING WINDOW UNION EXCEPT INTERSECT")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// shardedName returns a sharded table's logical name that stands in table
// position. It errs on the side of finding one; only an explicit alias
// ("orders_3 AS orders") is let through.
func (h *Hook) shardedName(query string, flavor sqltext.Flavor) string {
	var p position
	s := sqltext.NewScanner(query, flavor)
	for t, ok := s.NextCode(); ok; t, ok = s.NextCode() {
		if p.isTable(query, t) && !qualifies(query, s) {
			if table, sharded := h.router.Table(unquote(query, t)); sharded {
				return table.Name
			}
		}
		p.advance(query, t)
	}
	return ""
}

// position follows a statement and knows where tables are named.
type position struct {
	tables   bool   // a table may be named here
	into     bool   // and a parenthesis would open a column list
	outer    []bool // tables, outside each open parenthesis
	previous string // word, in upper case
	dotted   bool   // a dot stands before
}

// isTable reports whether t would name a table here. SQLite takes a string for
// a name where it expects one, and with ANSI_QUOTES so does MySQL. The keyword
// in ORDER BY is no table called order.
func (p *position) isTable(query string, t sqltext.Token) bool {
	switch t.Kind {
	case sqltext.Word:
		return p.tables && p.previous != "AS" && (p.dotted || !sqltext.Reserved(t.Text(query)))
	case sqltext.QuotedIdent, sqltext.String:
		return p.tables && p.previous != "AS"
	}
	return false
}

func (p *position) advance(query string, t sqltext.Token) {
	word := ""
	if t.Kind == sqltext.Word {
		word = strings.ToUpper(t.Text(query))
	}
	switch {
	case word == "UPDATE" && p.previous == "KEY": // ON DUPLICATE KEY UPDATE column = …
		p.tables = false
	case opensTables[word]:
		p.tables, p.into = true, word == "INTO" || word == "INSERT" || word == "REPLACE"
	case shutsTables[word]:
		p.tables = false
	case t.Is(query, "("):
		p.tables = p.tables && !p.into
		p.outer = append(p.outer, p.tables)
	case t.Is(query, ")") && len(p.outer) > 0:
		p.tables, p.outer = p.outer[len(p.outer)-1], p.outer[:len(p.outer)-1]
	}
	p.previous, p.dotted = word, t.Is(query, ".")
}

// qualifies reports whether the name before s is followed by a dot, and so is
// the schema or the table of another name.
func qualifies(query string, s sqltext.Scanner) bool {
	next, ok := s.NextCode()
	return ok && next.Is(query, ".")
}

// unquote returns the name that a token stands for in table position, which may
// be a string.
func unquote(query string, t sqltext.Token) string {
	name := sqltext.Ident(query, t)
	if t.Kind == sqltext.String {
		name = strings.Trim(name, `'"`)
	}
	return name
}
