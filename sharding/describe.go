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

// The kinds of rules have the names of the functions that create them.
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
	KindOther      Kind = "other" // Func, and rules of other packages
)

// Keys is the type of the keys that a rule accepts, which its column must hold.
type Keys string

// The types of keys. Text that is an integer counts as an integer.
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

// Description describes a rule in numbers, for a translation into the terms of another system.
// Fields that do not apply to a kind are zero.
type Description struct {
	Kind  Kind
	Slots int // of every kind
	// Keys is the type of the keys. All kinds except KindOther have it.
	Keys Keys

	// Shift and Width are the bits that make the slot: the Width bits above the
	// lowest Shift ones. KindLow, whose Shift is 0, and KindBits have them.
	Shift, Width int
	// Offset and Step are the arguments of OffsetStep, for KindOffsetStep.
	Offset, Step int
}

// Describe describes a rule of this package. For any other rule, Kind is KindOther and only the
// number of slots is known.
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

// Listed returns the texts of a [List] of texts and their slots, and nil for other rules. The
// caller owns the map.
func Listed(r Rule) map[string]Slot {
	if l, ok := r.(*list); ok && len(l.texts) > 0 {
		return maps.Clone(l.texts)
	}
	return nil
}

// SQL returns an SQL expression for the slot modulo n. The SQL expression value must be a 64-bit
// integer: on PostgreSQL add a cast to BIGINT, because shifts of a 32-bit column wrap around. n
// divides Slots. The expression is correct for negative numbers, too, in all dialects. SQL reports
// false for rules that SQL cannot express.
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

// floorModSQL corrects the remainder of SQL, which is negative for negative numbers.
func floorModSQL(value string, n, shift int) string {
	return fmt.Sprintf("((%s %% %d + %d) %% %[2]d)", value, n, n+shift)
}

// describeMod describes OffsetStep(n, n) as Mod(n), because they are equal.
func (d *Description) describeMod(r mod) {
	d.Kind = KindMod
	if r.shift != 0 {
		d.Kind, d.Step = KindOffsetStep, int(r.modulus)
		d.Offset = int(uint64(r.modulus) - r.shift)
	}
}

// Texts returns the columns that lead to a shard, Key and those of Also, whose rules distinguish
// texts by their bytes. If such a column holds texts, it should compare bytes, as utf8mb4_bin does.
// Under a collation that ignores case, rows that one table would find together are on different
// shards. Only a [List] may use another collation, if its texts differ under it.
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

// Cycle returns the targets by slot, as many as there are before the map repeats them: slot s of
// the table is on Cycle()[s % len(Cycle())]. The table must be one that [New] has accepted.
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
