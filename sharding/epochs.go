// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Epoch describes which servers number the ids from From on, up to the next epoch. The servers
// number in turn, each with its own offset and the same step (auto_increment_offset,
// auto_increment_increment).
type Epoch struct {
	// From is the first id of the epoch, above 0. It is 0 for the first epoch, which has all ids
	// below the second epoch.
	From int64
	// Slots[i] holds the ids of the server with offset i+1; the step is len(Slots). No slot occurs
	// twice.
	Slots []Slot
}

// place returns the slot of an id in the epoch.
func (e *Epoch) place(k integer) Slot {
	n := uint64(len(e.Slots))
	return e.Slots[(k.floorMod(n)+n-1)%n]
}

// EpochRule is the rule of ids that servers number by offset and step, where servers were added
// over time. With it a system grows from one server to two to four without moving a row, because
// old ids stay with the servers that made them. [Epochs] creates it. It is immutable.
type EpochRule struct {
	epochs []Epoch
	slots  int
	wrong  error
}

// Epochs returns the rule of ids made in these epochs. Each epoch begins above the one before. The
// slots of all epochs together are numbered from 0 without gaps. An id belongs to the last epoch
// that begins at or below it.
//
// One server that was joined by a second at id 1,000,000:
//
//	Epochs(Epoch{Slots: []Slot{0}}, Epoch{From: 1_000_000, Slots: []Slot{0, 1}})
//
// Only append to the list: changing an epoch moves ids away from their rows. Use [EpochRule.Add],
// which checks the counters of the servers.
func Epochs(first Epoch, later ...Epoch) EpochRule {
	r := EpochRule{epochs: []Epoch{{first.From, slices.Clone(first.Slots)}}}
	for _, e := range later {
		r.epochs = append(r.epochs, Epoch{e.From, slices.Clone(e.Slots)})
	}
	r.slots, r.wrong = checkEpochs(r.epochs)
	return r
}

var _ Rule = EpochRule{}

func checkEpochs(epochs []Epoch) (slots int, err error) {
	var all []Slot
	for i, e := range epochs {
		switch {
		case i == 0 && e.From != 0:
			return 0, fmt.Errorf("Epochs: the first epoch begins at %d; leave its From 0, because it has all ids below the second", e.From)
		case i > 0 && e.From <= epochs[i-1].From:
			return 0, fmt.Errorf("Epochs: From %d is not above the From %d before it", e.From, epochs[i-1].From)
		case len(e.Slots) == 0:
			return 0, fmt.Errorf("Epochs: the epoch from %d has no slots", e.From)
		}
		own := slices.Sorted(slices.Values(e.Slots))
		if len(slices.Compact(own)) != len(e.Slots) {
			return 0, fmt.Errorf("Epochs: a slot occurs twice in the epoch from %d", e.From)
		}
		all = append(all, e.Slots...)
	}
	if slots, err = countSlots(all); err != nil {
		return 0, fmt.Errorf("Epochs: %w", err)
	}
	return slots, nil
}

func (r EpochRule) check() error { return r.wrong }

// Slots returns the number of slots of all epochs together.
func (r EpochRule) Slots() int { return r.slots }

// Slot returns the slot of the server that made the id.
func (r EpochRule) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	if r.slots == 0 {
		return 0, fmt.Errorf("%w: %w", r.invalid(), ErrNoSlot)
	}
	i := len(r.epochs) - 1
	for i > 0 && k.less(r.epochs[i].From) {
		i--
	}
	return r.epochs[i].place(k), nil
}

func (r EpochRule) invalid() error {
	if r.wrong != nil {
		return r.wrong
	}
	return errors.New("Epochs: an EpochRule is made by Epochs")
}

// Epochs returns the epochs, the oldest first.
func (r EpochRule) Epochs() []Epoch {
	epochs := slices.Clone(r.epochs)
	for i := range epochs {
		epochs[i].Slots = slices.Clone(epochs[i].Slots)
	}
	return epochs
}

// Counter is the present numbering of the server of a slot.
type Counter struct {
	Slot   Slot
	Next   int64 // all ids that the server has assigned are below it (AUTO_INCREMENT)
	Offset int   // auto_increment_offset, from 1 to Step
	Step   int   // auto_increment_increment
}

