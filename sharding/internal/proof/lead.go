// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"math"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// Lead is a column of a table whose values lead to slots: the key, or one of Also.
type Lead struct {
	Table  *sharding.Table
	Column string
	Rule   sharding.Rule
	// Always: every value leads to a slot. That holds for the key, and for an Also whose From is 0.
	Always bool
	Holds  catalog.Holding
	Order  bool          // the larger of two values is in no lower slot
	Unit   time.Duration // the precision of a column of times
	Form   func(value any) (form any, known bool)
	Skew   time.Duration
	// Lookup is the lookup table of a column without a rule.
	Lookup *sharding.Lookup
	// Sought: the rows that the statement reads or writes are in the slots of rows of this table, all rows with one value of the column have one slot,
	// and not every value leads to it. The rows may be searched for on all shards.
	Sought bool
	// Repeats: several rows may have one value of a Sought column.
	Repeats bool
}

// SlotOf returns the slots of rows whose column equals v: one slot; none for NULL, which equals
// nothing; or all if v proves nothing.
func (l *Lead) SlotOf(v any) Slots {
	v, err := Plain(v)
	if err != nil {
		return EverySlot
	}
	if v == nil {
		return Slots{}
	}
	if !l.comparesWith(v) {
		return EverySlot
	}
	v, known := l.Formed(v)
	if !known {
		return EverySlot
	}
	s, err := l.Table.SlotBy(l.Column, v)
	if err != nil {
		return EverySlot
	}
	return oneSlot(s)
}

// slotsOf returns the slots of rows whose column equals one of some values.
func (l *Lead) slotsOf(values []any) Slots {
	list := make([]sharding.Slot, 0, len(values))
	for _, v := range values {
		switch s := l.SlotOf(v); {
		case s.All:
			return EverySlot
		case s.One:
			list = append(list, s.Only)
		}
	}
	return SetOf(list)
}

// slotBy returns the slot that rows with larger and smaller values are beside. A time before the first
// piece of an Interval is beside the first piece, and a time after the last piece beside the last one: no row
// has such a time.
func (l *Lead) slotBy(v any) Slots {
	s := l.SlotOf(v)
	rule, ok := l.Rule.(sharding.IntervalRule)
	if !ok || !s.All {
		return s
	}
	v, _ = Plain(v)
	at, isTime := v.(time.Time)
	if !isTime || !l.comparesWith(at) {
		return s
	}
	from, to := rule.Bounds()
	switch at = clock(at, rule.Zone()); {
	case at.Before(clock(from, rule.Zone()).Add(-l.Unit)):
		return oneSlot(0)
	case at.After(clock(to, rule.Zone()).Add(l.Unit)):
		return oneSlot(sharding.Slot(rule.Slots() - 1))
	}
	return s // it is so near to a border of the pieces that a column may round it
}

// Formed returns a value in the form in which the column returns it, false if that is unknown. It returns NULL, and an
// argument that no driver accepts, as they are.
func (l *Lead) Formed(v any) (form any, known bool) {
	if l.Form == nil {
		return v, true
	}
	as, _ := Plain(v)
	if as == nil {
		return v, true
	}
	return l.Form(as)
}

// comparesWith reports whether the database considers v and a value of the column equal exactly if
// the rule gives both the same slot. A number equals many texts ('5', '5abc'), and a float many
// integers.
func (l *Lead) comparesWith(v any) bool {
	switch v.(type) {
	case string, []byte:
		return l.Holds.EqualByText()
	case time.Time:
		return l.Holds == catalog.Times
	case int64, uint64:
		return l.Holds == catalog.Integers
	}
	return false
}

// before returns the largest value of the column below v, or v if that is unknown.
func (l *Lead) before(v any) any {
	switch v := v.(type) {
	case int64:
		if v > math.MinInt64 {
			return v - 1
		}
	case time.Time:
		if v.Equal(v.Truncate(l.Unit)) {
			return v.Add(-l.Unit)
		}
	}
	return v
}

// moved returns an end of a range that has all times which may compare as if they were in it.
func (l *Lead) moved(v any, later bool) any {
	as, _ := Plain(v)
	at, ok := as.(time.Time)
	switch {
	case !ok || l.Skew == 0:
		return v
	case later:
		return at.Add(l.Skew)
	}
	return at.Add(-l.Skew)
}

// clock returns the time at which a clock in UTC shows what one in the zone shows at a time. A column stores what it shows.
func clock(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
