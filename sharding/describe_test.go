// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

func TestDescribeNamesEveryRule(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	own := func(any) (sharding.Slot, error) { return 0, nil }
	for _, test := range []struct {
		rule sharding.Rule
		want sharding.Description
	}{
		{sharding.Low(10), sharding.Description{Kind: sharding.KindLow, Keys: sharding.KeysIntegers, Slots: 1024, Width: 10}},
		{sharding.Low(1), sharding.Description{Kind: sharding.KindLow, Keys: sharding.KeysIntegers, Slots: 2, Width: 1}},
		{sharding.Bits(12, 4), sharding.Description{Kind: sharding.KindBits, Keys: sharding.KeysIntegers, Slots: 16, Shift: 12, Width: 4}},
		{sharding.Mod(12), sharding.Description{Kind: sharding.KindMod, Keys: sharding.KeysIntegers, Slots: 12}},
		{sharding.OffsetStep(2, 5), sharding.Description{Kind: sharding.KindOffsetStep, Keys: sharding.KeysIntegers, Slots: 5, Offset: 2, Step: 5}},
		{sharding.OffsetStep(5, 5), sharding.Description{Kind: sharding.KindMod, Keys: sharding.KeysIntegers, Slots: 5}},
		{sharding.Hash(7), sharding.Description{Kind: sharding.KindHash, Keys: sharding.KeysIntegers, Slots: 7}},
		{sharding.HashText(7), sharding.Description{Kind: sharding.KindHashText, Keys: sharding.KeysTexts, Slots: 7}},
		{sharding.Compat(7), sharding.Description{Kind: sharding.KindCompat, Keys: sharding.KeysIntegers, Slots: 7}},
		{sharding.Ranges(1, 2), sharding.Description{Kind: sharding.KindRanges, Keys: sharding.KeysIntegers, Slots: 3}},
		{sharding.CompatText(7), sharding.Description{Kind: sharding.KindCompatText, Keys: sharding.KeysTexts, Slots: 7}},
		{sharding.List(map[int]sharding.Slot{7: 0, 8: 1}), sharding.Description{Kind: sharding.KindList, Keys: sharding.KeysIntegers, Slots: 2}},
		{sharding.List(map[string]sharding.Slot{"de": 0, "fr": 1}), sharding.Description{Kind: sharding.KindList, Keys: sharding.KeysTexts, Slots: 2}},
		{sharding.Interval(from, from.AddDate(0, 0, 3), 24*time.Hour), sharding.Description{Kind: sharding.KindInterval, Keys: sharding.KeysTimes, Slots: 3}},
		{sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0, 1}}), sharding.Description{Kind: sharding.KindEpochs, Keys: sharding.KeysIntegers, Slots: 2}},
		{sharding.Func(9, own), sharding.Description{Kind: sharding.KindOther, Slots: 9}},
	} {
		if got := sharding.Describe(test.rule); got != test.want {
			t.Errorf("%+v, want %+v", got, test.want)
		}
	}
}

func TestListedAreTheTextsOfAList(t *testing.T) {
	slots := map[string]sharding.Slot{"de": 0, "fr": 1}
	rule := sharding.List(slots)
	clear(sharding.Listed(rule)) // a copy
	if got := sharding.Listed(rule); !maps.Equal(got, slots) {
		t.Errorf("%v", got)
	}
	for _, other := range []sharding.Rule{sharding.Low(1), sharding.List(map[int]sharding.Slot{5: 0}), sharding.List(map[string]sharding.Slot{"de": 1}), nil} {
		if got := sharding.Listed(other); got != nil {
			t.Errorf("%v", got)
		}
	}
}

func TestTextsAreTheColumnsWhoseRulesDistinguishCase(t *testing.T) {
	bytes := func(key any) (sharding.Slot, error) { return sharding.Slot(key.(string)[0] % 9), nil }
	for _, rule := range []sharding.Rule{
		sharding.Low(10), sharding.Bits(12, 4), sharding.Mod(12), sharding.OffsetStep(2, 5), sharding.Hash(7), sharding.HashText(7), sharding.Compat(7), sharding.CompatText(7),
		sharding.Ranges(1, 2), sharding.List(map[string]sharding.Slot{"a": 0, "A": 1}), sharding.Interval(time.Unix(0, 0), time.Unix(9, 0), time.Second),
		sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0, 1}}), sharding.Func(9, bytes),
	} {
		lower, err := rule.Slot("a")
		upper, _ := rule.Slot("A")
		var want []string
		if err == nil && lower != upper {
			want = []string{"key", "also"}
		}
		table := sharding.Table{Key: "key", Rule: rule, Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(1)}, {Column: "also", Rule: rule}}}
		if got := table.Texts(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", sharding.Describe(rule).Kind, got, want)
		}
	}
}

// The cycle equals the map, and no shorter list does.
func TestCycleIsTheShortestListThatTheMapRepeats(t *testing.T) {
	for range 200 {
		length := 1 << rand.IntN(4)
		start := make([]sharding.Target, length)
		for i := range start {
			start[i] = sharding.Target{DB: "a", Table: "t_" + string(rune('a'+rand.IntN(3)))}
		}
		layout, err := sharding.MapOf(slices.Repeat(start, 16/length)...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, sharding.Table{Name: "t", Key: "k", Rule: sharding.Low(4), Map: layout})
		if err != nil {
			t.Fatal(err)
		}
		table := r.Tables()[0]
		cycle := table.Cycle()
		for slot := range sharding.Slot(16) {
			if target, _ := layout.Target(slot); target != cycle[int(slot)%len(cycle)] {
				t.Fatalf("slot %d of %v is on %v", slot, cycle, target)
			}
		}
		if half := len(cycle) / 2; len(cycle) > length || len(cycle)%2 == 0 && slices.Equal(cycle[:half], cycle[half:]) {
			t.Fatalf("%v is not the shortest for %v", cycle, start)
		}
	}
}

func TestSQLComputesSlotsAsTheRulesDo(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for name, rule := range map[string]sharding.Rule{
		"Low": sharding.Low(10), "Bits": sharding.Bits(12, 7), "Mod": sharding.Mod(1000), "OffsetStep": sharding.OffsetStep(2, 8), "OffsetStep(7,7)": sharding.OffsetStep(7, 7),
	} {
		d := sharding.Describe(rule)
		for n := 1; n <= d.Slots; n++ {
			if d.Slots%n != 0 {
				continue
			}
			expression, ok := d.SQL("?", n)
			if !ok {
				t.Fatal(name)
			}
			for range 50 {
				key := int64(rand.Uint64())
				var got sharding.Slot
				if err := db.QueryRowContext(t.Context(), "SELECT "+expression, key).Scan(&got); err != nil {
					t.Fatal(err)
				}
				if want, err := rule.Slot(key); err != nil || got != want%sharding.Slot(n) {
					t.Fatalf("%s modulo %d: key %d is in slot %d, in SQL %d (%v)", name, n, key, want, got, err)
				}
			}
		}
	}
	for _, rule := range []sharding.Rule{sharding.Hash(8), sharding.Compat(8), sharding.Ranges(1), sharding.HashText(8)} {
		if _, ok := sharding.Describe(rule).SQL("x", 1); ok {
			t.Errorf("%T is said to be computed in SQL", rule)
		}
	}
}
