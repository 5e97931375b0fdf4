// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"database/sql"
	"database/sql/driver"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/proof"
)

const mostSlots = 8

// model is a set of slots, one bit each.
type model uint8

func (m model) slots() proof.Slots {
	if m == 1<<mostSlots-1 {
		return proof.EverySlot
	}
	var list []sharding.Slot
	for s := range sharding.Slot(mostSlots) {
		if m&(1<<s) != 0 {
			list = append(list, s, s) // in any number
		}
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return proof.SetOf(list)
}

func modelOf(s proof.Slots) (m model) {
	if s.All {
		return 1<<mostSlots - 1
	}
	for _, slot := range s.List() {
		m |= 1 << slot
	}
	return m
}

func TestUnionsOfSlotsAreThoseOfSets(t *testing.T) {
	for a := range model(1<<mostSlots - 1) {
		for b := range model(1<<mostSlots - 1) {
			if got := modelOf(a.slots().Or(b.slots())); got != a|b {
				t.Fatalf("%08b or %08b is %08b", a, b, got)
			}
		}
		if a.slots().Empty() != (a == 0) || a.slots().One && a&(a-1) != 0 {
			t.Fatalf("%08b: %+v", a, a.slots())
		}
	}
}

// fixed is a proof of some slots, whatever the arguments are.
func fixed(m model) proof.Proof { return m.slots() }

func TestConditionsTogetherHaveTheSlotsOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		a, b, c := model(r.Uint32()), model(r.Uint32()), model(r.Uint32())
		all := proof.Together([]proof.Proof{fixed(a), nil, fixed(b), proof.AnyOf{fixed(c), fixed(a)}})
		if got := modelOf(all.Slots(nil)); got != a&b&(c|a) {
			t.Fatalf("%08b and %08b and (%08b or the first) are %08b", a, b, c, got)
		}
	}
	if proof.Together([]proof.Proof{nil, nil}) != nil {
		t.Error("nothing proves something")
	}
}

// A row that satisfies a condition must be in a slot of the proof, whatever value a caller compares with.
func TestNoRowThatSatisfiesAConditionIsOutsideOfItsProof(t *testing.T) {
	table := described(t, sharding.Ranges(10, 20, 30))
	lead := &proof.Lead{Table: table, Column: "id", Rule: table.Rule, Always: true, Holds: catalog.Integers, Order: true}
	for low := int64(-3); low < 33; low++ {
		for high := low - 2; high < 33; high++ {
			args := []any{low, high, []int64{low, high}}
			first, second := proof.Operand{Param: 0}, proof.Operand{Param: 1}
			for name, c := range map[string]struct {
				proof     proof.Proof
				satisfies func(id int64) bool
			}{
				"= ?":               {&proof.Equals{Lead: lead, Values: of(first)}, func(id int64) bool { return id == low }},
				"IN (?, ?)":         {&proof.Equals{Lead: lead, Values: of(first, second)}, func(id int64) bool { return id == low || id == high }},
				"= ANY (?)":         {&proof.Equals{Lead: lead, Values: proof.Values{Array: &proof.Operand{Param: 2}}}, func(id int64) bool { return id == low || id == high }},
				"BETWEEN ? AND ?":   {&proof.Within{Lead: lead, Low: &first, High: &second}, func(id int64) bool { return low <= id && id <= high }},
				">= ? AND id < ?":   {&proof.Within{Lead: lead, Low: &first, High: &second, Below: true}, func(id int64) bool { return low <= id && id < high }},
				"> ? (or equal)":    {&proof.Within{Lead: lead, Low: &first}, func(id int64) bool { return low <= id }},
				"< ?":               {&proof.Within{Lead: lead, High: &second, Below: true}, func(id int64) bool { return id < high }},
				"= ? with no value": {&proof.Equals{Lead: lead, Values: of(proof.Operand{Param: 9})}, func(int64) bool { return true }},
			} {
				slots := c.proof.Slots(args)
				for id := range int64(30) {
					slot, err := table.Slot(id)
					if err != nil {
						t.Fatal(err)
					}
					if c.satisfies(id) && !slots.All && !slices.Contains(slots.List(), slot) {
						t.Fatalf("id %s of %d and %d: %d is in slot %d, and the proof says %v", name, low, high, id, slot, slots.List())
					}
				}
			}
		}
	}
}

