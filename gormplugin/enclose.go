package gormplugin

import (
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// errUnbalanced: a raw condition cannot be put between parentheses.
var errUnbalanced = errors.New("a raw condition has a comment, a semicolon, an open literal or parentheses that do not match")

// whereBuilder writes the WHERE clause of routed statements with every raw
// condition in parentheses of its own. gorm leaves some of them bare, and a
// `||` or an OR after a line break would then reach rows that the other
// conditions exclude, on a shard that was chosen by these conditions.
func whereBuilder(next clause.ClauseBuilder) clause.ClauseBuilder {
	return func(c clause.Clause, b clause.Builder) {
		if stmt, ok := b.(*gorm.Statement); ok {
			s, routed := stmt.ConnPool.(*step)
			where, plain := c.Expression.(clause.Where)
			if routed && plain {
				if !s.allSimple(where.Exprs) {
					c.Expression = clause.Where{Exprs: s.enclose(where.Exprs)}
				}
				s.enclosed = true
			}
		}
		if next != nil {
			next(c, b)
			return
		}
		c.Build(b)
	}
}

// enclose returns the conditions with those in parentheses that gorm does not
// write as one simple comparison. It leaves the tree's shape, by which gorm
// joins conditions, as it is.
func (s *step) enclose(exprs []clause.Expression) []clause.Expression {
	list := make([]clause.Expression, len(exprs))
	for i, e := range exprs {
		switch c := e.(type) {
		case clause.AndConditions:
			list[i] = clause.AndConditions{Exprs: s.enclose(c.Exprs)}
		case clause.OrConditions:
			list[i] = clause.OrConditions{Exprs: s.enclose(c.Exprs)}
		case clause.NotConditions:
			list[i] = clause.NotConditions{Exprs: s.enclose(c.Exprs)}
		default:
			list[i] = e
			if !s.simple(e) {
				list[i] = enclosed{e, s}
			}
		}
	}
	return list
}

// allSimple reports whether enclose would change nothing.
func (s *step) allSimple(exprs []clause.Expression) bool {
	for _, e := range exprs {
		switch c := e.(type) {
		case clause.AndConditions:
			if !s.allSimple(c.Exprs) {
				return false
			}
		case clause.OrConditions:
			if !s.allSimple(c.Exprs) {
				return false
			}
		default:
			if !s.simple(e) {
				return false
			}
		}
	}
	return true
}

// simple reports whether gorm writes e as one comparison, so that it needs no
// parentheses: of a quoted column with bound values, or a text that has no
// operator on conditions in it.
func (s *step) simple(e clause.Expression) bool {
	switch c := e.(type) {
	case clause.Expr:
		return s.isComparison(c)
	case clause.Eq:
		return simplePair(c)
	case clause.Neq:
		return simplePair(clause.Eq(c))
	case clause.Gt:
		return simplePair(clause.Eq(c))
	case clause.Gte:
		return simplePair(clause.Eq(c))
	case clause.Lt:
		return simplePair(clause.Eq(c))
	case clause.Lte:
		return simplePair(clause.Eq(c))
	case clause.Like:
		return simplePair(clause.Eq(c))
	case clause.IN:
		return simpleColumn(c.Column) && allBound(c.Values)
	}
	return false
}

// isComparison reports whether a raw condition is [table.]column, an operator,
// and a parameter or a number, or a list of these, and nothing else.
func (s *step) isComparison(c clause.Expr) bool {
	if c.WithoutParentheses || strings.ContainsAny(c.SQL, "\\\"'`") {
		return false
	}
	w := glance{sql: c.SQL, scanner: sqltext.NewScanner(c.SQL, s.routing.guard.readings[0])}
	w.next()
	if !w.name() {
		return false
	}
	return w.operation() && w.ended && !slices.ContainsFunc(c.Vars, func(v any) bool { return !isPlainValue(v) })
}

// glance walks over the tokens of a short text.
type glance struct {
	sql     string
	scanner sqltext.Scanner
	token   sqltext.Token
	ended   bool
}

func (g *glance) next() {
	var ok bool
	g.token, ok = g.scanner.Next()
	for ok && g.token.Kind == sqltext.Space {
		g.token, ok = g.scanner.Next()
	}
	g.ended = !ok
}

// take steps over a keyword or an operator.
func (g *glance) take(word string) bool {
	if g.ended || !g.token.Is(g.sql, word) {
		return false
	}
	g.next()
	return true
}

// name steps over [table.]column.
func (g *glance) name() bool {
	for range 2 {
		if g.ended || g.token.Kind != sqltext.Word || sqltext.Reserved(g.token.Text(g.sql)) {
			return false
		}
		g.next()
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
	if g.ended || g.token.Kind != sqltext.Param && g.token.Kind != sqltext.Number {
		return false
	}
	g.next()
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

// isPlainValue reports whether gorm writes v as parameters and nothing else.
func isPlainValue(v any) bool {
	if v == nil || bound(v) {
		return true
	}
	switch v := v.(type) {
	case []int64, []int, []string, []uint64, []uint, []int32, []uint32:
		return true
	case []any:
		return allBound(v)
	}
	return false
}

func simplePair(c clause.Eq) bool {
	if !simpleColumn(c.Column) {
		return false
	}
	if list, ok := listed(c.Value); ok {
		return allBound(list)
	}
	return c.Value == nil || bound(c.Value)
}

func allBound(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { return v != nil && !bound(v) })
}

func simpleColumn(column any) bool {
	switch c := column.(type) {
	case string:
		return true
	case clause.Column:
		return !c.Raw
	}
	return false
}

// enclosed is a condition in parentheses.
type enclosed struct {
	clause.Expression
	step *step
}

// Build writes the condition and checks that it stays within its parentheses,
// however the server reads it.
func (e enclosed) Build(b clause.Builder) {
	stmt := b.(*gorm.Statement)
	_ = stmt.WriteByte('(')
	start := stmt.SQL.Len()
	e.Expression.Build(b)
	text := stmt.SQL.String()[start:]
	_ = stmt.WriteByte(')')
	for _, f := range e.step.routing.guard.readingsOf(text) {
		if !sqltext.Balanced(text, f) {
			_ = stmt.AddError(e.step.refuse(sharding.ErrRawTable, errUnbalanced.Error()))
			return
		}
	}
}
