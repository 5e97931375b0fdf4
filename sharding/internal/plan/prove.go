package plan

import (
	"reflect"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
)

// prove gives each sharded reference what the conditions prove of it, and what is
// proved of references whose rows lie in the same slots as its own.
func (b *builder) prove() {
	own := map[*reference]proof{}
	for _, r := range b.refs {
		if r.role == sharded {
			own[r] = b.proved(r)
		}
	}
	for r := range own {
		var all allOf
		for _, near := range b.neighbours(r) {
			if own[near] != nil {
				all = append(all, own[near])
			}
		}
		switch len(all) {
		case 0:
		case 1:
			r.proof = all[0]
		default:
			r.proof = all
		}
	}
}

// proved returns what the conditions prove of one reference, or nil.
func (b *builder) proved(r *reference) proof {
	p := prover{of: b.sources(r)}
	all := allOf(r.given)
	for _, f := range b.facts {
		p.scope, p.holds = f.scope, f.holds
		if one := p.expression(f.expr); one != nil {
			all = append(all, one)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// neighbours returns r and the references in whose slots its rows lie, as a column
// that leads to slots equals one of theirs by the same rule: an order's items by the
// order's id, which carries the slot of the order's user.
func (b *builder) neighbours(r *reference) []*reference {
	all := []*reference{r}
	for i := 0; i < len(all); i++ {
		for _, e := range b.edges {
			if e.to.of != all[i] || slices.Contains(all, e.from.of) {
				continue
			}
			from, to := e.from.of.lead(e.from.name), e.to.of.lead(e.to.name)
			if from != nil && to != nil && from.always && to.always && reflect.DeepEqual(from.rule, to.rule) {
				all = append(all, e.from.of)
			}
		}
	}
	return all
}

// sources returns the columns that have the value of a lead of r wherever a row of
// r has a part in the result, the leads themselves included.
func (b *builder) sources(r *reference) map[column]*lead {
	all := map[column]*lead{}
	for _, l := range r.leads {
		next := []column{{r, l.column}}
		for len(next) > 0 {
			c := next[0]
			next = next[1:]
			if _, known := all[c]; known {
				continue
			}
			all[c] = l
			for _, e := range b.edges {
				if e.to == c {
					next = append(next, e.from)
				}
			}
		}
	}
	return all
}

// prover makes the proof for one reference out of one condition.
type prover struct {
	of    map[column]*lead
	scope *scope
	holds []*reference
}

// expression returns nil for a condition that proves nothing.
func (p *prover) expression(e sqlparse.Expr) proof {
	o, ok := bare(e).(*sqlparse.Operation)
	switch {
	case !ok || o.Not:
	case o.Op == sqlparse.And, o.Op == sqlparse.Or:
		return p.junction(o)
	case o.Op >= sqlparse.Equal && o.Op <= sqlparse.GreaterEqual:
		return p.compare(o)
	case o.Op == sqlparse.In:
		return p.in(o)
	case o.Op == sqlparse.Between:
		low, first := constant(o.Operands[1])
		high, second := constant(o.Operands[2])
		if l := p.lead(o.Operands[0]); l != nil && l.order && first && second {
			return &within{lead: l, low: &low, high: &high}
		}
	}
	return nil
}

// junction is conditions with AND or OR between them.
func (p *prover) junction(e *sqlparse.Operation) proof {
	var all []proof
	for _, operand := range e.Operands {
		proved := p.expression(operand)
		if proved != nil {
			all = append(all, proved)
		} else if e.Op != sqlparse.And {
			return nil
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case e.Op == sqlparse.And:
		return allOf(all)
	}
	return anyOf(all)
}

// lead returns the lead whose values an expression has, or nil.
func (p *prover) lead(e sqlparse.Expr) *lead {
	c, ok := p.scope.column(e)
	if !ok || !slices.Contains(p.holds, c.of) {
		return nil
	}
	return p.of[c]
}

func (p *prover) compare(e *sqlparse.Operation) proof {
	left, right, op := bare(e.Operands[0]), bare(e.Operands[1]), e.Op
	if tuple := sqlparse.As(left, sqlparse.Tuple); tuple != nil {
		return p.tuples(tuple, op, right)
	}
	l := p.lead(left)
	if l == nil {
		if l = p.lead(right); l == nil {
			return nil
		}
		right, op = left, mirrored(op)
	}
	v, ok := constant(right)
	switch {
	case !ok:
		return nil
	case op == sqlparse.Equal:
		return &equals{l, []operand{v}}
	case l.order && (op == sqlparse.Less || op == sqlparse.LessEqual):
		return &within{lead: l, high: &v, below: op == sqlparse.Less}
	case l.order && (op == sqlparse.Greater || op == sqlparse.GreaterEqual):
		return &within{lead: l, low: &v}
	}
	return nil
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op sqlparse.Operator) sqlparse.Operator {
	switch op {
	case sqlparse.Less:
		return sqlparse.Greater
	case sqlparse.LessEqual:
		return sqlparse.GreaterEqual
	case sqlparse.Greater:
		return sqlparse.Less
	case sqlparse.GreaterEqual:
		return sqlparse.LessEqual
	}
	return op
}

// tuples is (a, b) = (1, 2).
func (p *prover) tuples(left *sqlparse.Operation, op sqlparse.Operator, other sqlparse.Expr) proof {
	right := sqlparse.As(other, sqlparse.Tuple)
	if right == nil || op != sqlparse.Equal || len(right.Operands) != len(left.Operands) {
		return nil
	}
	var all allOf
	for i, item := range left.Operands {
		l := p.lead(item)
		if v, ok := constant(right.Operands[i]); ok && l != nil {
			all = append(all, &equals{l, []operand{v}})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// in is x IN (1, 2) and (a, x) IN ((1, 2), (3, 4)).
func (p *prover) in(e *sqlparse.Operation) proof {
	x, values := bare(e.Operands[0]), e.Operands[1:]
	tuple := sqlparse.As(x, sqlparse.Tuple)
	if tuple == nil {
		return p.oneOf(x, values, func(item sqlparse.Expr) sqlparse.Expr { return item })
	}
	var all allOf
	for i, item := range tuple.Operands {
		one := p.oneOf(item, values, func(row sqlparse.Expr) sqlparse.Expr {
			if row := sqlparse.As(bare(row), sqlparse.Tuple); row != nil && i < len(row.Operands) {
				return row.Operands[i]
			}
			return nil
		})
		if one != nil {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// oneOf is a column that has one of the values that pick returns of a list.
func (p *prover) oneOf(x sqlparse.Expr, list []sqlparse.Expr, pick func(sqlparse.Expr) sqlparse.Expr) proof {
	l := p.lead(x)
	if l == nil || len(list) == 0 {
		return nil
	}
	values := make([]operand, len(list))
	for i, item := range list {
		v, ok := constant(pick(item))
		if !ok {
			return nil
		}
		values[i] = v
	}
	return &equals{l, values}
}

// outerJoin is a LEFT or RIGHT JOIN, which makes rows of NULLs of the absent ones.
type outerJoin struct {
	join            *sqlparse.Join
	present, absent []*reference
}

// tighten takes those outer joins from a place on for inner ones of which a condition, which
// all rows satisfy, leaves no row that was made of NULLs.
func (b *builder) tighten(condition sqlparse.Expr, s *scope, from int) {
	all := conjuncts(condition)
	for i := len(s.outers) - 1; i >= from; i-- {
		j := s.outers[i]
		if !slices.ContainsFunc(all, func(e sqlparse.Expr) bool { return s.rejects(e, j.absent) }) {
			continue
		}
		s.outers = slices.Delete(s.outers, i, i+1)
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

// isAll reports whether an operand is ALL (query), with which everything compares as true
// where the query has no rows.
func isAll(e sqlparse.Expr) bool {
	call, ok := bare(e).(*sqlparse.Call)
	return ok && nameOf(call) == "all"
}

// rejects reports whether a condition is never true of a row in which the columns of
// these references are NULL.
func (s *scope) rejects(e sqlparse.Expr, absent []*reference) bool {
	null := func(e sqlparse.Expr) bool {
		c, ok := s.column(e)
		return ok && slices.Contains(absent, c.of)
	}
	o, ok := bare(e).(*sqlparse.Operation)
	switch {
	case !ok:
	case o.Op >= sqlparse.Equal && o.Op <= sqlparse.GreaterEqual:
		left, right := o.Operands[0], o.Operands[1]
		return null(left) && !isAll(right) || null(right) && !isAll(left)
	case o.Op == sqlparse.In, o.Op == sqlparse.Between, o.Op == sqlparse.Like:
		return !o.Not && null(o.Operands[0])
	case o.Op == sqlparse.IsNull:
		return o.Not && null(o.Operands[0])
	case o.Op == sqlparse.Or:
		return !slices.ContainsFunc(o.Operands, func(e sqlparse.Expr) bool { return !s.rejects(e, absent) })
	}
	return false
}
