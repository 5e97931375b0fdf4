// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"reflect"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Of returns what a statement names and says, with the proof of each sharded reference: the proof of its own
// conditions, and the proofs of the references whose rows have the same slots.
func Of(st *sqlparse.Statement, s *sharding.Snapshot, options Options) *Analysis {
	b := Walk(st, s, options)
	b.complete()
	if st.Executable {
		b.unread(sqltext.VersionedHint)
	}
	for _, g := range b.recursions {
		g.pass(b)
	}
	b.pass()
	b.prove()
	return b
}

func (b *Analysis) prove() {
	markSought(b)
	own := map[*Reference]proof.Proof{}
	for _, r := range b.Refs {
		if r.Role == Sharded {
			own[r] = proof.Together(append(slices.Clone(r.given), b.proofOf(b.sources(r))))
		}
	}
	proveSelected(b, own)
	for r := range own {
		var all []proof.Proof
		for _, near := range b.neighbours(r) {
			all = append(all, own[near])
		}
		if r.Proof = proof.WithoutSearches(proof.Together(all)); r.Proof == nil {
			r.Vague, r.Asked = b.vague(r)
		}
	}
}

// proveSelected proves where the columns that lead to slots send the rows of INSERT … SELECT, each by itself, unless all have
// the slot of one row.
func proveSelected(b *Analysis, own map[*Reference]proof.Proof) {
	if b.Insert == nil || b.Insert.Input.Query == nil {
		return
	}
	in, rows := b.Insert, map[*Reference]bool{}
	for i := range in.leads {
		l := &in.leads[i]
		if !l.lead.Always {
			continue
		}
		to := Column{in.Of, l.lead.Column}
		all := []proof.Proof{b.proofOf(b.sourcesOf(to, l.lead))}
		if v, isConstant := in.constant(l.at); isConstant {
			all = append(all, &proof.Equals{Lead: l.lead, Values: proof.Values{List: []proof.Operand{v}}})
		}
		var from *Reference
		for _, e := range b.edges {
			if e.to == to && e.isOneSlot() {
				from, all = e.from.Of, append(all, own[e.from.Of])
			}
		}
		rows[from] = true
		l.own = proof.WithoutSearches(proof.Together(all))
	}
	in.apart = len(rows) > 1 || rows[nil]
}

// vague returns what [Reference] calls Vague and Asked.
func (k *Knowledge) vague(r *Reference) (column string, asked bool) {
	p := prover{known: k, of: k.sources(r)}
	for _, f := range k.Facts {
		p.scope, p.holds = f.Scope, f.holds
		if sqlparse.Any(f.Expr, func(e sqlparse.Expr) bool {
			l := p.lead(e)
			if l != nil {
				column = l.Column
			}
			return l != nil
		}) {
			return column, len(equalities(f.Expr)) > 0 && sqlparse.Any(f.Expr, sqlparse.Is[*sqlparse.Subquery])
		}
	}
	return "", false
}

// markSought marks the columns by which rows are searched for: unique ones, and those that refer to parents. They are of the sharded
// table that the statement writes, or that it names first, if the rows of all others are in the slots of its rows.
func markSought(b *Analysis) {
	only := soughtIn(b)
	if only == nil || only.Table.OnMissing == sharding.Refuse || len(b.ApartFrom(only, b.Refs)) > 0 {
		return
	}
	b.Unsought = b.Statement.Change != nil && !only.Known && slices.ContainsFunc(b.Facts, func(f Fact) bool { return len(equalities(f.Expr)) > 0 })
	for _, key := range only.Schema.Unique {
		if len(key) == 1 {
			only.markSought(key[0])
		}
	}
	for _, p := range only.Table.Parents {
		if c := (Column{only, strings.ToLower(p.Column)}); only.Known && c.hasParent() && !only.isUnique(c.Name) {
			only.markSought(c.Name)
		}
	}
}

// soughtIn returns the reference whose rows may be searched for, or nil.
func soughtIn(b *Analysis) (only *Reference) {
	for _, r := range b.Refs {
		switch {
		case r.Role != Sharded || b.Statement.Change != nil && !r.Written:
		case only == nil:
			only = r
		case b.Statement.Change != nil:
			return nil
		}
	}
	return only
}

// markSought marks a column by which rows are searched for, if not all its values lead to slots.
func (r *Reference) markSought(column string) {
	switch l := r.Lead(column); {
	case l == nil:
		r.indirect = append(r.indirect, &proof.Lead{Table: r.Table, Column: column, Sought: true, Repeats: !r.isUnique(column)})
	case !l.Always:
		l.Sought, l.Repeats = true, !r.isUnique(column)
	}
}

