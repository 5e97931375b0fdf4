// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

// Three processes write all the time while slots move. In the end every acknowledged row exists
// once, on the shard to which its key leads.
func TestSlotsMoveUnderLiveWritersWithoutLosingOrDoublingARow(t *testing.T) {
	w := newWorld(t)
	w.term = 600 * time.Millisecond
	_, operator := w.created(t)
	ctx, stop := context.WithCancel(t.Context())
	var written sync.Map
	var last, total atomic.Int64
	var wg sync.WaitGroup
	var routers []*sharding.Router
	for range 3 {
		r := w.router(t)
		w.follow(t, w.store(t, r))
		routers = append(routers, r)
		wg.Go(func() {
			// SQLite gives its lock to any writer that asks when it is free, not to the one that
			// waits longest: writers that never pause can block all others for good.
			pause := time.NewTicker(2 * time.Millisecond)
			defer pause.Stop()
			for ctx.Err() == nil {
				<-pause.C
				id, user := last.Add(1), rand.Int64N(1000)
				switch err := insert(ctx, r, id, user); {
				case err == nil:
					written.Store(id, user)
					total.Add(1)
				case ctx.Err() != nil, errors.Is(err, sharding.ErrSlotMoving), errors.Is(err, sharding.ErrStaleMap), strings.Contains(err.Error(), "locked"):
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for _, slot := range []sharding.Slot{1, 6} {
		progress := total.Load()
		eventually(t, "rows are written", func() bool { return total.Load() > progress+50 || t.Failed() })
		for _, step := range []func() error{
			func() error { return operator.Settle(t.Context()) },
			func() error { return operator.Copy(t.Context(), 1, slot) },
			func() error { return operator.Settle(t.Context()) },
			func() error { return w.copyRows(t.Context(), operator, slot) },
			func() error { return operator.Fence(t.Context(), slot) },
			func() error { return operator.Settle(t.Context()) },
			func() error { return w.copyRows(t.Context(), operator, slot) },
			func() error { return operator.Switch(t.Context(), slot) },
			func() error { return operator.Settle(t.Context()) },
			func() error { return w.sweep(t.Context(), operator, slot, 0) },
			func() error { return operator.Finish(t.Context(), slot) },
		} {
			must(t, afterLeases(t, operator, step))
		}
	}
	must(t, operator.Settle(t.Context()))
	progress := total.Load()
	eventually(t, "rows are written", func() bool { return total.Load() > progress+50 || t.Failed() })
	stop()
	wg.Wait()

	w.term = time.Minute // of one who only looks, so that its lease lasts
	final := w.router(t)
	w.follow(t, w.store(t, final))
	found := []map[int64]int64{w.rows(t, 0), w.rows(t, 1)}
	written.Range(func(id, user any) bool {
		target, err := final.Target("orders", user)
		if err != nil {
			t.Error(err)
			return false
		}
		right, wrong := found[0], found[1]
		if target.DB == "b" {
			right, wrong = wrong, right
		}
		_, here := right[id.(int64)]
		_, there := wrong[id.(int64)]
		if !here || there {
			t.Errorf("row %v of user %v: on its shard %v, elsewhere %v", id, user, here, there)
		}
		return true
	})
	if len(found[1]) == 0 || total.Load() == 0 {
		t.Error("nothing moved")
	}
	for _, r := range routers {
		eventually(t, "all shards are reached again", func() bool {
			all, err := r.Snapshot().Everywhere("orders")
			return err == nil && len(all) == 2
		})
	}
}

// afterLeases makes a step as an operator does: a process whose renewal was late returns with its
// old version, and the step waits for it again.
func afterLeases(t *testing.T, operator *Store, step func() error) error {
	t.Helper()
	for {
		err := step()
		if !errors.Is(err, ErrLeased) {
			return err
		}
		if err := operator.Settle(t.Context()); err != nil {
			return err
		}
	}
}

// A pause between check and send: the process continues with its old target.
func TestTheOldShardsDatabaseRefusesWritesOfASlotThatLeft(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	run(t, w.dbs["a"], "INSERT INTO orders_0 (id, user_id) VALUES (1, 9), (2, 2)")
	must(t, s.Copy(t.Context(), 1, 1))
	must(t, insertOn(t.Context(), w.dbs["a"], "orders_0", 3, 17))
	if err := insertOn(t.Context(), w.dbs["b"], "orders_1", 3, 17); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("the new shard takes rows before the switch: %v", err)
	}
	must(t, s.Fence(t.Context(), 1))
	refused := func(db, query string) {
		t.Helper()
		if _, err := w.dbs[db].Exec(query); !errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", query, err)
		}
	}
	refuseAll := func() {
		t.Helper()
		refused("a", "INSERT INTO orders_0 (id, user_id) VALUES (4, 1)")
		refused("a", "INSERT INTO items_0 (user_id) VALUES (-7)")
		refused("a", "UPDATE orders_0 SET note = 'x' WHERE id = 1")
		refused("a", "UPDATE orders_0 SET user_id = 1 WHERE id = 2")
		refused("a", "DELETE FROM orders_0 WHERE id = 1")
		refused("a", "INSERT INTO orders_0 (id, user_id) VALUES (4, NULL)")
	}
	refuseAll()
	run(t, w.dbs["a"], "UPDATE orders_0 SET note = 'x' WHERE id = 2")
	must(t, w.copyRows(t.Context(), s, 1))
	must(t, s.Switch(t.Context(), 1))
	refuseAll()
	must(t, insertOn(t.Context(), w.dbs["b"], "orders_1", 5, 1))
	must(t, w.sweep(t.Context(), s, 1, 0))
	must(t, s.Finish(t.Context(), 1))
	refused("a", "INSERT INTO orders_0 (id, user_id) VALUES (4, 1)")
	if got := w.rows(t, 0); len(got) != 1 || got[2] != 2 {
		t.Errorf("the old shard has %v", got)
	}
	if got := w.rows(t, 1); len(got) != 3 {
		t.Errorf("the new shard has %v", got)
	}
}

func TestFencingWaitsForTheTransactionsThatHaveWrittenToTheSlot(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	must(t, s.Copy(t.Context(), 1, 1))
	tx, err := w.dbs["a"].BeginTx(t.Context(), nil)
	must(t, err)
	_, err = tx.Exec("INSERT INTO orders_0 (id, user_id) VALUES (1, 1)")
	must(t, err)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Fence(short, 1); err == nil {
		t.Error("fenced beside an open transaction")
	}
	must(t, tx.Commit())
	must(t, s.Fence(t.Context(), 1))
	if err := insertOn(t.Context(), w.dbs["a"], "orders_0", 2, 1); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
}

func TestAnAbortedMoveLeavesTheSlotWhereItWas(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		w := newWorld(t)
		_, s := w.created(t)
		run(t, w.dbs["a"], "INSERT INTO orders_0 (id, user_id) VALUES (1, 1)")
		must(t, s.Copy(t.Context(), 1, 1))
		must(t, w.copyRows(t.Context(), s, 1))
		if fenced {
			must(t, s.Fence(t.Context(), 1))
		}
		must(t, s.Abort(t.Context(), 1))
		must(t, s.Abort(t.Context(), 1))
		must(t, insertOn(t.Context(), w.dbs["a"], "orders_0", 2, 1))
		if err := insertOn(t.Context(), w.dbs["b"], "orders_1", 3, 1); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("the other shard: %v", err)
		}
		must(t, w.sweep(t.Context(), s, 1, 1))
		must(t, s.Finish(t.Context(), 1))
		v, err := s.Load(t.Context())
		if err != nil || v.Slots[1] != (Slot{Slot: 1, State: Active, Shard: 0, Other: nowhere, Version: v.Version}) || len(w.rows(t, 1)) != 0 {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

func TestStepsThatDoNotFollowAreRefused(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	nothing := func(*sql.Tx) error { return nil }
	for name, err := range map[string]error{
		"Fence": s.Fence(ctx, 1), "Switch": s.Switch(ctx, 1), "Abort": s.Abort(ctx, 1), "Bypass": s.Bypass(ctx, 1, nothing), "Copy to itself": s.Copy(ctx, 0, 1),
	} {
		if !errors.Is(err, ErrState) {
			t.Errorf("%s of an active slot: %v", name, err)
		}
	}
	for name, err := range map[string]error{"Copy": s.Copy(ctx, 1, 8), "Fence": s.Fence(ctx, -1), "Bypass": s.Bypass(ctx, 9, nothing)} {
		if !errors.Is(err, sharding.ErrNoSlot) {
			t.Errorf("%s of no slot: %v", name, err)
		}
	}
	if err := s.Copy(ctx, 2, 1); err == nil || !strings.Contains(err.Error(), "no shard 2") {
		t.Error(err)
	}
	must(t, s.Copy(ctx, 1, 1))
	must(t, s.Fence(ctx, 1))
	must(t, s.Switch(ctx, 1))
	for name, err := range map[string]error{"Copy": s.Copy(ctx, 0, 1), "Fence": s.Fence(ctx, 1), "Abort": s.Abort(ctx, 1)} {
		if !errors.Is(err, ErrState) {
			t.Errorf("%s of a moved slot: %v", name, err)
		}
	}
	if v, err := s.Load(ctx); err != nil || v.Version != 4 {
		t.Errorf("refused steps made versions: %d, %v", v.Version, err)
	}
}

// A crash after the map's database has committed, and before the shard's has.
func TestARepeatedStepCompletesWhatACrashLeft(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	must(t, s.Copy(ctx, 1, 1))
	fenceOnly := step{name: "Fence", from: []State{Copying}, done: func(slot Slot) bool { return slot.State == Fenced }, change: func(slot *Slot) { slot.State = Fenced }}
	must(t, s.home.do(ctx, func(t tx) error {
		_, err := s.write(ctx, t, []sharding.Slot{1}, fenceOnly)
		return err
	}))
	must(t, insertOn(ctx, w.dbs["a"], "orders_0", 1, 1)) // not fenced yet
	must(t, s.Fence(ctx, 1))
	if err := insertOn(ctx, w.dbs["a"], "orders_0", 2, 1); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
	if v, err := s.Load(ctx); err != nil || v.Version != 3 {
		t.Errorf("version %d, %v", v.Version, err)
	}
}

// An operator that was paused between reading the map and setting the fence.
func TestALateStepDoesNotOpenAFence(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	must(t, s.Copy(ctx, 1, 1))
	old, err := s.Load(ctx)
	must(t, err)
	must(t, s.Fence(ctx, 1))
	if err := s.fences.align(ctx, old.Slots[1:2]); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("align: %v", err)
	}
	if err := insertOn(ctx, w.dbs["a"], "orders_0", 2, 1); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
}

// Replicas are read when they have received the mark: set by a late operator, it would stand before deletions.
func TestOnlyTheOperatorOfAMoveMarksAnEmptySlot(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	marked := func() (n int) {
		t.Helper()
		must(t, w.dbs["a"].QueryRowContext(ctx, "SELECT COUNT(*) FROM shard_fence WHERE shard = 0 AND slot = 1 AND fenced = 2").Scan(&n))
		return n
	}
	move := func(to int) {
		t.Helper()
		must(t, s.Copy(ctx, to, 1))
		must(t, s.Fence(ctx, 1))
		must(t, s.Switch(ctx, 1))
	}
	move(1)
	old, err := s.Load(ctx)
	must(t, err)
	if n := marked(); n != 0 {
		t.Error("it is marked before its rows are deleted")
	}
	must(t, s.Finish(ctx, 1))
	if n := marked(); n != 1 {
		t.Error("it is not marked")
	}
	if err := s.fences.align(ctx, old.Slots[1:2]); !errors.Is(err, sharding.ErrStaleMap) { // a Switch that is repeated
		t.Errorf("a late Switch: %v", err)
	}
	if n := marked(); n != 1 {
		t.Error("a late Switch has removed the mark")
	}
	move(0)
	must(t, s.Finish(ctx, 1))
	move(1)
	if err := s.AsOf(old.Version).Finish(ctx, 1); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("a late Finish: %v", err)
	}
	must(t, s.fences.markEmpty(ctx, old.Slots[1:2])) // which was paused behind its check
	if n := marked(); n != 0 {
		t.Error("a late operator has marked it")
	}
}

func TestASlotMovesBackOverItsOldFences(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	for round, to := range []int{1, 0, 1} {
		must(t, s.Copy(ctx, to, 1, 2))
		must(t, s.Fence(ctx, 1, 2))
		must(t, s.Switch(ctx, 1, 2))
		must(t, s.Finish(ctx, 1, 2))
		for shard, name := range []string{"orders_0", "orders_1"} {
			err := insertOn(ctx, w.dbs[w.shards["orders"][shard].DB], name, int64(100+10*round+shard), 2)
			if (err == nil) != (shard == to) {
				t.Errorf("on shard %d, the slot is on %d: %v", shard, to, err)
			}
		}
	}
}
