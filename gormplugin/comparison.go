package gormplugin

import "github.com/shardid/shardid/internal/sqltext"

// isSimple reports whether tokens are [table.]column, an operator, and a parameter
// or a number, or a list of these, and nothing else.
func isSimple(sql string, tokens []sqltext.Token) bool {
	g := glance{sql, tokens}
	return g.name() && g.operation() && len(g.rest) == 0
}

// glance walks over the tokens of a comparison.
type glance struct {
	sql  string
	rest []sqltext.Token
}

// is reports whether the next token is of one of these kinds.
func (g *glance) is(kinds ...sqltext.Kind) bool {
	for _, kind := range kinds {
		if len(g.rest) > 0 && g.rest[0].Kind == kind {
			return true
		}
	}
	return false
}

// take steps over a keyword or an operator.
func (g *glance) take(word string) bool {
	if len(g.rest) == 0 || !g.rest[0].Is(g.sql, word) {
		return false
	}
	g.rest = g.rest[1:]
	return true
}

// name steps over [table.]column.
func (g *glance) name() bool {
	for range 2 {
		if !g.is(sqltext.Word) || sqltext.Reserved(g.rest[0].Text(g.sql)) {
			return false
		}
		g.rest = g.rest[1:]
		if !g.take(".") {
			return true
		}
	}
	return false
}

// operation steps over an operator and what stands on its right.
func (g *glance) operation() bool {
	if g.take("IN") {
		return g.list()
	}
	if g.take("LIKE") {
		return g.operand()
	}
	if !g.take("=") {
		first := g.take("<") || g.take(">")
		if !first {
			return false
		}
		_ = g.take("=") || g.take(">")
	}
	return g.operand()
}

func (g *glance) operand() bool {
	if !g.is(sqltext.Param, sqltext.Number) {
		return false
	}
	g.rest = g.rest[1:]
	return true
}

func (g *glance) list() bool {
	if !g.take("(") {
		return g.operand()
	}
	for g.operand() {
		if !g.take(",") {
			return g.take(")")
		}
	}
	return false
}
