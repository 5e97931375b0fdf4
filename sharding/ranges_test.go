// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestRangesPutAKeyAboveAllBoundsThatItReaches(t *testing.T) {
	for range 200 {
		var bounds []int64
		for range rand.IntN(20) {
			bounds = append(bounds, rand.Int64N(100)-50)
		}
		slices.Sort(bounds)
		bounds = slices.Compact(bounds)
		r := sharding.Ranges(bounds...)
		for key := int64(-60); key < 60; key++ {
			want := 0
			for _, b := range bounds {
				if b <= key {
					want++
				}
			}
			if got := slot(t, r, key); int(got) != want {
				t.Fatalf("%v: %d is in slot %d, want %d", bounds, key, got, want)
			}
		}
		if got := slot(t, r, uint64(math.MaxUint64)); int(got) != len(bounds) {
			t.Fatalf("%v: the highest key is in slot %d", bounds, got)
		}
	}
}

func TestAListPlacesWhatItNamesAndNothingElse(t *testing.T) {
	texts := sharding.List(map[namedText]sharding.Slot{"de": 0, "fr": 0, "jp": 1})
	if texts.Slots() != 2 || slot(t, texts, "fr") != 0 || slot(t, texts, []byte("jp")) != 1 {
		t.Error("a named text is misplaced")
	}
	numbers := sharding.List(map[int64]sharding.Slot{-1: 2, 5: 1, 7: 0})
	if slot(t, numbers, "5") != 1 || slot(t, numbers, int8(-1)) != 2 {
		t.Error("a named number is misplaced")
	}
	for _, c := range []struct {
		rule sharding.Rule
		key  any
		want error
	}{
		{texts, "de ", sharding.ErrNoSlot}, {texts, "DE", sharding.ErrNoSlot}, {texts, "", sharding.ErrNoSlot}, {texts, 5, sharding.ErrKeyType}, {texts, nil, sharding.ErrKeyType},
		{numbers, 6, sharding.ErrNoSlot}, {numbers, "x", sharding.ErrKeyType},
		{numbers, uint64(math.MaxUint64), sharding.ErrNoSlot}, // the bits of -1
	} {
		if s, err := c.rule.Slot(c.key); !errors.Is(err, c.want) {
			t.Errorf("%v (%T) gives slot %d, error %v", c.key, c.key, s, err)
		}
	}
}

func TestFuncGetsPlainKeysAndIsHeldToItsSlots(t *testing.T) {
	var got any
	r := sharding.Func(2, func(key any) (sharding.Slot, error) {
		got = key
		if key == int64(9) {
			return 9, nil
		}
		return 1, nil
	})
	five := int32(5)
	for _, c := range []struct{ key, want any }{
		{&five, int64(5)}, {namedUint(5), int64(5)}, {uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{namedBytes("x"), "x"}, {valuerInt(4), int64(5)}, {noon, noon}, {1.5, 1.5},
	} {
		if slot(t, r, c.key) != 1 || got != c.want {
			t.Errorf("%v (%T) arrives as %v (%T)", c.key, c.key, got, got)
		}
	}
	got = "untouched"
	for _, null := range []any{nil, []byte(nil), sql.NullString{}, (*int)(nil)} {
		if _, err := r.Slot(null); !errors.Is(err, sharding.ErrKeyType) || got != "untouched" {
			t.Errorf("NULL as %T: %v, f got %v", null, err, got)
		}
	}
	if _, err := r.Slot(9); !errors.Is(err, sharding.ErrNoSlot) {
		t.Errorf("slot 9 of 2: %v", err)
	}
}
