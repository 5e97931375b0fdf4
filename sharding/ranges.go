// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Ranges divides the integers at ascending bounds: keys below bounds[0] are in slot 0, keys from
// bounds[i] on and below the next bound are in slot i+1. Ranges() has one slot.
func Ranges(bounds ...int64) Rule {
	if len(bounds) >= MaxSlots {
		return invalid(fmt.Sprintf("Ranges: %d bounds; at most %d are possible", len(bounds), MaxSlots-1))
	}
	for i := 1; i < len(bounds); i++ {
		if bounds[i] <= bounds[i-1] {
			return invalid(fmt.Sprintf("Ranges: bound %d is not above the bound %d before it", bounds[i], bounds[i-1]))
		}
	}
	return ranges(slices.Clone(bounds))
}

// List assigns to each value the slot that the map names: countries to regions, tenants to their
// databases. Slots are numbered from 0, and each must have a value. Other values are refused with
// [ErrNoSlot].
//
// A list of integers accepts keys as other rules do. A list of texts compares bytes. Its column may
// have any collation under which texts of different slots differ; schema.Doctor, the inspection of
// a migration and gormplugin.Check ask the server for that. Under a collation that ignores case,
// "de" and "fr" differ, and "DE" is refused. Texts that differ only in spaces at the end, which
// most collations ignore, must be in one slot.
func List[K interface{ ~int | ~int64 | ~string }](slots map[K]Slot) Rule {
	n, err := countSlots(slices.Collect(maps.Values(slots)))
	if err != nil {
		return invalid(fmt.Sprintf("List: %v", err))
	}
	r := list{n: n, integers: map[int64]Slot{}, texts: map[string]Slot{}}
	for value, slot := range slots {
		s, err := read(value)
		switch {
		case err != nil: // the error of a caller's driver.Valuer
			return invalid(fmt.Sprintf("List: %v", err))
		case s.kind == isText:
			r.texts[s.text] = slot
		case s.kind == isInteger && !s.integer.huge():
			r.integers[int64(s.integer.bits)] = slot
		default:
			return invalid(fmt.Sprintf("List: %s is neither an integer nor text", s.shown()))
		}
	}
	if a, b, differ := paddedApart(r.texts); differ {
		return invalid(fmt.Sprintf("List: %q and %q are in different slots, but equal under most collations", a, b))
	}
	return &r
}

// paddedApart returns two texts that differ only in spaces at the end and have different slots.
func paddedApart(slots map[string]Slot) (a, b string, differ bool) {
	bare := map[string]string{}
	for _, text := range slices.Sorted(maps.Keys(slots)) {
		trimmed := strings.TrimRight(text, " ")
		if first, twice := bare[trimmed]; twice && slots[first] != slots[text] {
			return first, text, true
		}
		bare[trimmed] = text
	}
	return "", "", false
}

// countSlots refuses numbers with gaps.
func countSlots(slots []Slot) (int, error) {
	slices.Sort(slots)
	slots = slices.Compact(slots)
	if len(slots) == 0 || len(slots) > MaxSlots {
		return 0, fmt.Errorf("%d slots; from 1 to %d are possible", len(slots), MaxSlots)
	}
	for i, s := range slots {
		if int(s) != i {
			return 0, fmt.Errorf("slot %d has no value; number the slots from 0 without gaps", i)
		}
	}
	return len(slots), nil
}

// Func returns the caller's own rule with n slots, from 1 to [MaxSlots]. f must be pure and safe
// for concurrent use. It gets the key without the types around it: int64, uint64 for larger
// integers, string (also for []byte), time.Time, or any other type unchanged. It never gets NULL.
// It returns a slot from 0 to n-1, or an error, which should wrap [ErrKeyType].
//
// f must know how the column converts keys: a text that an integer column converts ("3e0"), spaces
// at the end, letters that a collation treats as equal, and times that are rounded or come in
// several time zones. Two keys that the database treats as equal must have one slot, or be refused.
func Func(n int, f func(key any) (Slot, error)) Rule {
	if n < 1 || n > MaxSlots || f == nil {
		return invalid(fmt.Sprintf("Func(%d, f): n must be from 1 to %d, and f not nil", n, MaxSlots))
	}
	return &function{n, f}
}

var (
	_ Rule = ranges(nil)
	_ Rule = (*list)(nil)
	_ Rule = (*function)(nil)
)

type ranges []int64

func (r ranges) Slots() int { return len(r) + 1 }

func (r ranges) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	return Slot(sort.Search(len(r), func(i int) bool { return k.less(r[i]) })), nil
}

type list struct {
	n        int
	integers map[int64]Slot // one of the two is empty
	texts    map[string]Slot
}

func (r *list) Slots() int { return r.n }

func (r *list) Slot(key any) (Slot, error) {
	if len(r.texts) > 0 {
		return r.ofText(key)
	}
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	if slot, ok := r.integers[int64(k.bits)]; ok && !k.huge() {
		return slot, nil
	}
	return 0, fmt.Errorf("%s: %w", k.appendTo(nil), ErrNoSlot)
}

func (r *list) ofText(key any) (Slot, error) {
	s, err := read(key)
	if err == nil && s.kind != isText {
		err = s.mistaken("text is expected")
	}
	if err != nil {
		return 0, err
	}
	if slot, ok := r.texts[s.text]; ok {
		return slot, nil
	}
	return 0, fmt.Errorf("%q: %w", s.text, ErrNoSlot)
}

type function struct {
	n int
	f func(any) (Slot, error)
}

func (r *function) Slots() int { return r.n }

func (r *function) Slot(key any) (Slot, error) {
	switch key.(type) {
	case int64, string: // already of the types that f gets, without another allocation
	default:
		s, err := read(key)
		if err != nil {
			return 0, err
		}
		key = s.value()
	}
	slot, err := r.f(key)
	if err == nil && (slot < 0 || int(slot) >= r.n) {
		err = fmt.Errorf("slot %d: %w", slot, ErrNoSlot)
	}
	if err != nil {
		return 0, err
	}
	return slot, nil
}
