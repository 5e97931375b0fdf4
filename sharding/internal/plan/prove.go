// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// prove sets the proof of each sharded reference: the proof of its own conditions, and the proofs
// of the references whose rows have the same slots.
func (b *builder) prove() {
	own := map[*reference]proof{}
	for _, r := range b.refs {
		if r.role == sharded {
			own[r] = b.proved(r)
		}
	}
	for r := range own {
		var all []proof
		for _, near := range b.neighbours(r) {
			all = append(all, own[near])
		}
		r.proof = together(all)
	}
}

// proved returns the proof of the conditions on one reference, or nil.
func (k *knowledge) proved(r *reference) proof {
	p := prover{of: k.sources(r)}
	all := slices.Clone(r.given)
	for _, f := range k.facts {
		p.scope, p.holds = f.scope, f.holds
		all = append(all, p.expression(f.expr))
	}
	return together(all)
}

// together returns the proof of several conditions that all hold; some may be nil.
func together(all []proof) proof {
	all = slices.DeleteFunc(all, func(p proof) bool { return p == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return allOf(all)
}

// neighbours returns r and the references in whose slots its rows are, because a column that leads
// to slots equals one of theirs by the same rule: for example, an order's items by the order's id,
// which carries the slot of the order's user.
func (k *knowledge) neighbours(r *reference) []*reference {
	all := []*reference{r}
	for i := 0; i < len(all); i++ {
		for _, e := range k.edges {
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

// sources returns the columns that equal a lead of r wherever a row of r contributes to the result,
// the leads included.
func (k *knowledge) sources(r *reference) map[column]*lead {
	all := map[column]*lead{}
	for _, l := range slices.Concat(r.leads, r.indirect) {
		next := []column{{r, l.column}}
		for len(next) > 0 {
			c := next[0]
			next = next[1:]
			if _, known := all[c]; known {
				continue
			}
			all[c] = l
			for _, e := range k.edges {
				if e.to == c {
					next = append(next, e.from)
				}
			}
		}
	}
	return all
}

// prover creates the proof for one reference from one condition.
type prover struct {
	of    map[column]*lead
	scope *scope
	holds []*reference
}

// expression returns nil for a condition that proves nothing.
func (p *prover) expression(e sqlparse.Expr) proof {
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
	if !ok || o.Not {
		return nil
	}
	var all []proof
	switch o.Op {
	case sqlparse.And, sqlparse.Or:
		for _, operand := range o.Operands {
			all = append(all, p.expression(operand))
		}
		if o.Op == sqlparse.Or && slices.Contains(all, nil) {
			return nil
		} else if o.Op == sqlparse.Or {
			return anyOf(all)
		}
	case sqlparse.Equal, sqlparse.In:
		for _, q := range equalities(o) {
			all = append(all, p.equal(q))
		}
	case sqlparse.Less, sqlparse.LessEqual:
		all = []proof{p.within(o.Operands[0], nil, o.Operands[1], o.Op == sqlparse.Less), p.within(o.Operands[1], o.Operands[0], nil, false)}
	case sqlparse.Greater, sqlparse.GreaterEqual:
		all = []proof{p.within(o.Operands[0], o.Operands[1], nil, false), p.within(o.Operands[1], nil, o.Operands[0], o.Op == sqlparse.Greater)}
	case sqlparse.Between:
		all = []proof{p.within(o.Operands[0], o.Operands[1], o.Operands[2], false)}
	}
	return together(all)
}

// lead returns the lead whose values an expression has, or nil.
func (p *prover) lead(e sqlparse.Expr) *lead {
	c, ok := p.scope.column(e)
	if !ok || !slices.Contains(p.holds, c.of) {
		return nil
	}
	return p.of[c]
}

// equal returns the proof of a column that has one of some values.
func (p *prover) equal(q equality) proof {
	l := p.lead(q.left)
	if l == nil {
		return nil
	}
	if array, ok := anyOfArray(q); ok && l.lookup == nil {
		return &member{l, array}
	}
	values, ok := constants(q.right)
	switch {
	case !ok:
		return nil
	case l.lookup != nil:
		return &owned{l, values}
	}
	return &equals{l, values}
}

// owned is the proof of a column that has one of some values whose keys a lookup table knows.
// Before the lookup table is read, the rows may be on any shard.
type owned struct {
	lead   *lead
	values []operand
}

func (*owned) slots([]any) slots { return everySlot }

// resolved is the proof after the lookup table was read.
type resolved struct{ in slots }

func (p resolved) slots([]any) slots { return p.in }

// Owners are the queries of lookup tables with which a statement finds its shards.
type Owners struct {
	Queries []LookupQuery
	plan    *Plan
	by      map[*owned]slots
	of      []*owned // for each query
}

// LookupQuery is a query of a lookup table: which sharding keys do the rows have that have one of some
// values in the lookup's column?
type LookupQuery struct {
	Table  *sharding.Table
	Lookup *sharding.Lookup
	Values []any
}

// Owned reports whether a plan may have to read lookup tables.
func Owned(p *Plan) bool { return p.owned }

// OwnersOf returns the queries of lookup tables before a plan is bound. It returns nil if its own
// conditions lead to one target, if one text searches all tables, or if the result would be of no
// use.
func OwnersOf(p *Plan, args []any, hint sharding.Hint) *Owners {
	if !p.owned || hint.Unsharded || hint.Placed() || p.refused != nil || p.physical != nil || p.unread != "" || p.origin != nil {
		return nil
	}
	all := slots{}
	for _, r := range p.sharded {
		all = all.or(r.slots(args))
	}
	if _, single, err := targetOf(p.sharded[0].table, all); single || err != nil || p.union != nil {
		return nil
	}
	o := &Owners{plan: p, by: map[*owned]slots{}}
	for _, r := range p.sharded {
		eachOwned(r.proof, func(q *owned) {
			if _, known := o.by[q]; known { // it belongs to a neighbour
				return
			}
			o.by[q] = everySlot
			values := make([]any, len(q.values))
			for i, v := range q.values {
				values[i] = v.value(args)
				if _, missing := values[i].(unbound); missing { // the database returns the error
					return
				}
			}
			o.of, o.Queries = append(o.of, q), append(o.Queries, LookupQuery{q.lead.table, q.lead.lookup, values})
		})
	}
	return o
}

// eachOwned calls f for each owned in a proof.
func eachOwned(p proof, f func(*owned)) {
	exchanged(p, func(q *owned) proof {
		f(q)
		return q
	})
}

// exchanged returns a proof in which each owned is replaced.
func exchanged(p proof, by func(*owned) proof) proof {
	switch p := p.(type) {
	case allOf:
		return allOf(exchangedAll(p, by))
	case anyOf:
		return anyOf(exchangedAll(p, by))
	case *owned:
		return by(p)
	}
	return p
}

func exchangedAll(all []proof, by func(*owned) proof) []proof {
	as := make([]proof, len(all))
	for i, p := range all {
		as[i] = exchanged(p, by)
	}
	return as
}

// SetKeys records the keys that a query has returned. A key without a slot may be on any shard.
func (o *Owners) SetKeys(question int, keys []any) {
	list := make([]sharding.Slot, 0, len(keys))
	for _, key := range keys {
		slot, err := o.Queries[question].Table.Slot(key)
		if err != nil {
			return
		}
		list = append(list, slot)
	}
	o.by[o.of[question]] = setOf(list)
}

// Plan returns the plan with the proofs of the results.
func (o *Owners) Plan() *Plan {
	p := o.plan
	found := *p
	found.sharded, found.owned, found.union = nil, false, nil
	for _, r := range p.sharded {
		as := *r
		as.proof = exchanged(r.proof, func(q *owned) proof { return resolved{o.by[q]} })
		found.sharded = append(found.sharded, &as)
	}
	return &found
}

// anyOfArray returns the parameter of PostgreSQL's = ANY ($1), which may have a cast.
func anyOfArray(q equality) (operand, bool) {
	if q.in || len(q.right) != 1 {
		return operand{}, false
	}
	call, ok := sqlparse.Bare(q.right[0]).(*sqlparse.Call)
	if !ok || call.Function() != "any" || len(call.Args) != 1 {
		return operand{}, false
	}
	array := sqlparse.Bare(call.Args[0])
	if cast := sqlparse.As(array, sqlparse.Cast); cast != nil {
		array = sqlparse.Bare(cast.Operands[0])
	}
	param, ok := array.(*sqlparse.Param)
	if !ok {
		return operand{}, false
	}
	return operand{param: param.Index}, true
}

// within returns the proof of a column whose values are between two others, one of which may be
// nil.
func (p *prover) within(x, low, high sqlparse.Expr, below bool) proof {
	l := p.lead(x)
	if l == nil || !l.order {
		return nil
	}
	made := &within{lead: l, below: below}
	for _, end := range []struct {
		e  sqlparse.Expr
		to **operand
	}{{low, &made.low}, {high, &made.high}} {
		if end.e != nil {
			v, ok := constant(end.e)
			if !ok {
				return nil
			}
			*end.to = &v
		}
	}
	return made
}

// outerJoin is a LEFT or RIGHT JOIN, which adds rows of NULLs for missing rows.
type outerJoin struct {
	join            *sqlparse.Join
	present, absent []*reference
}

// tighten treats outer joins from an index on as inner joins if a condition that all rows satisfy
// is never true of a row of NULLs.
func (k *knowledge) tighten(condition sqlparse.Expr, s *scope, from int) {
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
		k.using(j.join, j.present, j.absent)
		k.using(j.join, j.absent, j.present)
		k.satisfied(j.join.On, s, j.present)
		all = append(all, conjuncts(j.join.On)...)
	}
}

// isAll reports whether an operand is ALL (query), to which every comparison is true if the query
// returns no rows.
func isAll(e sqlparse.Expr) bool {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	return ok && call.Function() == "all"
}

// rejects reports whether a condition is never true of a row in which the columns of these
// references are NULL.
func (s *scope) rejects(e sqlparse.Expr, absent []*reference) bool {
	null := func(e sqlparse.Expr) bool {
		c, ok := s.column(e)
		return ok && slices.Contains(absent, c.of)
	}
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
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
