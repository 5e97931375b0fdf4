// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
)

// Slot is a logical bucket of a table, from 0 to Rule.Slots()-1.
type Slot int

// MaxSlots is the largest number of slots a rule may have.
const MaxSlots = 1 << 16

// Rule says which slot a key belongs to. A rule is pure and deterministic, as
// rows stay where it once put them, and safe for concurrent use.
//
// Slot accepts a key as the database would: unless a rule of this package says
// otherwise, it takes every integer kind, named types, pointers, decimal text as
// string or []byte, and driver.Valuers of these. NULL and everything else wraps
// [ErrKeyType].
type Rule interface {
	Slots() int
	Slot(key any) (Slot, error)
}

// Low takes the lowest bits of the key: slot = key & (2^bits-1), from 1 to 16
// bits. It is Mod(2^bits), which anybody can compute in any SQL client
// (id % 1024 for 10 bits).
//
// The slots fill evenly only when the keys' low bits are even, as those of
// segment and of this module's snowflake generator are; generators that start
// their sequence at 0 in each millisecond put nearly all rows into slot 0.
func Low(bits int) Rule {
	if bits < 1 || bits > 16 {
		return invalid(fmt.Sprintf("Low(%d): bits must be from 1 to 16", bits))
	}
	return low(1)<<bits - 1
}

// Bits takes width bits above the lowest shift ones: slot = key >> shift &
// (2^width-1). It is for ids that carry their slot elsewhere than at the end, as
// those with a sequence in the lowest bits do. width is from 1 to 16, and
// shift+width at most 64.
func Bits(shift, width int) Rule {
	if width < 1 || width > 16 || shift < 0 || shift > 64-width {
		return invalid(fmt.Sprintf("Bits(%d, %d): width must be from 1 to 16, and shift from 0 to 64-width", shift, width))
	}
	return middle{shift: uint8(shift), mask: 1<<width - 1}
}

// Mod takes the key modulo n, from 1 to [MaxSlots]. It is never negative:
// slot -1 modulo 4 is 3, as with Low and unlike SQL's %.
func Mod(n int) Rule {
	if n < 1 || n > MaxSlots {
		return invalid(fmt.Sprintf("Mod(%d): n must be from 1 to %d", n, MaxSlots))
	}
	return mod{n: uint64(n)}
}

// OffsetStep is the rule of ids made by servers that number offset, offset+step,
// … (auto_increment_offset and auto_increment_increment): the ids offset,
// offset+step, … are slot 0, offset+1, offset+1+step, … slot 1, and so on.
// step is from 1 to [MaxSlots], offset from 1 to step.
func OffsetStep(offset, step int) Rule {
	if step < 1 || step > MaxSlots || offset < 1 || offset > step {
		return invalid(fmt.Sprintf("OffsetStep(%d, %d): step must be from 1 to %d and offset from 1 to step", offset, step, MaxSlots))
	}
	return mod{n: uint64(step), shift: uint64(step - offset)}
}

var (
	_ Rule = low(0)
	_ Rule = middle{}
	_ Rule = mod{}
	_ Rule = invalid("")
)

// low is the mask of a Low rule.
type low uint64

func (r low) Slots() int { return int(r) + 1 }

func (r low) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	return Slot(k.bits & uint64(r)), nil
}

// middle is a Bits rule. Keys are two's complement, so negative ones have bits
// like all others.
type middle struct {
	shift uint8
	mask  uint16
}

func (r middle) Slots() int { return int(r.mask) + 1 }

func (r middle) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	return Slot(uint16(k.bits>>(r.shift&63)) & r.mask), nil
}

// mod is (key + shift) modulo n; the sum is taken after the modulo, as it
// could overflow before.
type mod struct {
	n, shift uint64
}

func (r mod) Slots() int { return int(r.n) }

func (r mod) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	return Slot((k.floorMod(r.n) + r.shift) % r.n), nil
}

// invalid is a rule whose parameters make no sense. [New] reports it; until
// then it has no slots and places nothing.
type invalid string

func (invalid) Slots() int { return 0 }

func (r invalid) check() error { return errors.New(string(r)) }

func (r invalid) Slot(any) (Slot, error) {
	return 0, fmt.Errorf("%s: %w", string(r), ErrNoSlot)
}