// isUnique reports whether no two rows may have a value of a column.
func (r *Reference) isUnique(column string) bool {
	isOf := func(key []string) bool { return len(key) == 1 && key[0] == column }
	return slices.ContainsFunc(r.Schema.Unique, isOf) && !slices.ContainsFunc(r.Schema.Partial, isOf)
}

// proofOf returns the proof of the conditions on some columns, or nil.
func (k *Knowledge) proofOf(columns map[Column]*proof.Lead) proof.Proof {
	p := prover{known: k, of: columns}
	var all []proof.Proof
	for _, f := range k.Facts {
		p.scope, p.holds = f.Scope, f.holds
		all = append(all, p.expression(f.Expr))
	}
	return proof.Together(all)
}

// neighbours returns r and the references in whose slots its rows are, because a column that leads
// to slots equals one of theirs by the same rule: for example, an order's items by the order's id,
// which carries the slot of the order's user.
func (k *Knowledge) neighbours(r *Reference) []*Reference {
	all := []*Reference{r}
	for i := 0; i < len(all); i++ {
		for at, e := range slices.Concat(k.edges, k.picks) {
			if e.to.Of != all[i] || slices.Contains(all, e.from.Of) {
				continue
			}
			if at >= len(k.edges) || e.isOneSlot() {
				all = append(all, e.from.Of)
			}
		}
	}
	return all
}

// isOneSlot reports whether rows with equal values in two columns have one slot: both lead to slots by one rule, or both have
// the ids of one parent.
func (e edge) isOneSlot() bool {
	from, to := e.from.Of.Lead(e.from.Name), e.to.Of.Lead(e.to.Name)
	if from != nil && to != nil && from.Always && to.Always && reflect.DeepEqual(from.Rule, to.Rule) {
		return true
	}
	kin := e.from.Of.kin[e.from.Name]
	return kin != "" && kin == e.to.Of.kin[e.to.Name]
}

// ApartFrom returns those of some references to sharded tables whose rows may be in other slots than the root's row.
func (k *Knowledge) ApartFrom(root *Reference, refs []*Reference) (all []*Reference) {
	for _, r := range refs {
		if r.Role == Sharded && !slices.Contains(k.neighbours(r), root) {
			all = append(all, r)
		}
	}
	return all
}

// sources returns the columns that equal a lead of r wherever a row of r contributes to the result,
// the leads included.
func (k *Knowledge) sources(r *Reference) map[Column]*proof.Lead {
	all := map[Column]*proof.Lead{}
	for _, l := range slices.Concat(r.leads, r.indirect) {
		for c := range k.sourcesOf(Column{r, l.Column}, l) {
			if _, known := all[c]; !known {
				all[c] = l
			}
		}
	}
	return all
}

// sourcesOf returns a column that leads to slots, and the columns whose values it has.
func (k *Knowledge) sourcesOf(to Column, l *proof.Lead) map[Column]*proof.Lead {
	all, next := map[Column]*proof.Lead{to: l}, []Column{to}
	for i := 0; i < len(next); i++ {
		for _, e := range k.edges {
			if _, known := all[e.from]; e.to == next[i] && !known {
				all[e.from], next = l, append(next, e.from)
			}
		}
	}
	return all
}

// prover creates the proof for one reference from one condition.
type prover struct {
	known *Knowledge
	of    map[Column]*proof.Lead
	scope *Scope
	holds []*Reference
}

// expression returns nil for a condition that proves nothing.
func (p *prover) expression(e sqlparse.Expr) proof.Proof {
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
	if !ok || o.Not {
		return nil
	}
	var all []proof.Proof
	switch o.Op {
	case sqlparse.And, sqlparse.Or:
		for _, operand := range o.Operands {
			all = append(all, p.expression(operand))
		}
		if o.Op == sqlparse.Or && slices.Contains(all, nil) {
			return nil
		} else if o.Op == sqlparse.Or {
			return proof.AnyOf(all)
		}
	case sqlparse.Equal, sqlparse.In:
		for _, q := range equalities(o) {
			all = append(all, p.equal(q))
		}
	case sqlparse.Less, sqlparse.LessEqual:
		all = []proof.Proof{p.within(o.Operands[0], nil, o.Operands[1], o.Op == sqlparse.Less), p.within(o.Operands[1], o.Operands[0], nil, false)}
	case sqlparse.Greater, sqlparse.GreaterEqual:
		all = []proof.Proof{p.within(o.Operands[0], o.Operands[1], nil, false), p.within(o.Operands[1], nil, o.Operands[0], o.Op == sqlparse.Greater)}
	case sqlparse.Between:
		all = []proof.Proof{p.within(o.Operands[0], o.Operands[1], o.Operands[2], false)}
	}
	return proof.Together(all)
}

