// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// numbering is a server that numbers as MySQL does: the next id is the first one, not below its
// counter, that its offset and step allow.
type numbering struct {
	slot         sharding.Slot
	counter      int64
	offset, step int64
}

func (n *numbering) next() int64 {
	id := n.counter
	for (id-n.offset)%n.step != 0 {
		id++
	}
	n.counter = id + 1
	return id
}

func (n *numbering) live() sharding.Counter {
	return sharding.Counter{Slot: n.slot, Next: n.counter, Offset: int(n.offset), Step: int(n.step)}
}

// history is a system that grows while it numbers rows.
type history struct {
	r       *rand.Rand
	rule    sharding.EpochRule
	servers []*numbering
	maker   map[int64]sharding.Slot
	guarded bool
}

const margin = 10

func (h *history) counters() []sharding.Counter {
	var all []sharding.Counter
	for _, s := range h.servers {
		all = append(all, s.live())
	}
	return all
}

// insert makes a server number a row. With the guard, the operator calls Check first, and gives
// each server that Check names its new offset and step.
func (h *history) insert(t *testing.T) error {
	i := h.r.IntN(len(h.servers))
	s := h.servers[i]
	if h.guarded {
		h.guard(t)
	}
	id := s.next()
	if first, twice := h.maker[id]; twice {
		return fmt.Errorf("id %d was made by server %d and by server %d", id, first, s.slot)
	}
	h.maker[id] = s.slot
	return nil
}

func (h *history) guard(t *testing.T) {
	err := h.rule.Check(margin, h.counters())
	if err == nil {
		return
	}
	if !errors.Is(err, sharding.ErrEpochUnarmed) {
		t.Fatal(err)
	}
	for i := range h.servers {
		h.arm(i)
	}
	if err := h.rule.Check(margin, h.counters()); err != nil {
		t.Fatalf("all servers number by the epoch: %v", err)
	}
}

func (h *history) arm(i int) {
	h.servers[i].offset, h.servers[i].step = int64(i+1), int64(len(h.servers))
}

// double adds as many servers as there are, with a boundary above all counters. The old servers
// change their steps later, in any order.
func (h *history) double(t *testing.T) {
	highest, n := int64(0), len(h.servers)
	for _, s := range h.servers {
		highest = max(highest, s.counter)
	}
	next := sharding.Epoch{From: highest + margin + h.r.Int64N(30)}
	for slot := range sharding.Slot(2 * n) {
		next.Slots = append(next.Slots, slot)
	}
	grown, err := h.rule.Add(next, margin, h.counters())
	if err != nil {
		t.Fatal(err)
	}
	h.rule = grown
	for i := n; i < 2*n; i++ {
		h.servers = append(h.servers, &numbering{sharding.Slot(i), next.From + h.r.Int64N(20), int64(i + 1), int64(2 * n)})
	}
}

func (h *history) run(t *testing.T) error {
	for _, stage := range []int{h.r.IntN(40), 100 + h.r.IntN(100), 200 + h.r.IntN(100)} {
		for range stage {
			if len(h.servers) > 1 && h.r.IntN(50) == 0 {
				h.arm(h.r.IntN(len(h.servers)))
			}
			if err := h.insert(t); err != nil {
				return err
			}
		}
		if h.guarded {
			if err := h.rule.Check(1, h.counters()); err != nil {
				for i := range h.servers { // the next epoch needs servers that number by this one
					h.arm(i)
				}
			}
		}
		if len(h.servers) < 4 {
			for i := range h.servers {
				h.arm(i)
			}
			h.double(t)
		}
	}
	for id, maker := range h.maker {
		got, err := h.rule.Slot(id)
		if err != nil {
			return err
		}
		if got != maker {
			return fmt.Errorf("id %d was made by server %d and is looked for on %d", id, maker, got)
		}
	}
	return nil
}

func newHistory(seed uint64, guarded bool) *history {
	return &history{
		r: rand.New(rand.NewPCG(seed, 1)), rule: sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}),
		servers: []*numbering{{0, 1, 1, 1}}, maker: map[int64]sharding.Slot{}, guarded: guarded,
	}
}

func TestGrowingFromOneToTwoToFourServersKeepsEveryIdUniqueAndOnItsServer(t *testing.T) {
	base := rand.Uint64()
	for seed := base; seed < base+2000; seed++ {
		if err := newHistory(seed, true).run(t); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The control: without the guard the histories above have a collision.
func TestWithoutTheGuardSomeHistoriesCollide(t *testing.T) {
	for seed := range uint64(200) {
		if err := newHistory(seed, false).run(t); err != nil {
			return
		}
	}
	t.Error("200 histories without the guard are in order")
}

func TestAnIdBelongsToTheLastEpochThatBeginsBelowIt(t *testing.T) {
	r := sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: 14, Slots: []sharding.Slot{0, 1}})
	for id, want := range map[any]sharding.Slot{
		int64(math.MinInt64): 0, -1: 0, 7: 0, 12: 0, 13: 0, 14: 1, 15: 0, 16: 1, "17": 0, uint64(math.MaxUint64): 0, uint64(math.MaxUint64 - 1): 1,
	} {
		if got := slot(t, r, id); got != want {
			t.Errorf("id %v: slot %d, want %d", id, got, want)
		}
	}
	r.Epochs()[1].Slots[0] = 9
	if slot(t, r, 15) != 0 {
		t.Error("the rule is changed through the epochs it returned")
	}
}