func TestAValueThatTheDatabaseMayReadInAnotherWayProvesNothing(t *testing.T) {
	table := described(t, sharding.Mod(4))
	for _, c := range []struct {
		holds catalog.Holding
		value any
		known bool
	}{
		{catalog.Integers, int64(5), true},
		{catalog.Integers, "5", true},
		{catalog.Integers, 5.5, false},
		{catalog.Integers, true, false},
		{catalog.Other, int64(5), false},
		{catalog.Folded, "5", false},
		{catalog.Bytes, int64(5), false}, // '5' and '5abc' equal 5
		{catalog.Integers, nil, true},    // no row equals NULL
		{catalog.Integers, proof.Unbound{}, false},
		{catalog.Integers, struct{}{}, false},
	} {
		lead := &proof.Lead{Table: table, Column: "id", Rule: table.Rule, Always: true, Holds: c.holds}
		if s := lead.SlotOf(c.value); s.All == c.known {
			t.Errorf("a column of sort %d = %v is in %+v; is it known? %v", c.holds, c.value, s, c.known)
		}
		why := proof.WhyNoSlot(&proof.Equals{Lead: lead, Values: of(proof.Operand{Param: -1, Literal: c.value})}, nil)
		if (why == "") != c.known {
			t.Errorf("a column of sort %d = %v: %q; is it known? %v", c.holds, c.value, why, c.known)
		}
	}
}

// uid is a type of ids that large databases give to unsigned numbers.
type uid uint64

// valued is an id that gives drivers an unsigned number, which those of MySQL take.
type valued uint64

func (v valued) Value() (driver.Value, error) { return uint64(v), nil }

func TestAnUnsignedNumberLeadsToItsSlotInEveryGoType(t *testing.T) {
	table := described(t, sharding.Mod(3))
	lead := &proof.Lead{Table: table, Column: "id", Rule: table.Rule, Always: true, Holds: catalog.Integers}
	for _, n := range []uint64{5, 1<<63 + 7, math.MaxUint64} {
		want, id := int(n%3), uid(n)
		for _, value := range []any{n, uint(n), uid(n), &n, &id, valued(n), strconv.FormatUint(n, 10)} {
			if s := lead.SlotOf(value); !s.One || int(s.Only) != want {
				t.Errorf("%d as a %T is in %+v, not in slot %d", n, value, s, want)
			}
		}
		literal, ok := proof.Constant(&sqlparse.Literal{Kind: sqlparse.Integer, Value: strconv.FormatUint(n, 10)})
		if s := lead.SlotOf(literal.Value(nil)); !ok || !s.One || int(s.Only) != want {
			t.Errorf("the literal %d is in %+v, not in slot %d", n, s, want)
		}
	}
}

// of returns the values of a list.
func of(list ...proof.Operand) proof.Values { return proof.Values{List: list} }

// described returns the description of a table with the key id.
func described(t *testing.T, rule sharding.Rule) *sharding.Table {
	t.Helper()
	at, err := sharding.Spread([]string{"a", "b"}, rule.Slots(), "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"a": new(sql.DB), "b": new(sql.DB)}, sharding.Table{Name: "orders", Key: "id", Rule: rule, Map: at})
	if err != nil {
		t.Fatal(err)
	}
	table, _ := r.Snapshot().Lookup("orders")
	return table
}

func TestAProofHasOnlyTheSlotsThatItsConditionNeeds(t *testing.T) {
	table := described(t, sharding.Ranges(10, 20, 30))
	lead := &proof.Lead{Table: table, Column: "id", Rule: table.Rule, Always: true, Holds: catalog.Integers, Order: true}
	ten, twelve := &proof.Operand{Param: -1, Literal: int64(10)}, &proof.Operand{Param: -1, Literal: int64(12)}
	for _, c := range []struct {
		proof proof.Proof
		want  []sharding.Slot
	}{
		{&proof.Equals{Lead: lead, Values: of(*ten)}, []sharding.Slot{1}},
		{&proof.Within{Lead: lead, High: ten, Below: true}, []sharding.Slot{0}},
		{&proof.Within{Lead: lead, High: ten}, []sharding.Slot{0, 1}},
		{&proof.Within{Lead: lead, Low: ten, High: twelve}, []sharding.Slot{1}},
		{&proof.Within{Lead: lead, Low: &proof.Operand{Param: -1, Literal: int64(25)}, High: ten}, nil},
	} {
		if got := c.proof.Slots(nil); !slices.Equal(got.List(), c.want) || got.All {
			t.Errorf("%+v: %v, want %v", c.proof, got, c.want)
		}
	}
}
