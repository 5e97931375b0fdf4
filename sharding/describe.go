// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Kind names a rule of this package; see [Describe].
type Kind string

// The kinds of rules, called like the functions that make them.
const (
	KindLow        Kind = "low"
	KindBits       Kind = "bits"
	KindMod        Kind = "mod"
	KindOffsetStep Kind = "offset_step"
	KindHash       Kind = "hash"
	KindHashText   Kind = "hash_text"
	KindCompat     Kind = "compat"
	KindCompatText Kind = "compat_text"
	KindRanges     Kind = "ranges"
	KindEpochs     Kind = "epochs"
	KindList       Kind = "list"
	KindInterval   Kind = "interval"
	KindOther      Kind = "other" // Func, and rules that are not of this package
)

// Keys is what a rule takes for a key, and so what its column has to hold.
type Keys string

// What rules take. Texts that are integers count as integers.
const (
	KeysUnknown  Keys = "" // of KindOther
	KeysIntegers Keys = "integers"
	KeysTexts    Keys = "texts"
	KeysTimes    Keys = "times"
)

func keysOf(r Rule, kind Kind) Keys {
	switch kind {
	case KindHashText, KindCompatText:
		return KeysTexts
	case KindInterval:
		return KeysTimes
	case KindList:
		if l, ok := r.(*list); ok && len(l.texts) > 0 {
			return KeysTexts
		}
	case KindOther:
		return KeysUnknown
	}
	return KeysIntegers
}

// Description is what a rule computes, in numbers, for those who say it in the
// terms of another system. Fields that a kind does not name are zero.
type Description struct {
	Kind  Kind
	Slots int // of every kind
	// Keys is what the rule takes for a key. All kinds but KindOther have it.
	Keys Keys

	// Shift and Width are the bits that make the slot: the Width bits above the
	// lowest Shift ones. KindLow, whose Shift is 0, and KindBits have them.
	Shift, Width int
	// Offset and Step are those of KindOffsetStep.
	Offset, Step int
}

// Describe says what a rule of this package computes. Of a rule that is none of
// them it knows the number of slots only, and Kind is KindOther.
func Describe(r Rule) Description {
	d := Description{Kind: KindOther, Slots: r.Slots()}
	switch r := r.(type) {
	case low:
		d.Kind, d.Width = KindLow, bits.Len64(uint64(r))
	case middle:
		d.Kind, d.Shift, d.Width = KindBits, int(r.shift), bits.Len16(r.mask)
	case mod:
		d.describeMod(r)
	case hash:
		d.Kind = KindHash
	case hashText:
		d.Kind = KindHashText
	case compat:
		d.Kind = KindCompat
	case compatText:
		d.Kind = KindCompatText
	case ranges:
		d.Kind = KindRanges
	case EpochRule:
		d.Kind = KindEpochs
	case *list:
		d.Kind = KindList
	case IntervalRule:
		d.Kind = KindInterval
	}
	d.Keys = keysOf(r, d.Kind)
	return d
}

// Listed returns the texts of a [List] of texts, and their slots; of other rules nil.
// The map is the caller's.
func Listed(r Rule) map[string]Slot {
	if l, ok := r.(*list); ok && len(l.texts) > 0 {
		return maps.Clone(l.texts)
	}
	return nil
}

// SQL returns the slot modulo n as an expression of the SQL expression value, which
// must be a 64-bit integer: on PostgreSQL a cast to BIGINT, where a column of 32
// bits would be shifted round. n divides Slots. It is right for negative numbers,
// too, in all dialects. It reports false for rules that SQL cannot say.
func (d Description) SQL(value string, n int) (string, bool) {
	switch d.Kind {
	case KindLow:
		return fmt.Sprintf("(%s & %d)", value, n-1), true
	case KindBits:
		return fmt.Sprintf("((%s >> %d) & %d)", value, d.Shift, n-1), true
	case KindMod:
		return floorModSQL(value, n, 0), true
	case KindOffsetStep:
		return floorModSQL(value, n, (d.Step-d.Offset)%n), true
	}
	return "", false
}

// floorModSQL: the remainder of SQL is negative for negative numbers.
func floorModSQL(value string, n, shift int) string {
	return fmt.Sprintf("((%s %% %d + %d) %% %[2]d)", value, n, n+shift)
}

// describeMod: OffsetStep(n, n) is Mod(n), which is how it is told.
func (d *Description) describeMod(r mod) {
	d.Kind = KindMod
	if r.shift != 0 {
		d.Kind, d.Step = KindOffsetStep, int(r.n)
		d.Offset = int(r.n - r.shift)
	}
}

// Texts returns the columns that lead to a shard, Key and those of Also, whose rules
// tell texts apart by their bytes. Where such a column holds texts it should compare
// bytes, too, as utf8mb4_bin does: under a collation that ignores case, rows that
// one table finds together lie on different shards. A [List] alone may have another
// collation under which its texts differ.
func (t *Table) Texts() []string {
	var columns []string
	for _, leading := range append([]Alt{{Column: t.Key, Rule: t.Rule}}, t.Also...) {
		if leading.Rule == nil {
			continue
		}
		switch Describe(leading.Rule).Keys {
		case KeysTexts, KeysUnknown:
			columns = append(columns, leading.Column)
		}
	}
	return columns
}

// Cycle returns the targets by slot, as many as there are before the map repeats
// them: slot s of the table is on Cycle()[s % len(Cycle())]. The table must be one
// that [New] accepted.
func (t *Table) Cycle() []Target {
	targets := make([]Target, t.Rule.Slots())
	for s := range targets {
		targets[s], _ = t.Map.Target(Slot(s)) // New accepts complete maps only
	}
	for n := 1; n < len(targets); n++ {
		if len(targets)%n == 0 && slices.Equal(targets[n:], targets[:len(targets)-n]) {
			return targets[:n]
		}
	}
	return targets
}