// lead returns the lead whose values an expression has, or nil.
func (p *prover) lead(e sqlparse.Expr) *proof.Lead {
	c, _ := p.scope.Column(e)
	if !slices.Contains(p.holds, c.Of) {
		return nil
	}
	return p.of[c]
}

// equal returns the proof of a column that has one of some values.
func (p *prover) equal(q equality) proof.Proof {
	l := p.lead(q.left)
	if l == nil {
		return nil
	}
	if array, ok := anyOfArray(q); ok {
		return hasOneOf(l, proof.Values{Array: &array})
	}
	if list, ok := proof.Constants(q.right); ok {
		return hasOneOf(l, proof.Values{List: list})
	}
	if len(q.right) == 1 {
		return p.known.hasConstant(l, p.known.constantsOf(q.right[0], p.scope, q.at))
	}
	return nil
}

// hasOneOf returns the proof of a column that has one of some values, nil if there are none.
func hasOneOf(l *proof.Lead, values proof.Values) proof.Proof {
	var all []proof.Proof
	switch {
	case values.Array == nil && len(values.List) == 0:
		return nil
	case l.Rule != nil:
		all = append(all, &proof.Equals{Lead: l, Values: values})
	}
	if l.Lookup != nil || l.Sought {
		all = append(all, &proof.Owned{Lead: l, Values: values})
	}
	return proof.Together(all)
}

// anyOfArray returns the parameter of PostgreSQL's = ANY ($1), which may have a cast that keeps its elements: varchar(3)[] cuts
// them off.
func anyOfArray(q equality) (proof.Operand, bool) {
	if q.in || len(q.right) != 1 {
		return proof.Operand{}, false
	}
	call, ok := sqlparse.Bare(q.right[0]).(*sqlparse.Call)
	if !ok || call.Function() != "any" || len(call.Args) != 1 {
		return proof.Operand{}, false
	}
	return arrayOf(call.Args[0])
}

// arrayOf returns the parameter of an array, $1::bigint[].
func arrayOf(e sqlparse.Expr) (proof.Operand, bool) {
	array := sqlparse.Bare(e)
	if cast := sqlparse.As(array, sqlparse.Cast); cast != nil && cast.Elements {
		array = sqlparse.Bare(cast.Operands[0])
	}
	param, ok := array.(*sqlparse.Param)
	if !ok {
		return proof.Operand{}, false
	}
	return proof.Operand{Param: param.Index}, true
}

// within returns the proof of a column whose values are between two others, one of which may be
// nil.
func (p *prover) within(x, low, high sqlparse.Expr, below bool) proof.Proof {
	l := p.lead(x)
	if l == nil || !l.Order {
		return nil
	}
	from, isFrom := end(low)
	to, isTo := end(high)
	if !isFrom || !isTo {
		return nil
	}
	return &proof.Within{Lead: l, Low: from, High: to, Below: below}
}

// end returns an end of a range, nil for none, and false for an expression that is no value.
func end(e sqlparse.Expr) (*proof.Operand, bool) {
	if e == nil {
		return nil, true
	}
	v, ok := proof.Constant(e)
	return &v, ok
}

// outerJoin is a LEFT or RIGHT JOIN, which adds rows of NULLs for missing rows.
type outerJoin struct {
	join            *sqlparse.Join
	present, absent []*Reference
}

// tighten treats outer joins from an index on as inner joins if a condition that all rows satisfy
// is never true of a row of NULLs.
func (k *Knowledge) tighten(condition sqlparse.Expr, s *Scope, from int) {
	all := sqlparse.Conjuncts(condition)
	for i := len(s.outerJoins) - 1; i >= from; i-- {
		j := s.outerJoins[i]
		if !slices.ContainsFunc(all, func(e sqlparse.Expr) bool { return s.Rejects(e, j.absent) }) {
			continue
		}
		s.outerJoins = slices.Delete(s.outerJoins, i, i+1)
		for _, r := range j.absent {
			r.Nullable--
		}
		k.using(j.join, s, j.present, j.absent)
		k.using(j.join, s, j.absent, j.present)
		k.satisfied(j.join.On, s, j.present)
		all = append(all, sqlparse.Conjuncts(j.join.On)...)
	}
}