// Add returns the rule with another epoch. live are the counters of all servers of the present
// epochs. margin, at least 1, is the largest number of ids by which any counter can advance until
// all servers number by the new epoch and every router knows it.
//
// An epoch that begins less than margin above a live counter is refused with [ErrEpochUnarmed].
// After Add, put the rule into every router. Give every server of the epoch its offset and step,
// and new servers a counter of at least From. Call [EpochRule.Check] before a server gets within
// margin of From.
func (r EpochRule) Add(next Epoch, margin int64, live []Counter) (EpochRule, error) {
	if margin < 1 {
		return EpochRule{}, fmt.Errorf("sharding: Add: margin is %d; it must be at least 1", margin)
	}
	if r.slots == 0 {
		return EpochRule{}, fmt.Errorf("sharding: Add: %w", r.invalid())
	}
	grown := Epochs(r.epochs[0], append(slices.Clone(r.epochs[1:]), next)...)
	if grown.wrong != nil {
		return EpochRule{}, fmt.Errorf("sharding: Add: %w", grown.wrong)
	}
	if err := r.keepsItsIDs(next); err != nil {
		return EpochRule{}, fmt.Errorf("sharding: Add: %w", err)
	}
	counters, err := bySlot(live)
	if err != nil {
		return EpochRule{}, fmt.Errorf("sharding: Add: %w", err)
	}
	for slot := range Slot(r.slots) {
		c, known := counters[slot]
		if !known {
			return EpochRule{}, fmt.Errorf("sharding: Add: %w: the counter of slot %d is missing, so it may not be below %d; pass it", ErrEpochUnarmed, slot, next.From)
		}
		if saturatedSum(c.Next, margin) > next.From {
			return EpochRule{}, fmt.Errorf("sharding: Add: %w: slot %d is at %d already; begin the epoch at %d or above", ErrEpochUnarmed, slot, c.Next, saturatedSum(c.Next, margin))
		}
	}
	return grown, nil
}

// keepsItsIDs checks that a server may change to the numbering of next before next begins: the ids
// that it then makes must be its own in the last epoch, too.
func (r EpochRule) keepsItsIDs(next Epoch) error {
	last := r.epochs[len(r.epochs)-1]
	step, longer := len(last.Slots), len(next.Slots)
	for i, slot := range next.Slots {
		old := slices.Index(last.Slots, slot)
		if old >= 0 && (longer%step != 0 || (i-old)%step != 0) {
			return fmt.Errorf("slot %d has offset %d and step %d now and would have offset %d and step %d; it needs a step that is a multiple of %[3]d, and an offset that differs by one, so that it can change over before the epoch begins", slot, old+1, step, i+1, longer)
		}
	}
	return nil
}

// Check checks that the servers number by the last epoch. Its error wraps [ErrEpochUnarmed] if a
// server without the epoch's offset and step is within margin of the epoch's first id, or beyond
// it, or if a server that is new in the epoch would number below that id. live are the counters of
// all servers of the last epoch, and of servers that still number although they are not in it.
//
// A step that is a multiple of the epoch's is valid while its ids remain the server's own, so that
// a server can get the step of the following epoch in advance.
func (r EpochRule) Check(margin int64, live []Counter) error {
	if r.slots == 0 {
		return fmt.Errorf("sharding: %w", r.invalid())
	}
	counters, err := bySlot(live)
	if err != nil {
		return fmt.Errorf("sharding: Check: %w", err)
	}
	last := &r.epochs[len(r.epochs)-1]
	var errs []error
	for i, slot := range last.Slots {
		c, known := counters[slot]
		if !known {
			errs = append(errs, fmt.Errorf("sharding: Check: %w: the counter of slot %d is missing; pass it", ErrEpochUnarmed, slot))
			continue
		}
		errs = append(errs, r.armed(last, i+1, c, margin))
	}
	for _, slot := range slices.Sorted(maps.Keys(counters)) {
		c := counters[slot]
		if !slices.Contains(last.Slots, slot) && saturatedSum(c.Next, margin) > last.From {
			errs = append(errs, fmt.Errorf("sharding: Check: %w: slot %d is at %d and has no ids in the epoch, which begins at %d; stop its inserts", ErrEpochUnarmed, slot, c.Next, last.From))
		}
	}
	return errors.Join(errs...)
}

// armed checks one server of the last epoch, where it has this offset.
func (r EpochRule) armed(last *Epoch, offset int, c Counter, margin int64) error {
	step := len(last.Slots)
	if c.Step > 0 && c.Step%step == 0 && c.Offset >= 1 && c.Offset <= c.Step && (c.Offset-offset)%step == 0 {
		if c.Next < last.From && r.isNew(c.Slot) {
			return fmt.Errorf("sharding: Check: %w: slot %d is new in the epoch and is at %d; set its counter to %d or above", ErrEpochUnarmed, c.Slot, c.Next, last.From)
		}
		return nil
	}
	if !r.isNew(c.Slot) && saturatedSum(c.Next, margin) <= last.From {
		return nil
	}
	return fmt.Errorf("sharding: Check: %w: slot %d is at %d with offset %d and step %d, and the epoch begins at %d; stop its inserts until it has offset %d and step %d",
		ErrEpochUnarmed, c.Slot, c.Next, c.Offset, c.Step, last.From, offset, step)
}

// isNew reports whether the slot made no ids before the last epoch.
func (r EpochRule) isNew(slot Slot) bool {
	former := r.epochs[:len(r.epochs)-1]
	return len(former) > 0 && !slices.ContainsFunc(former, func(e Epoch) bool { return slices.Contains(e.Slots, slot) })
}

func bySlot(live []Counter) (map[Slot]Counter, error) {
	counters := make(map[Slot]Counter, len(live))
	for _, c := range live {
		if _, twice := counters[c.Slot]; twice {
			return nil, fmt.Errorf("the counter of slot %d is given twice", c.Slot)
		}
		counters[c.Slot] = c
	}
	return counters, nil
}

func saturatedSum(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
