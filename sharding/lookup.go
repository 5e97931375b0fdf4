// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"maps"
	"math/bits"
	"slices"
)

// lookup is an immutable map of integers to slots that is read faster than a Go map: a hash table
// of which at most half is used, in which a key is at the index of its hash or after it.
type lookup struct {
	places []place // a power of two
	shift  uint8   // 64 minus the number of bits of an index
}

type place struct {
	key   int64
	taken bool
	slot  uint16
}

// newLookup creates equal tables for equal slots, so that rules can be compared.
func newLookup(slots map[int64]Slot) lookup {
	width := max(bits.Len(uint(2*len(slots))), 1)
	l := lookup{places: make([]place, 1<<width), shift: uint8(64 - width)}
	for _, key := range slices.Sorted(maps.Keys(slots)) {
		i := l.first(key)
		for l.places[i].taken {
			i = l.next(i)
		}
		l.places[i] = place{key, true, uint16(slots[key])}
	}
	return l
}

// of returns the slot of a key, or false.
func (l *lookup) of(key int64) (Slot, bool) {
	for i := l.first(key); ; i = l.next(i) {
		switch p := &l.places[i]; {
		case !p.taken:
			return 0, false
		case p.key == key:
			return Slot(p.slot), true
		}
	}
}

// first spreads keys by the golden ratio, which separates neighbouring keys.
func (l *lookup) first(key int64) int {
	return int(uint64(key) * 0x9E3779B97F4A7C15 >> (l.shift & 63))
}

func (l *lookup) next(i int) int { return (i + 1) & (len(l.places) - 1) }
