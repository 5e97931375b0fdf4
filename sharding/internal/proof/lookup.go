// SPDX-License-Identifier: Apache-2.0

package proof

import "slices"

// Owned is the proof of a column that has one of some values whose keys a lookup table knows.
// Before the lookup table is read, the rows may be on any shard.
type Owned struct {
	Lead   *Lead
	Values []Operand
}

// Slots returns every slot.
func (*Owned) Slots([]any) Slots { return EverySlot }

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
		return p.Lead.Lookup.Unique && len(p.Values) == 1
	}
	return false
}
