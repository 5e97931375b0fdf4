// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// move moves a slot from the first shard to the second one.
func (w *world) move(t *testing.T, s *Store, slot sharding.Slot) {
	t.Helper()
	must(t, s.Copy(t.Context(), 1, slot))
	must(t, w.copyRows(t.Context(), s, slot))
	must(t, s.Fence(t.Context(), slot))
	must(t, s.Switch(t.Context(), slot))
	must(t, w.sweep(t.Context(), s, slot, 0))
	must(t, s.Finish(t.Context(), slot))
}

// A database that failed over without its last commits, or a restored backup, has the map from before a move. Its
// processes would look for the rows where they are not any more.
func TestAMapThatHasLostAMoveIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	r, s := w.created(t)
	must(t, insert(t.Context(), r, 1, 3))
	w.move(t, s, 4)
	for _, table := range []string{"shard_map", "shard_slot"} {
		run(t, w.home, "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table)
	}
	w.move(t, s, 3)
	for _, table := range []string{"shard_map", "shard_slot"} {
		run(t, w.home, "DELETE FROM "+table)
		run(t, w.home, "INSERT INTO "+table+" SELECT * FROM backup_"+table)
	}
	other := w.store(t, w.router(t))
	if f, err := other.Follow(t.Context()); !errors.Is(err, sharding.ErrStaleMap) {
		if err == nil {
			must(t, f.Close(t.Context()))
		}
		t.Errorf("a map that lacks a move is followed: %v", err)
	}
	if err := s.Copy(t.Context(), 1, 5); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("a map that lacks a move gets another: %v", err)
	}

	// What the page says.
	run(t, w.home, "UPDATE shard_slot SET state = 'moved', shard = 1, other = 0 WHERE name = 'shop' AND slot = 3")
	run(t, w.home, "UPDATE shard_slot SET version = 100 WHERE name = 'shop'")
	run(t, w.home, "UPDATE shard_map SET version = 100 WHERE name = 'shop'")
	again := w.router(t)
	w.follow(t, w.store(t, again))
	if target, err := again.Target("orders", int64(3)); err != nil || target.DB != "b" {
		t.Errorf("%v, %v", target, err)
	}
	must(t, s.Switch(t.Context(), 3)) // as a mover repeats it
	must(t, s.Finish(t.Context(), 3))
	if err := insert(t.Context(), again, 2, 3); err != nil {
		t.Error(err)
	}
}

// A process starts without a database that is down.
func TestAMapIsFollowedWithoutTheShardsThatDoNotAnswer(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	w.move(t, s, 4)
	must(t, w.dbs["b"].Close())
	w.follow(t, s)
}
