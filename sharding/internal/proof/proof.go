// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"slices"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// Proof returns the slots that the rows of one table may have, for the arguments of a statement. It
// never fails: a value that a database may read differently than the rule proves nothing, so all
// slots may have such rows.
type Proof interface {
	Slots(args []any) Slots
}

// allOf is the proof of several conditions that all hold.
type allOf []Proof

func (p allOf) Slots(args []any) Slots {
	s := EverySlot
	for _, each := range p {
		s = s.and(each.Slots(args))
	}
	return s
}

// AnyOf is the proof of several conditions one of which holds.
type AnyOf []Proof

// Slots implements [Proof].
func (p AnyOf) Slots(args []any) Slots {
	var s Slots
	for _, each := range p {
		s = s.Or(each.Slots(args))
	}
	return s
}

// Values are the values one of which a column has: some operands, or the elements of an array, which is an argument.
type Values struct {
	List  []Operand
	Array *Operand // instead of List
}

// of returns the values, false if the argument is no array.
func (v Values) of(args []any) (list []any, ok bool) {
	if v.Array != nil {
		return Elements(v.Array.Value(args))
	}
	list = make([]any, len(v.List))
	for i, o := range v.List {
		list[i] = o.Value(args)
	}
	return list, true
}

// Equals is the proof of a column that has one of some values.
type Equals struct {
	Lead *Lead
	Values
}

// Slots implements [Proof].
func (p *Equals) Slots(args []any) Slots {
	if len(p.List) == 1 {
		return p.Lead.SlotOf(p.List[0].Value(args))
	}
	list, ok := p.of(args)
	if !ok {
		return EverySlot
	}
	return p.Lead.slotsOf(list)
}

// Within is the proof of a column whose values are between two others, one of which may be missing.
// The lower one is included, and the upper one unless below is set.
type Within struct {
	Lead      *Lead
	Low, High *Operand
	Below     bool
}

// Slots implements [Proof].
func (p *Within) Slots(args []any) Slots {
	from, to := sharding.Slot(0), sharding.Slot(p.Lead.Table.Rule.Slots()-1)
	for _, end := range []struct {
		at   *Operand
		slot *sharding.Slot
	}{{p.Low, &from}, {p.High, &to}} {
		if end.at == nil {
			continue
		}
		v := end.at.Value(args)
		if _, bytes := v.([]byte); bytes && p.Lead.Holds == catalog.Integers {
			continue // SQLite sorts texts after all numbers, whatever digits they have
		}
		if p.Below && end.at == p.High {
			v = p.Lead.before(v)
		}
		v = p.Lead.moved(v, end.at == p.High)
		s := p.Lead.slotBy(v)
		if s.Empty() {
			return s // a comparison with NULL is never true
		}
		if s.One { // otherwise its slot is unknown, and this end is unbounded
			*end.slot = s.Only
		}
	}
	if to-from+1 == sharding.Slot(p.Lead.Table.Rule.Slots()) {
		return EverySlot
	}
	var list []sharding.Slot
	for s := from; s <= to; s++ {
		list = append(list, s)
	}
	return SetOf(list)
}

// Together returns the proof of several conditions that all hold; some may be nil.
func Together(all []Proof) Proof {
	all = slices.DeleteFunc(all, func(p Proof) bool { return p == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return allOf(all)
}

// Owned is the proof of a column that has one of some values. A lookup table knows the sharding keys of their rows, or the
// rows are searched for. Before that, they may be on any shard.
type Owned struct {
	Lead *Lead
	Values
}

// Given returns the values. It returns false if an argument is missing or inexact, or is no array.
func (p *Owned) Given(args []any) (list []any, ok bool) {
	list, ok = p.of(args)
	for i, v := range list {
		switch v.(type) {
		case Unbound, inexact:
			return nil, false
		}
		if p.Array != nil {
			plain, err := Plain(v)
			if err != nil {
				return nil, false
			}
			list[i] = plain
		}
	}
	return list, ok
}

// Slots returns every slot.
func (*Owned) Slots([]any) Slots { return EverySlot }

// Leads reports whether a proof always leads to slots.
func Leads(p Proof) bool {
	switch p := p.(type) {
	case allOf:
		return slices.ContainsFunc(p, Leads)
	case AnyOf:
		return !slices.ContainsFunc(p, func(one Proof) bool { return !Leads(one) })
	case *Equals:
		return p.Lead.Always && p.Array == nil // an argument may be no array
	}
	return false
}

// WithoutSearches returns a proof without the searches beside conditions that always lead to slots.
func WithoutSearches(p Proof) Proof {
	all, _ := p.(allOf)
	if !Leads(all) {
		return p
	}
	return Together(slices.DeleteFunc(slices.Clone(all), func(p Proof) bool {
		q, ok := p.(*Owned)
		return ok && q.Lead.Lookup == nil
	}))
}

// EachOwned calls f for each owned in a proof.
func EachOwned(p Proof, f func(*Owned)) {
	Exchanged(p, func(q *Owned) Proof {
		f(q)
		return q
	})
}

// Exchanged returns a proof in which each owned is replaced.
func Exchanged(p Proof, by func(*Owned) Proof) Proof {
	switch p := p.(type) {
	case allOf:
		return allOf(exchangedAll(p, by))
	case AnyOf:
		return AnyOf(exchangedAll(p, by))
	case *Owned:
		return by(p)
	}
	return p
}

func exchangedAll(all []Proof, by func(*Owned) Proof) []Proof {
	as := make([]Proof, len(all))
	for i, p := range all {
		as[i] = Exchanged(p, by)
	}
	return as
}

// IsUnique reports whether all rows have one value in a column with a unique lookup.
func IsUnique(p Proof) bool {
	switch p := p.(type) {
	case allOf:
		return slices.ContainsFunc(p, IsUnique)
	case *Owned:
		return p.Lead.Lookup != nil && p.Lead.Lookup.Unique && len(p.List) == 1
	}
	return false
}
