// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
)

// Slot is a logical bucket of a table, from 0 to Rule.Slots()-1.
type Slot int

// MaxSlots is the largest number of slots of a rule.
const MaxSlots = 1 << 16

// Rule maps a key to its slot. A rule must be pure and deterministic, because rows stay where it
// has put them, and safe for concurrent use.
//
// Slot accepts a key as the database would: unless a rule of this package says otherwise, it
// accepts every integer type, named types, pointers, decimal text as string or []byte, and
// driver.Valuers of these. NULL and all other values return an error that wraps [ErrKeyType].
type Rule interface {
	Slots() int
	Slot(key any) (Slot, error)
}

// Low takes the lowest bits of the key: slot = key & (2^bits-1), with 1 to 16 bits. It is
// Mod(2^bits), which any SQL client can compute (id % 1024 for 10 bits).
//
// The slots fill evenly only if the keys' low bits are evenly distributed, as those of segment and
// of this module's snowflake generator are. Generators that start their sequence at 0 in each
// millisecond put nearly all rows into slot 0.
func Low(bits int) Rule {
	if bits < 1 || bits > 16 {
		return invalid(fmt.Sprintf("Low(%d): bits must be from 1 to 16", bits))
	}
	return low(1)<<bits - 1
}

// Bits takes width bits above the lowest shift ones: slot = key >> shift & (2^width-1). It is for
// ids whose slot is not in the lowest bits, because those hold a sequence, for example. width is
// from 1 to 16, and shift+width at most 64.
func Bits(shift, width int) Rule {
	if width < 1 || width > 16 || shift < 0 || shift > 64-width {
		return invalid(fmt.Sprintf("Bits(%d, %d): width must be from 1 to 16, and shift from 0 to 64-width", shift, width))
	}
	return middle{shift: uint8(shift), mask: 1<<width - 1}
}

// Mod takes the key modulo n, from 1 to [MaxSlots]. The slot is never negative: key -1 modulo 4 is
// slot 3, as with Low and unlike SQL's %.
func Mod(n int) Rule {
	return counted("Mod", n, mod{modulus: modulus(n)})
}

// OffsetStep is the rule of ids that servers number with offset, offset+step, …
// (auto_increment_offset and auto_increment_increment): the ids offset, offset+step, … are slot 0,
// the ids offset+1, offset+1+step, … are slot 1, and so on. step is from 1 to [MaxSlots], offset
// from 1 to step.
func OffsetStep(offset, step int) Rule {
	if step < 1 || step > MaxSlots || offset < 1 || offset > step {
		return invalid(fmt.Sprintf("OffsetStep(%d, %d): step must be from 1 to %d and offset from 1 to step", offset, step, MaxSlots))
	}
	return mod{modulus(step), uint64(step - offset)}
}

var (
	_ Rule = low(0)
	_ Rule = middle{}
	_ Rule = mod{}
	_ Rule = invalid("")
)

// counted returns the rule called name, unless its number of slots is invalid.
func counted(name string, n int, r Rule) Rule {
	if n < 1 || n > MaxSlots {
		return invalid(fmt.Sprintf("%s(%d): n must be from 1 to %d", name, n, MaxSlots))
	}
	return r
}

// modulus is the number of slots of a rule that computes a number modulo it.
type modulus uint64

func (n modulus) Slots() int { return int(n) }

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

// middle is a Bits rule. Keys are in two's complement, so negative keys have bits like all others.
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

// mod is (key + shift) modulo n. The sum is computed after the modulo, because it could overflow
// before.
type mod struct {
	modulus

	shift uint64
}

func (r mod) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil {
		return 0, err
	}
	n := uint64(r.modulus)
	return Slot((k.floorMod(n) + r.shift) % n), nil
}

// invalid is a rule with invalid parameters. [New] reports it. It has no slots and returns an error
// for each key.
type invalid string

func (invalid) Slots() int { return 0 }

func (r invalid) check() error { return errors.New(string(r)) }

func (r invalid) Slot(any) (Slot, error) {
	return 0, fmt.Errorf("%s: %w", string(r), ErrNoSlot)
}
