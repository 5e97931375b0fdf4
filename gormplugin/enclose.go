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
		stmt, s := stepOf(b)
		if where, plain := c.Expression.(clause.Where); s != nil && plain {
			if n := parameters(where.Exprs); n > 1 {
				stmt.Vars = slices.Grow(stmt.Vars, n)
				stmt.SQL.Grow(2 * n)
			}
			if !s.allSimple(where.Exprs) {
				c.Expression = clause.Where{Exprs: s.enclose(where.Exprs, false)}
			}
			s.enclosed = true
		}
		build(next, c, b)
	}
}

// parameters returns about how many values the conditions have: room that gorm
// would make for them bit by bit.
func parameters(exprs []clause.Expression) (n int) {
	for _, e := range exprs {
		switch c := e.(type) {
		case clause.Expr:
			n += len(c.Vars)
			for _, v := range c.Vars {
				if list, ok := v.([]int64); ok {
					n += len(list)
				}
			}
		case clause.IN:
			n += len(c.Values)
		case clause.AndConditions:
			n += parameters(c.Exprs)
		default:
			n++
		}
	}
	return n
}

// enclose returns the conditions with those in parentheses that gorm does not
// write as simple comparisons; behind a NOT, as a single one. It leaves the
// tree's shape, by which gorm joins conditions, as it is.
func (s *step) enclose(exprs []clause.Expression, negated bool) []clause.Expression {
	list := make([]clause.Expression, len(exprs))
	for i, e := range exprs {
		switch c := e.(type) {
		case clause.AndConditions:
			list[i] = clause.AndConditions{Exprs: s.enclose(c.Exprs, negated)}
		case clause.OrConditions:
			list[i] = clause.OrConditions{Exprs: s.enclose(c.Exprs, negated)}
		case clause.NotConditions:
			list[i] = clause.NotConditions{Exprs: s.enclose(c.Exprs, true)}
		case clause.Where:
			list[i] = enclosed{clause.Where{Exprs: s.enclose(c.Exprs, false)}, s}
		case clause.Expr:
			if list[i] = e; negated || !s.isSimple(c) {
				list[i] = enclosed{e, s}
			}
		default:
			if list[i] = e; !s.simple(e) {
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

// simple reports whether e needs no parentheses: gorm writes it as a comparison of
// a quoted column with bound values, or it is a text of simple comparisons.
func (s *step) simple(e clause.Expression) bool {
	switch c := e.(type) {
	case clause.Expr:
		return s.isSimple(c)
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

// isSimple reports whether a raw condition is one that parentheses do not change,
// with the values that gorm puts in.
func (s *step) isSimple(c clause.Expr) bool {
	return !c.WithoutParentheses && s.routing.texts.of(c.SQL).simple && !slices.ContainsFunc(c.Vars, func(v any) bool { return !isPlainValue(v) })
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
