package plan

import (
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
)

// outerJoin is a LEFT or RIGHT JOIN, which makes rows of NULLs of the absent ones.
type outerJoin struct {
	join            *sqlparse.Join
	present, absent []*reference
}

// tighten takes outer joins for inner ones of which the condition of every row of the
// result leaves no row that was made of NULLs.
func (b *builder) tighten(where sqlparse.Expr, s *scope) {
	all := conjuncts(where)
	for _, j := range slices.Backward(s.outers) {
		if !slices.ContainsFunc(all, func(e sqlparse.Expr) bool { return s.rejects(e, j.absent) }) {
			continue
		}
		for _, r := range j.absent {
			r.nullable--
		}
		b.using(j.join, j.absent, j.present, true)
		if j.join.On == nil {
			continue
		}
		for _, e := range conjuncts(j.join.On) {
			b.facts = append(b.facts, fact{e, s, j.present})
			b.equation(e, s, j.present)
			all = append(all, e)
		}
	}
}

// rejects reports whether a condition is never true of a row in which the columns of
// these references are NULL.
func (s *scope) rejects(e sqlparse.Expr, absent []*reference) bool {
	null := func(e sqlparse.Expr) bool {
		c, ok := s.column(e)
		return ok && slices.Contains(absent, c.of)
	}
	switch e := bare(e).(type) {
	case *sqlparse.Compare:
		return e.Op != sqlparse.NullSafeEqual && (null(e.Left) || null(e.Right))
	case *sqlparse.In:
		return !e.Not && null(e.X)
	case *sqlparse.Between:
		return !e.Not && null(e.X)
	case *sqlparse.Like:
		return !e.Not && null(e.Operands[0])
	case *sqlparse.IsNull:
		return e.Not && null(e.X)
	case *sqlparse.Operation:
		return e.Op == sqlparse.Or && !slices.ContainsFunc(e.Operands, func(e sqlparse.Expr) bool { return !s.rejects(e, absent) })
	}
	return false
}
