// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func targets(from, to int) []sharding.Target {
	var all []sharding.Target
	for i := from; i < to; i++ {
		all = append(all, sharding.Target{DB: fmt.Sprintf("db%d", i%2), Table: fmt.Sprintf("t_%03d", i)})
	}
	return all
}

// anyMap puts each slot on a random target.
func anyMap(t *testing.T, slots int, on []sharding.Target) sharding.Map {
	t.Helper()
	place := make([]sharding.Target, slots)
	for i := range place {
		place[i] = on[rand.IntN(len(on))]
	}
	m, err := sharding.MapOf(place...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func plan(t *testing.T, slots int, old, next sharding.Map) []sharding.Move {
	t.Helper()
	moves, err := sharding.Plan(slots, old, next)
	if err != nil {
		t.Fatal(err)
	}
	return moves
}

// A plan is minimal if its moves turn the old map into the new one, and each slot moves at most
// once, from its present target.
func TestAPlanLeadsToTheNewMapAndNoMoveCanBeLeftOut(t *testing.T) {
	for range 300 {
		slots := 1 + rand.IntN(64)
		old, next := anyMap(t, slots, targets(0, 5)), anyMap(t, slots, targets(2, 8))
		moves := plan(t, slots, old, next)
		moved := map[sharding.Slot]bool{}
		for _, m := range moves {
			if moved[m.Slot] || m.From == m.To {
				t.Fatalf("needless: %v", m)
			}
			moved[m.Slot] = true
		}
		got, err := old.Apply(slots, moves...)
		if err != nil {
			t.Fatal(err)
		}
		if rest := plan(t, slots, got, next); len(rest) != 0 {
			t.Fatalf("after the moves there remain %v", rest)
		}
		for i := range moves {
			less := append(append([]sharding.Move(nil), moves[:i]...), moves[i+1:]...)
			got, err := old.Apply(slots, less...)
			if err != nil {
				t.Fatal(err)
			}
			if rest := plan(t, slots, got, next); len(rest) != 1 || rest[0] != moves[i] {
				t.Fatalf("%v could be left out", moves[i])
			}
		}
	}
}

func TestDoublingTheTargetsMovesExactlyHalfOfTheSlots(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		old := spread(t, []string{"db0"}, n, "t_%03d")
		next, err := old.Rebalance(1024, append(old.Targets(), targets(n, 2*n)...)...)
		if err != nil {
			t.Fatal(err)
		}
		if moves := plan(t, 1024, old, next); len(moves) != 512 || next.Version() != 1 {
			t.Errorf("from %d to %d targets: %d moves, version %d", n, 2*n, len(moves), next.Version())
		}
	}
}

// The fewest moves to an even layout: each target keeps at most its share, and the shares that are
// larger by one go to the targets with most slots.
func TestRebalancingMovesAsFewSlotsAsCanBe(t *testing.T) {
	for range 300 {
		slots := 1 + rand.IntN(60)
		old := anyMap(t, slots, targets(0, 1+rand.IntN(6)))
		first := rand.IntN(3)
		on := targets(first, first+1+rand.IntN(min(slots, 7)))
		next, err := old.Rebalance(slots, on...)
		if err != nil {
			t.Fatal(err)
		}
		had, has := count(old, slots), count(next, slots)
		share, larger, keep := slots/len(on), slots%len(on), 0
		for _, target := range on {
			if n := has[target]; n != share && n != share+1 {
				t.Fatalf("%s has %d of %d slots, on %d targets", target, n, slots, len(on))
			}
			keep += min(had[target], share)
			if had[target] > share && larger > 0 {
				keep, larger = keep+1, larger-1
			}
		}
		if moves := plan(t, slots, old, next); len(moves) != slots-keep {
			t.Fatalf("%d moves, and %d would do", len(moves), slots-keep)
		}
	}
}

func count(m sharding.Map, slots int) map[sharding.Target]int {
	has := map[sharding.Target]int{}
	for s := range sharding.Slot(slots) {
		target, _ := m.Target(s)
		has[target]++
	}
	return has
}

func TestMovesThatDoNotFitTheMapAreRefused(t *testing.T) {
	m := spread(t, []string{"db0"}, 4, "t_%03d")
	on := m.Targets()
	if _, err := m.Apply(8, sharding.Move{Slot: 5, From: on[0], To: on[1]}); !errors.Is(err, sharding.ErrStaleMap) {
		t.Error(err)
	}
	if _, err := m.Apply(8, sharding.Move{Slot: 8, From: on[0], To: on[1]}); !errors.Is(err, sharding.ErrNoSlot) {
		t.Error(err)
	}
	for _, err := range []error{
		second(m.Apply(6)), second(sharding.Plan(6, m, m)), second(m.Rebalance(6, on...)), second(m.Rebalance(8)),
		second(m.Rebalance(8, on[0], on[0])), second(m.Rebalance(4, targets(0, 5)...)), second(m.Rebalance(4, sharding.Target{DB: "a", Table: "`"})),
		second(sharding.Plan(4, m, sharding.Map{})),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Vitess' reverse_bits vindex is the id with its 64 bits in reverse order, and a
// shard is a range of its highest bits. So the slots of Low(k), bit-reversed,
// are Vitess' equal shards in their order.
func TestLowIsTheReverseBitsVindexWithShardsInBitReversedOrder(t *testing.T) {
	for k := 1; k <= 8; k++ {
		r := sharding.Low(k)
		for range 2000 {
			id := rand.Uint64()
			keyspace := bits.Reverse64(id)
			shard := keyspace >> (64 - k) // the how manieth of 2^k equal ranges
			if got := slot(t, r, id); uint64(got) != bits.Reverse64(shard)>>(64-k) {
				t.Fatalf("Low(%d): id %d is in slot %d and in range %d", k, id, got, shard)
			}
		}
	}
	want := []string{"-40", "80-c0", "40-80", "c0-"} // of the four shards, by slot
	ranges := []string{"-40", "40-80", "80-c0", "c0-"}
	for id := range uint64(64) {
		if got := ranges[bits.Reverse64(id)>>62]; got != want[slot(t, sharding.Low(2), id)] {
			t.Errorf("id %d is in %s", id, got)
		}
	}
}
