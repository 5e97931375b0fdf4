// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

type (
	namedInt    int64
	namedUint   uint16
	namedText   string
	namedBytes  []byte
	valuerInt   int64
	valuerChain struct{ inner driver.Valuer }
	valuerFails struct{}
)

func (v valuerInt) Value() (driver.Value, error)   { return int64(v) + 1, nil }
func (v valuerChain) Value() (driver.Value, error) { return v.inner, nil }
func (valuerFails) Value() (driver.Value, error)   { return nil, errors.New("cannot say") }

func rules() map[string]sharding.Rule {
	return map[string]sharding.Rule{
		"Low(1)": sharding.Low(1), "Low(10)": sharding.Low(10), "Low(16)": sharding.Low(16),
		"Mod(1)": sharding.Mod(1), "Mod(3)": sharding.Mod(3), "Mod(1000)": sharding.Mod(1000),
		"OffsetStep(1,1)": sharding.OffsetStep(1, 1), "OffsetStep(2,3)": sharding.OffsetStep(2, 3),
		"OffsetStep(7,7)": sharding.OffsetStep(7, 7),
		"Bits(0,3)":       sharding.Bits(0, 3), "Bits(12,10)": sharding.Bits(12, 10), "Bits(54,10)": sharding.Bits(54, 10),
		"Hash(1)": sharding.Hash(1), "Hash(1000)": sharding.Hash(1000),
		"Ranges()": sharding.Ranges(), "Ranges(-5,0,5,1000)": sharding.Ranges(-5, 0, 5, 1000),
		"Epochs": sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: 1000, Slots: []sharding.Slot{0, 1}}),
	}
}

// integers takes every integer as Low does, and text too where it is one.
func integersAndMore() map[string]sharding.Rule {
	all := rules()
	all["List"] = sharding.List(map[int]sharding.Slot{5: 1, 6: 0})
	all["Compat(7)"] = sharding.Compat(7)
	all["Func"] = sharding.Func(8, func(key any) (sharding.Slot, error) {
		if v, ok := key.(int64); ok {
			return sharding.Slot(v & 7), nil
		}
		if v, ok := key.(string); ok {
			n, err := strconv.Atoi(v)
			return sharding.Slot(n & 7), err
		}
		return 0, sharding.ErrKeyType
	})
	return all
}

func slot(t *testing.T, r sharding.Rule, key any) sharding.Slot {
	t.Helper()
	s, err := r.Slot(key)
	if err != nil {
		t.Fatalf("key %v (%T): %v", key, key, err)
	}
	if s < 0 || int(s) >= r.Slots() {
		t.Fatalf("key %v (%T): slot %d of %d", key, key, s, r.Slots())
	}
	return s
}

func TestEveryKindOfIntegerAgrees(t *testing.T) {
	five := int64(5)
	pointer, byPointer := &five, valuerInt(4)
	keys := []any{
		int(5), int8(5), int16(5), int32(5), int64(5), uint(5), uint8(5), uint16(5), uint32(5), uint64(5), uintptr(5),
		namedInt(5), namedUint(5), "5", []byte("5"), namedText("5"), namedBytes("5"), json.Number("5"), sql.RawBytes("5"),
		pointer, &pointer, valuerInt(4), &byPointer, sql.NullInt64{Int64: 5, Valid: true},
		sql.NullString{String: "5", Valid: true}, sql.Null[int64]{V: 5, Valid: true}, time.Duration(5),
	}
	for name, r := range integersAndMore() {
		want := slot(t, r, int64(5))
		for _, key := range keys {
			if got := slot(t, r, key); got != want {
				t.Errorf("%s: %T gives slot %d, int64 gives %d", name, key, got, want)
			}
		}
	}
}

func TestNullAndOtherTypesAreRefused(t *testing.T) {
	var nilInt *int64
	var nilValuer *valuerInt
	keys := []any{
		nil, nilInt, &nilInt, nilValuer, []byte(nil), namedBytes(nil), sql.NullInt64{}, sql.NullString{},
		"", "x", "5x", " 5", "5 ", "5\t", "5e0", "5.0", "0x5", "0b101", "1_000", "--5", "\u0665", "\uff15", "\u22125", "NaN", "true",
		"18446744073709551616", "-9223372036854775809", []byte("5e0"), json.Number("5.0"), sql.NullString{String: "5 ", Valid: true}, sql.NullBool{Bool: true, Valid: true},
		1.0, float32(1), true, time.Now(), struct{}{}, []int64{5}, [1]byte{5}, map[string]int{}, valuerFails{}, valuerChain{valuerInt(5)},
		sql.NullFloat64{Float64: 5, Valid: true}, func() {},
	}
	for name, r := range rules() {
		for _, key := range keys {
			if s, err := r.Slot(key); !errors.Is(err, sharding.ErrKeyType) {
				t.Errorf("%s: %T %v gives slot %d, error %v", name, key, key, s, err)
			}
		}
	}
}

