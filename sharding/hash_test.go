// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// The slots follow from published vectors of XXH64: that of "123456789" is
// 0x8CB841DB40E6AE83.
func TestHashIsTheXXH64OfTheDecimalText(t *testing.T) {
	for text, sum := range map[string]uint64{"123456789": 0x8CB841DB40E6AE83} {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, slots := range []int{1, 2, 1000, 1024, sharding.MaxSlots} {
			want := sharding.Slot(sum % uint64(slots))
			for _, key := range []any{n, uint32(n), text, []byte(text), namedText(text)} {
				if got := slot(t, sharding.Hash(slots), key); got != want {
					t.Errorf("Hash(%d) of %v (%T): slot %d, want %d", slots, key, key, got, want)
				}
			}
			if got := slot(t, sharding.HashText(slots), text); got != want {
				t.Errorf("HashText(%d) of %q: slot %d, want %d", slots, text, got, want)
			}
		}
	}
}

// In an integer column "05" equals 5, in a text column it does not. A wrong guess would read the
// wrong shard.
func TestHashRefusesIntegersInOtherThanTheirOwnForm(t *testing.T) {
	for _, key := range []any{"05", "+5", "-0", []byte("05"), namedText("007")} {
		if s, err := sharding.Hash(8).Slot(key); !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "HashText") {
			t.Errorf("%v gives slot %d, error %v", key, s, err)
		}
	}
	slot(t, sharding.HashText(8), "05")
}

func TestHashTextAcceptsOnlyTextWithoutTrailingSpaces(t *testing.T) {
	r := sharding.HashText(1024)
	if slot(t, r, "berlin") != slot(t, r, namedBytes("berlin")) || slot(t, r, "") < 0 {
		t.Error("text and bytes differ")
	}
	if slot(t, r, []byte("berlin ")) == slot(t, r, namedBytes("berlin")) { // a column of bytes distinguishes them
		t.Error("a space at the end of bytes does not count")
	}
	for _, key := range []any{5, nil, []byte(nil), "berlin ", namedText(" "), 1.5, noon} {
		if s, err := r.Slot(key); !errors.Is(err, sharding.ErrKeyType) {
			t.Errorf("%v gives slot %d, error %v", key, s, err)
		}
	}
}

// theirs implements go-gorm/sharding's default rule: it returns the number in the suffix of the
// table.
func theirs(key any, n int) (suffix int) {
	switch key := key.(type) {
	case int64:
		return int(math.Mod(float64(key), float64(n))) // exact below 2^53, and with the sign of the key
	case string:
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			return theirs(id, n)
		}
		return int(uint64(crc32.Checksum([]byte(key), crc32.MakeTable(crc32.IEEE))) % uint64(n))
	}
	panic("bug: no such key")
}

func TestCompatIsGoGormShardingsDefault(t *testing.T) {
	integers := []any{int64(0), int64(5), int64(-5), int64(1<<52 + 3), "0", "17", "-17", "+17", "017"}
	texts := []any{
		"0", "17", "-17", "+17", "017", "abc", "", " 5", "1_000", "0x10", "ä",
		"9223372036854775808", "18446744073709551615", "-9223372036854775809", "3.0", "1e3",
	}
	for range 500 {
		integers = append(integers, rand.Int64N(1<<52)-1<<51)
		texts = append(texts, strconv.FormatUint(rand.Uint64()>>12, 36))
	}
	for _, n := range []int{1, 2, 3, 10, 64, 1000} {
		for _, c := range []struct {
			rule sharding.Rule
			keys []any
		}{{sharding.Compat(n), integers}, {sharding.CompatText(n), texts}} {
			for _, key := range c.keys {
				got, err := c.rule.Slot(key)
				want := theirs(key, n)
				if want < 0 && !errors.Is(err, sharding.ErrNoSlot) || want >= 0 && (err != nil || int(got) != want) {
					t.Errorf("%+v of %#v: slot %d, error %v; theirs is %d", sharding.Describe(c.rule), key, got, err, want)
				}
			}
		}
	}
	if _, err := sharding.Compat(4).Slot(-1); err == nil || !strings.Contains(err.Error(), "with the number -1") {
		t.Error(err)
	}
	if slot(t, sharding.Compat(4), int64(math.MinInt64)) != 0 {
		t.Error("4 divides the lowest integer")
	}
	if highest := slot(t, sharding.Compat(7), uint64(math.MaxUint64)); highest != slot(t, sharding.Compat(7), "18446744073709551615") ||
		int(highest) != theirs("18446744073709551615", 7) {
		t.Error("an integer above int64 is not its text")
	}
	for _, rule := range []sharding.Rule{sharding.Compat(4), sharding.CompatText(4)} {
		if _, err := rule.Slot(nil); !errors.Is(err, sharding.ErrKeyType) {
			t.Error(err)
		}
	}
}

// A column of texts compares 5 with numbers, and finds '5', '05' and '5abc'; most
// collations ignore spaces at the end.
func TestCompatTextAcceptsOnlyTextWithoutTrailingSpaces(t *testing.T) {
	for _, key := range []any{5, uint64(math.MaxUint64), "5 ", "berlin ", []byte(" "), 1.5, noon, true} {
		if s, err := sharding.CompatText(8).Slot(key); !errors.Is(err, sharding.ErrKeyType) {
			t.Errorf("%v (%T) gives slot %d, error %v", key, key, s, err)
		}
	}
}

// An integer column converts texts: MySQL reads 3 from each of these, and 0 from the
// rest.
func TestCompatRefusesTextThatAColumnOfIntegersConverts(t *testing.T) {
	for _, key := range []any{
		"3 ", " 3", "\t3", "3\n", "3e0", "3E0", "3.0", "3.", "0.3e1", "0x3", "0b11", "3abc", "1_0", "--3", "\u0663", "\uff13", "", "abc",
		[]byte("3 "), namedText("3e0"), "09223372036854775808",
	} {
		if s, err := sharding.Compat(8).Slot(key); !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "CompatText") {
			t.Errorf("%q gives slot %d, error %v", key, s, err)
		}
	}
	for _, key := range []any{3, "3", "+3", "003", []byte("3")} {
		if got := slot(t, sharding.Compat(8), key); got != 3 {
			t.Errorf("%v (%T) is in slot %d", key, key, got)
		}
	}
}
