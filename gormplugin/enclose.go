package gormplugin

import (
	"errors"
	"slices"

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
				c.Expression = clause.Where{Exprs: s.enclose(where.Exprs)}
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
			if !simple(e) {
				list[i] = enclosed{e, s}
			}
		}
	}
	return list
}

// simple reports whether gorm writes e as a comparison of a quoted column with
// bound values.
func simple(e clause.Expression) bool {
	switch c := e.(type) {
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
