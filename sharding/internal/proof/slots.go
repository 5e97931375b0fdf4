// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"slices"

	"github.com/shardid/shardid/sharding"
)

// Slots is a set of slots. The zero value is the empty set.
type Slots struct {
	All  bool
	One  bool // the set has one slot, only
	Only sharding.Slot
	many []sharding.Slot // sorted, without duplicates; at least two
}

// Slots implements [Proof], for what a lookup table has proved.
func (s Slots) Slots([]any) Slots { return s }

// EverySlot is the set of all slots.
var EverySlot = Slots{All: true}

func oneSlot(s sharding.Slot) Slots { return Slots{One: true, Only: s} }

// SetOf returns the set of the slots in list. The caller must not use list afterwards.
func SetOf(list []sharding.Slot) Slots {
	slices.Sort(list)
	list = slices.Compact(list)
	switch len(list) {
	case 0:
		return Slots{}
	case 1:
		return oneSlot(list[0])
	}
	return Slots{many: list}
}

// List returns the slots of a set that is not EverySlot.
func (s Slots) List() []sharding.Slot {
	if s.One {
		return []sharding.Slot{s.Only}
	}
	return s.many
}

// Has reports whether the slot is in the set.
func (s Slots) Has(slot sharding.Slot) bool {
	_, found := slices.BinarySearch(s.many, slot)
	return s.All || s.One && s.Only == slot || found
}

// Empty reports whether the set has no slot.
func (s Slots) Empty() bool { return !s.All && !s.One && len(s.many) == 0 }

// and returns the intersection.
func (s Slots) and(other Slots) Slots {
	switch {
	case s.All:
		return other
	case other.All:
		return s
	}
	of := other.List()
	return SetOf(slices.DeleteFunc(slices.Clone(s.List()), func(slot sharding.Slot) bool {
		_, found := slices.BinarySearch(of, slot)
		return !found
	}))
}

// Or returns the union.
func (s Slots) Or(other Slots) Slots {
	switch {
	case s.All || other.All:
		return EverySlot
	case s.Empty():
		return other
	case other.Empty() || s.One && other.One && s.Only == other.Only:
		return s
	}
	return SetOf(slices.Concat(s.List(), other.List()))
}
