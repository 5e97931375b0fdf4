// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Owners are the queries of lookup tables with which a statement finds its shards.
type Owners struct {
	Queries []LookupQuery
	plan    *Plan
	by      map[*proof.Owned]proof.Slots
	of      []*proof.Owned // for each query
}

// LookupQuery is a query of a lookup table: which sharding keys do the rows have that have one of some
// values in the lookup's column?
type LookupQuery struct {
	Table  *sharding.Table
	Lookup *sharding.Lookup
	Values []any
}

// OwnersOf returns the queries of lookup tables before a plan is bound. It returns nil if its own
// conditions lead to one target, if one text searches all tables, or if the result would be of no
// use.
func OwnersOf(p *Plan, args []any, hint sharding.Hint) *Owners {
	if !p.Owned || hint.Unsharded || hint.Placed() || p.Refused != nil || p.physical != nil || p.unread != "" || p.origin != nil {
		return nil
	}
	all := proof.Slots{}
	for _, r := range p.sharded {
		all = all.Or(r.Slots(args))
	}
	if _, single, err := targetOf(p.sharded[0].Table, all); single || err != nil || p.union != nil {
		return nil
	}
	o := &Owners{plan: p, by: map[*proof.Owned]proof.Slots{}}
	for _, r := range p.sharded {
		proof.EachOwned(r.Proof, func(q *proof.Owned) {
			if _, known := o.by[q]; known { // it belongs to a neighbour
				return
			}
			o.by[q] = proof.EverySlot
			values := make([]any, len(q.Values))
			for i, v := range q.Values {
				values[i] = v.Value(args)
				if _, missing := values[i].(proof.Unbound); missing { // the database returns the error
					return
				}
			}
			o.of, o.Queries = append(o.of, q), append(o.Queries, LookupQuery{q.Lead.Table, q.Lead.Lookup, values})
		})
	}
	return o
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
	o.by[o.of[question]] = proof.SetOf(list)
}

// Plan returns the plan with the proofs of the results.
func (o *Owners) Plan() *Plan {
	p := o.plan
	found := *p
	found.sharded, found.Owned, found.union = nil, false, nil
	for _, r := range p.sharded {
		as := *r
		as.Proof = proof.Exchanged(r.Proof, func(q *proof.Owned) proof.Proof { return o.by[q] })
		found.sharded = append(found.sharded, &as)
	}
	return &found
}
