package plan

import (
	"slices"

	"github.com/shardid/shardid/sharding"
)

// slots is a set of slots. The zero value is the empty set.
type slots struct {
	all  bool
	one  bool // only is the set
	only sharding.Slot
	many []sharding.Slot // sorted, each once; two at least
}

var everySlot = slots{all: true}

func oneSlot(s sharding.Slot) slots { return slots{one: true, only: s} }

// setOf takes the list over.
func setOf(list []sharding.Slot) slots {
	slices.Sort(list)
	list = slices.Compact(list)
	switch len(list) {
	case 0:
		return slots{}
	case 1:
		return oneSlot(list[0])
	}
	return slots{many: list}
}

// list returns the slots of a set that is not everySlot.
func (s slots) list() []sharding.Slot {
	if s.one {
		return []sharding.Slot{s.only}
	}
	return s.many
}

func (s slots) empty() bool { return !s.all && !s.one && len(s.many) == 0 }

func (s slots) has(slot sharding.Slot) bool {
	if s.all || s.one {
		return s.all || s.only == slot
	}
	_, found := slices.BinarySearch(s.many, slot)
	return found
}

// and returns what both sets have.
func (s slots) and(other slots) slots {
	switch {
	case s.all:
		return other
	case other.all:
		return s
	}
	var both []sharding.Slot
	for _, slot := range s.list() {
		if other.has(slot) {
			both = append(both, slot)
		}
	}
	return setOf(both)
}

// or returns what either set has.
func (s slots) or(other slots) slots {
	switch {
	case s.all || other.all:
		return everySlot
	case s.empty():
		return other
	case other.empty() || s.one && other.one && s.only == other.only:
		return s
	}
	return setOf(slices.Concat(s.list(), other.list()))
}