func TestAnEpochThatAServerCouldReachTooEarlyIsRefused(t *testing.T) {
	one := sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}})
	both := []sharding.Slot{0, 1}
	at := func(next int64) []sharding.Counter {
		return []sharding.Counter{{Slot: 0, Next: next, Offset: 1, Step: 1}}
	}
	for _, c := range []struct {
		next    sharding.Epoch
		margin  int64
		live    []sharding.Counter
		unarmed bool
		text    string
	}{
		{sharding.Epoch{From: 100, Slots: both}, 10, at(91), true, "slot 0 is at 91 already; begin the epoch at 101 or above"},
		{sharding.Epoch{From: 100, Slots: both}, 10, at(math.MaxInt64), true, "slot 0 is at"},
		{sharding.Epoch{From: 100, Slots: both}, 10, nil, true, "the counter of slot 0 is missing"},
		{sharding.Epoch{From: 100, Slots: both}, 0, at(1), false, "margin is 0"},
		{sharding.Epoch{From: 100, Slots: []sharding.Slot{0, 2}}, 10, at(1), false, "slot 1 has no value"},
		{sharding.Epoch{From: -5, Slots: both}, 10, at(-90), false, "From -5 is not above the From 0"},
		{sharding.Epoch{From: 100, Slots: both}, 10, append(at(1), at(2)...), false, "given twice"},
	} {
		_, err := one.Add(c.next, c.margin, c.live)
		if err == nil || errors.Is(err, sharding.ErrEpochUnarmed) != c.unarmed || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	two, err := one.Add(sharding.Epoch{From: 100, Slots: both}, 10, at(90))
	if err != nil {
		t.Fatal(err)
	}
	// Server 0 would make even ids, which are those of server 1 up to the boundary.
	live := []sharding.Counter{{Slot: 0, Next: 200, Offset: 1, Step: 2}, {Slot: 1, Next: 200, Offset: 2, Step: 2}}
	if _, err := two.Add(sharding.Epoch{From: 1000, Slots: []sharding.Slot{1, 0}}, 10, live); err == nil || !strings.Contains(err.Error(), "slot 1 has offset 2 and step 2 now") {
		t.Error(err)
	}
	if _, err := (sharding.EpochRule{}).Add(sharding.Epoch{}, 1, nil); err == nil {
		t.Error("a rule that nobody made grows")
	}
}

func TestCheckNamesEveryServerThatIsNotReadyForTheEpoch(t *testing.T) {
	r := sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: 100, Slots: []sharding.Slot{0, 1}})
	old := func(next int64, offset, step int) sharding.Counter {
		return sharding.Counter{Slot: 0, Next: next, Offset: offset, Step: step}
	}
	second := sharding.Counter{Slot: 1, Next: 100, Offset: 2, Step: 2}
	for _, c := range []struct {
		live []sharding.Counter
		text string // "" when in order
	}{
		{[]sharding.Counter{old(50, 1, 1), second}, ""},
		{[]sharding.Counter{old(90, 1, 1), second}, ""},
		{[]sharding.Counter{old(91, 1, 1), second}, "slot 0 is at 91 with offset 1 and step 1, and the epoch begins at 100; stop its inserts until it has offset 1 and step 2"},
		{[]sharding.Counter{old(5000, 1, 1), second}, "slot 0 is at 5000"},
		{[]sharding.Counter{old(5000, 2, 2), second}, "slot 0 is at 5000"},
		{[]sharding.Counter{old(5000, 1, 2), second}, ""},
		{[]sharding.Counter{old(5000, 3, 4), second}, ""}, // ready for the epoch after
		{[]sharding.Counter{old(5000, 5, 4), second}, "slot 0"},
		{[]sharding.Counter{old(50, 1, 2), {Slot: 1, Next: 99, Offset: 2, Step: 2}}, "slot 1 is new in the epoch and is at 99; set its counter to 100 or above"},
		{[]sharding.Counter{old(50, 1, 2), {Slot: 1, Next: 1, Offset: 1, Step: 1}}, "slot 1 is at 1 with"},
		{[]sharding.Counter{old(50, 1, 2)}, "the counter of slot 1 is missing"},
	} {
		err := r.Check(10, c.live)
		if c.text == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.live, err)
			}
			continue
		}
		if !errors.Is(err, sharding.ErrEpochUnarmed) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.live, err)
		}
	}
	fewer := sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0, 1}}, sharding.Epoch{From: 100, Slots: []sharding.Slot{0}})
	live := []sharding.Counter{{Slot: 0, Next: 50, Offset: 1, Step: 2}, {Slot: 1, Next: 95, Offset: 2, Step: 2}}
	if err := fewer.Check(10, live); !errors.Is(err, sharding.ErrEpochUnarmed) || !strings.Contains(err.Error(), "slot 1 is at 95 and has no ids in the epoch") {
		t.Error(err)
	}
}