func TestRulesAreTotalAndAgreeWithExactArithmetic(t *testing.T) {
	keys := []*big.Int{
		big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(math.MinInt64), big.NewInt(math.MinInt64 + 1),
		big.NewInt(math.MaxInt64), new(big.Int).SetUint64(math.MaxInt64 + 1), new(big.Int).SetUint64(math.MaxUint64),
	}
	for range 2000 {
		keys = append(keys, new(big.Int).SetUint64(rand.Uint64()), big.NewInt(rand.Int64()), big.NewInt(-rand.Int64()))
	}
	check := func(name string, r sharding.Rule, offset, step int64) {
		for _, k := range keys {
			// big.Int.Mod is Euclidean, which is floored for a positive modulus.
			want := new(big.Int).Mod(new(big.Int).Sub(k, big.NewInt(offset)), big.NewInt(step)).Int64()
			if got := slot(t, r, native(k)); int64(got) != want {
				t.Fatalf("%s: key %s gives slot %d, want %d", name, k, got, want)
			}
			if got := slot(t, r, k.String()); int64(got) != want {
				t.Fatalf("%s: text %s gives slot %d, want %d", name, k, got, want)
			}
		}
	}
	for bits := 1; bits <= 16; bits++ {
		check(fmt.Sprintf("Low(%d)", bits), sharding.Low(bits), 0, 1<<bits)
		check(fmt.Sprintf("Mod(2^%d)", bits), sharding.Mod(1<<bits), 0, 1<<bits)
	}
	for _, n := range []int{1, 3, 7, 1000, sharding.MaxSlots - 1} {
		check(fmt.Sprintf("Mod(%d)", n), sharding.Mod(n), 0, int64(n))
		for _, offset := range []int{1, n/2 + 1, n} {
			check(fmt.Sprintf("OffsetStep(%d,%d)", offset, n), sharding.OffsetStep(offset, n), int64(offset), int64(n))
		}
	}
}

func native(k *big.Int) any {
	if k.IsInt64() {
		return k.Int64()
	}
	return k.Uint64()
}

func TestBitsAgreesWithExactArithmetic(t *testing.T) {
	two64 := new(big.Int).Lsh(big.NewInt(1), 64)
	for _, shift := range []int{0, 1, 12, 31, 32, 47, 63} {
		for width := 1; width <= min(16, 64-shift); width++ {
			r := sharding.Bits(shift, width)
			for range 50 {
				k := big.NewInt(rand.Int64() - rand.Int64())
				twos := new(big.Int).Mod(k, two64)
				want := new(big.Int).And(twos.Rsh(twos, uint(shift)), big.NewInt(1<<width-1)).Int64()
				if got := slot(t, r, native(k)); int64(got) != want {
					t.Fatalf("Bits(%d, %d): key %s gives slot %d, want %d", shift, width, k, got, want)
				}
			}
		}
	}
}

func TestEveryRuleIsTotalOnIntegersAndUsesEverySlot(t *testing.T) {
	for name, r := range rules() {
		reached := map[sharding.Slot]bool{}
		for _, key := range []any{int64(math.MinInt64), int64(math.MaxInt64), uint64(math.MaxUint64), int64(-1), 0} {
			reached[slot(t, r, key)] = true
			if got := slot(t, r, fmt.Sprint(key)); got != slot(t, r, key) {
				t.Errorf("%s: the text of %v gives slot %d", name, key, got)
			}
		}
		for range 40 * r.Slots() {
			reached[slot(t, r, int64(rand.Uint64()))] = true
		}
		for key := int64(-10); key < 2000; key++ {
			reached[slot(t, r, key)] = true
		}
		if len(reached) != r.Slots() {
			t.Errorf("%s: %d slots of %d are reached", name, len(reached), r.Slots())
		}
	}
}

func TestOffsetStepPutsEachServersIdsIntoOneSlot(t *testing.T) {
	r := sharding.OffsetStep(1, 3)
	for id := int64(1); id < 100; id++ {
		if got := slot(t, r, id); int64(got) != (id-1)%3 {
			t.Fatalf("id %d: slot %d", id, got)
		}
	}
}

