// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"slices"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Owners are the queries of lookup tables, and the searches, with which a statement finds its shards.
type Owners struct {
	Queries []LookupQuery
	// Otherwise is the target for a statement whose rows no shard has, or nil. A shard may get such a row after the search,
	// so a write must not be sent outside of its transaction.
	Otherwise *sharding.Target
	plan      *Plan
	by        map[*proof.Owned]proof.Slots
}

// LookupQuery is a question: which sharding keys do the rows have that have one of some values in a column? A lookup table
// answers it, or all shards do.
type LookupQuery struct {
	Table  *sharding.Table
	Lookup *sharding.Lookup
	Values []any
	Search *Search // nil if there is a lookup table
	of     *proof.Owned
}

// takeOwned records how the rows of a reference may be found.
func (p *Plan) takeOwned(r *analysis.Reference) {
	proof.EachOwned(r.Proof, func(q *proof.Owned) {
		switch {
		case p.Statement.Insert != nil:
		case q.Lead.Lookup != nil:
			p.Owned = true
		case !proof.Leads(r.Proof):
			p.Owned, p.Sought = p.Owned || p.writes(), true
		}
	})
}

// writes reports whether a statement that is no INSERT changes or locks rows.
func (p *Plan) writes() bool { return p.Locks || p.Statement.Change != nil }

// Write reports whether the statement changes or locks the rows.
func (o *Owners) Write() bool { return o.plan.writes() }

// Targets returns the targets of the table whose rows are searched for.
func (o *Owners) Targets() []sharding.Target { return o.plan.sharded[0].Table.Map.Targets() }

// OwnersOf returns the questions before a plan is bound. It returns nil if its own
// conditions lead to one target, if one text searches all tables, or if the result would be of no
// use. A query that locks no row is sent to all shards without a search, unless it is in a transaction of one database.
func OwnersOf(p *Plan, args []any, hint sharding.Hint, inOne bool) *Owners {
	if !p.Owned && !(inOne && p.Sought) || hint.Unsharded || hint.Placed() || p.Refused != nil || p.barred != nil || p.origin != nil {
		return nil
	}
	all := slotsOf(p.sharded, args)
	if _, single, err := targetOf(p.sharded[0].Table, all); single || err != nil || p.union != nil {
		return nil
	}
	searches := all.All && !hint.All && (inOne || p.writes())
	o := &Owners{plan: p, by: map[*proof.Owned]proof.Slots{}}
	for _, r := range p.sharded {
		proof.EachOwned(r.Proof, func(q *proof.Owned) {
			if _, known := o.by[q]; known { // it belongs to a neighbour
				return
			}
			o.by[q] = proof.EverySlot
			if query, ok := queryOf(p, q, args); ok && (searches || q.Lead.Lookup != nil) {
				o.Queries = append(o.Queries, query)
			}
		})
	}
	if len(o.Queries) == 0 {
		return nil
	}
	return o
}

// queryOf returns false if an argument is missing: the database returns the error.
func queryOf(p *Plan, q *proof.Owned, args []any) (of LookupQuery, ok bool) {
	of = LookupQuery{Table: q.Lead.Table, Lookup: q.Lead.Lookup, of: q}
	if of.Values, ok = q.Given(args); !ok {
		return of, false
	}
	if of.Lookup == nil {
		of.Search = searchFor(p, q, of.Values)
	}
	return of, true
}

// searchFor returns the search for rows with these values on all targets or, with own, on these.
func searchFor(p *Plan, q *proof.Owned, values []any, own ...sharding.Target) *Search {
	l := &Search{Table: q.Lead.Table, plan: p, columns: []string{q.Lead.Column}, repeats: q.Lead.Repeats || q.Lead.Lookup != nil}
	for _, v := range values {
		l.add(&sought{key: []driver.Value{v}, own: own})
	}
	return l
}

// Strangers returns searches of the route's target, for the rows with the values of the conditions. While slots move, it may have
// such rows of a slot that another target has: see [Search.Stays]. There are none if the text leaves out such rows.
func (o *Owners) Strangers(to *Route) (all []*Search) {
	first := o.plan.sharded[0].Table
	if to.Kind != One || len(first.Map.Shared()) == 0 || o.plan.separable {
		return nil
	}
	number := slices.Index(first.Map.Targets(), to.Target)
	for _, q := range o.Queries {
		if targets := q.Table.Map.Targets(); number >= 0 && number < len(targets) { // tables of a group have maps of one shape
			all = append(all, searchFor(o.plan, q.of, q.Values, targets[number]))
		}
	}
	return all
}

// Assumed returns the plan as if one slot had all rows: the slot to which the values lead that the statement assigns to them,
// or the first one. elsewhere is the plan as if another slot had them, nil unless that decides whether the plan is refused.
func (o *Owners) Assumed(args []any) (accepted, elsewhere *Plan) {
	at := sharding.Slot(0)
	for _, a := range o.plan.Assigned {
		if s := a.Of.Lead(a.Column).SlotOf(a.To.Value(args)); s.One {
			at = s.Only
		}
	}
	if slots := o.plan.sharded[0].Table.Rule.Slots(); slots > 1 && len(o.plan.Assigned) > 0 {
		elsewhere = o.foundAt((at + 1) % sharding.Slot(slots))
	}
	return o.foundAt(at), elsewhere
}

// foundAt returns the plan as if a slot had all rows.
func (o *Owners) foundAt(slot sharding.Slot) *Plan {
	for _, q := range o.Queries {
		o.by[q.of] = proof.SetOf([]sharding.Slot{slot})
	}
	return o.Plan()
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
	o.by[o.Queries[question].of] = proof.SetOf(list)
}

// Plan returns the plan with the proofs of the results.
func (o *Owners) Plan() *Plan {
	p := o.plan
	if isMoving(p) {
		p = withOwnRows(p)
	}
	found := *p
	found.slotsFound, found.otherwise = true, o.Otherwise
	found.sharded, found.Owned, found.Sought, found.union, found.Assigned = nil, false, false, nil, slices.Clone(p.Assigned)
	for _, r := range p.sharded {
		as := *r
		as.Proof = proof.Exchanged(r.Proof, func(q *proof.Owned) proof.Proof { return o.by[q] })
		found.sharded = append(found.sharded, &as)
		for i := range found.Assigned {
			if found.Assigned[i].Of == r {
				found.Assigned[i].Of = &as
			}
		}
	}
	return &found
}