func TestRulesAllocateNothingForIntegersAndText(t *testing.T) {
	for name, r := range rules() {
		for _, key := range []any{int64(1 << 60), -7, uint64(math.MaxUint64), "1152921504606846976"} {
			if n := testing.AllocsPerRun(100, func() { _, _ = r.Slot(key) }); n != 0 {
				t.Errorf("%s: %v allocations for a key of type %T", name, n, key)
			}
		}
	}
	var berlin any = "berlin"
	texts := sharding.HashText(8)
	if n := testing.AllocsPerRun(100, func() { _, _ = texts.Slot(berlin) }); n != 0 {
		t.Errorf("HashText: %v allocations", n)
	}
}

func TestInvalidRulesHaveNoSlotsAndRefuseEveryKey(t *testing.T) {
	for _, r := range []sharding.Rule{
		sharding.Low(0), sharding.Low(-1), sharding.Low(17), sharding.Mod(0), sharding.Mod(-4), sharding.Mod(sharding.MaxSlots + 1),
		sharding.Bits(-1, 3), sharding.Bits(0, 0), sharding.Bits(0, 17), sharding.Bits(60, 5), sharding.Bits(math.MaxInt, 3),
		sharding.Hash(0), sharding.Hash(sharding.MaxSlots + 1), sharding.HashText(0), sharding.Compat(0), sharding.Compat(-1), sharding.CompatText(0),
		sharding.Ranges(1, 1), sharding.Ranges(2, 1), sharding.Ranges(make([]int64, sharding.MaxSlots)...),
		sharding.List(map[int]sharding.Slot{}), sharding.List(map[string]sharding.Slot{"a": 1}), sharding.List(map[string]sharding.Slot{"a": -1, "b": 0}),
		sharding.Interval(noon, noon, time.Hour), sharding.Interval(noon, noon.Add(time.Hour), 0), sharding.Interval(noon, noon.AddDate(400, 0, 0), time.Hour),
		sharding.Interval(noon, noon.AddDate(1, 0, 0), time.Second), sharding.IntervalRule{}, sharding.Interval(noon, noon.Add(time.Hour), time.Minute).WithZone(time.Local),
		sharding.Interval(noon, noon.Add(time.Hour), time.Millisecond), sharding.Interval(noon, noon.Add(time.Hour), time.Minute).WithPrecision(-1),
		sharding.Interval(noon, noon.Add(time.Hour), time.Minute).WithPrecision(7 * time.Second), sharding.List(map[string]sharding.Slot{"a": 0, "a  ": 1}), sharding.Func(0, nil), sharding.Func(1, nil),
		sharding.EpochRule{}, sharding.Epochs(sharding.Epoch{}), sharding.Epochs(sharding.Epoch{From: 1, Slots: []sharding.Slot{0}}),
		sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{1}}), sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0, 0}}),
		sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: 0, Slots: []sharding.Slot{0, 1}}),
		sharding.OffsetStep(0, 2), sharding.OffsetStep(3, 2), sharding.OffsetStep(1, 0), sharding.OffsetStep(1, sharding.MaxSlots+1),
	} {
		if n := r.Slots(); n != 0 {
			t.Errorf("%v has %d slots", r, n)
		}
		if _, err := r.Slot(1); !errors.Is(err, sharding.ErrNoSlot) {
			t.Errorf("%v: %v", r, err)
		}
	}
}

func BenchmarkRule(b *testing.B) {
	var key any = int64(7_311_456_189_226_123_455)
	many := map[int64]sharding.Slot{7_311_456_189_226_123_455: 0}
	for i := range int64(1000) {
		many[i] = sharding.Slot(i % 16)
	}
	all := integersAndMore()
	all["List"] = sharding.List(many)
	for _, name := range []string{"Low(10)", "Bits(12,10)", "Mod(1000)", "OffsetStep(2,3)", "Hash(1000)", "Ranges(-5,0,5,1000)", "Epochs", "List", "Compat(7)", "Func"} {
		r := all[name]
		b.Run(name, func(b *testing.B) {
			if _, err := r.Slot(key); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = r.Slot(key)
			}
		})
	}
	b.Run("text", func(b *testing.B) {
		var key any = strconv.FormatInt(7_311_456_189_226_123_455, 10)
		low := sharding.Low(10)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = low.Slot(key)
		}
	})
}
