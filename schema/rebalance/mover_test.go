// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	command "os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// moveSteps are all points at which a mover can be stopped.
var moveSteps = []string{
	rebalance.StepLeading, rebalance.StepAnnounced, rebalance.StepBound, rebalance.StepSnapshot, rebalance.StepPruned, rebalance.StepStored, rebalance.StepApplied, rebalance.StepAcked,
	rebalance.StepCompared, rebalance.StepFenced, rebalance.StepDrained, rebalance.StepSwitched, rebalance.StepSwept, rebalance.StepFinished,
}

func TestSlotsMoveWhileTheApplicationWrites(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 1000)
	stop := s.writers(t, 3)
	r, store := s.process(t)
	f, err := store.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	orders, _ := r.Table("orders")
	next, err := orders.Map.Rebalance(slotCount, s.shards["orders"]...)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := sharding.Plan(slotCount, orders.Map, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := s.mover(t)
	moved, err := m.Run(t.Context(), plan...)
	if err != nil {
		t.Fatal(err)
	}
	if moved.Slots != len(plan) || moved.Rows == 0 || moved.Pause == 0 {
		t.Errorf("%+v for %d moves", moved, len(plan))
	}
	if again, err := m.Run(t.Context(), plan...); err != nil || again != (rebalance.Moved{}) {
		t.Errorf("the same moves again: %+v, %v", again, err)
	}
	done := 0
	writers := stop()
	for _, w := range writers {
		done += w.done
	}
	t.Logf("%+v beside %d changes", moved, done)
	s.check(t, 1000, writers)
	for shard, at := range s.shards["orders"] {
		if n := len(s.read(t, at, "note")); n < 250 {
			t.Errorf("shard %d has only %d rows", shard, n)
		}
	}
	for name, db := range s.dbs {
		if n := count(t, db, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'shardid_slots%'"); n > 0 {
			t.Errorf("database %s keeps %d triggers", name, n)
		}
	}
}

// until moves, and goes on after whatever ended a call.
func until(ctx context.Context, m *rebalance.Mover, moves []sharding.Move) error {
	_, err := m.Run(ctx, moves...)
	return err
}

func TestAMoveThatIsCutOffAtAnyStepIsResumed(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 400)
	stop := s.writers(t, 2)
	to := 0
	stops := map[string]int{rebalance.StepStored: 2, rebalance.StepApplied: 1, rebalance.StepSwept: 2}
	for _, step := range moveSteps {
		for _, skip := range slices.Compact([]int{0, stops[step]}) {
			from := to
			to = (to + 1) % 3
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			left := skip
			m := s.mover(t, func(c *rebalance.MoverConfig) {
				c.Observe = func(at rebalance.Step) {
					mu.Lock()
					defer mu.Unlock()
					if at.Name == step {
						if left--; left < 0 {
							cancel()
						}
					}
				}
			})
			moves := s.moves(from, to, 1, 5)
			if err := until(ctx, m, moves); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", step, err)
			}
			cancel()
			if err := until(t.Context(), s.mover(t), moves); err != nil {
				t.Errorf("after %s: %v", step, err)
			}
		}
	}
	s.check(t, 400, stop())
}

// moverVar makes the test process a mover; its value is the directory of the shop.
const moverVar = "SHARDID_TEST_MOVER"

func TestAKilledMoverIsResumed(t *testing.T) {
	if dir := os.Getenv(moverVar); dir != "" {
		s := openSlotShop(t, dir)
		m := s.mover(t, func(c *rebalance.MoverConfig) {
			c.Observe = func(step rebalance.Step) { _, _ = fmt.Fprintln(os.Stdout, "step "+step.Name) }
		})
		for to := 1; ; to++ {
			if err := until(t.Context(), m, s.moves((to-1)%3, to%3, 2, 3, 7)); err != nil && !errors.Is(err, sharding.ErrStaleMap) {
				t.Fatal(err)
			}
		}
	}
	t.Parallel()
	s := newSlotShop(t, 500)
	stop := s.writers(t, 2)
	for _, step := range moveSteps {
		killMover(t, s.dir, step)
	}
	if err := until(t.Context(), s.mover(t), nil); err != nil {
		t.Fatal(err)
	}
	s.check(t, 500, stop())
}

// killMover kills a mover after a step.
func killMover(t *testing.T, dir, step string) {
	t.Helper()
	cmd := command.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAKilledMoverIsResumed$")
	cmd.Env = append(os.Environ(), moverVar+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		// A prune comes only after a kill between two chunks: the next step will do.
		if lines.Text() == "step "+step || step == rebalance.StepPruned && lines.Text() == "step "+rebalance.StepSnapshot {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%s: the mover ended by itself: %v\n%s", step, err, strings.Join(said, "\n"))
	}
}

func TestAPausedMoverWritesNothingMore(t *testing.T) {
	t.Parallel()
	for _, step := range []string{rebalance.StepSnapshot, rebalance.StepApplied, rebalance.StepCompared, rebalance.StepDrained, rebalance.StepSwitched} {
		s := newSlotShop(t, 200)
		observe, reached, goOn := blockAt(step)
		paused := s.mover(t, func(c *rebalance.MoverConfig) {
			c.Observe = func(at rebalance.Step) {
				if at.Name == rebalance.StepStored { // so that there is something to apply
					_, _ = s.dbs["a"].ExecContext(context.Background(), "UPDATE orders_0 SET note = 'seen' WHERE id = 1")
				}
				observe(at)
			}
		})
		ended := make(chan error, 1)
		moves := s.moves(0, 1, 1, 2)
		go func() { ended <- until(context.Background(), paused, moves) }()
		<-reached
		if err := until(t.Context(), s.mover(t), moves); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		exec(t, s.dbs["b"], "UPDATE orders_1 SET note = 'after the paused one has read it'")
		goOn()
		if err := <-ended; !errors.Is(err, rebalance.ErrFenced) {
			t.Errorf("%s: the paused mover ended with %v", step, err)
		}
		if n := count(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1 WHERE note = 'after the paused one has read it'"); n != 50 {
			t.Errorf("%s: %d rows as they were", step, n)
		}
		s.check(t, 200, nil)
	}
}

// Two moves between the same shards have the same triggers and log.
func TestAPausedMoverLeavesTheNextMoveAlone(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 200)
	start := func(step string, slot sharding.Slot) (goOn func(), ended chan error) {
		observe, reached, goOn := blockAt(step)
		m := s.mover(t, func(c *rebalance.MoverConfig) { c.Observe = observe })
		ended = make(chan error, 1)
		go func() { ended <- until(context.Background(), m, s.moves(0, 1, slot)) }()
		<-reached
		return goOn, ended
	}
	wake, paused := start(rebalance.StepSwitched, 1)
	if err := until(t.Context(), s.mover(t), s.moves(0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	goOn, next := start(rebalance.StepStored, 2)
	wake()
	if err := <-paused; !errors.Is(err, rebalance.ErrFenced) {
		t.Errorf("the paused mover ended with %v", err)
	}
	exec(t, s.dbs["a"], "UPDATE orders_0 SET note = 'changed since its chunk was copied'")
	goOn()
	if err := <-next; err != nil {
		t.Errorf("the next mover ended with %v", err)
	}
	s.check(t, 200, nil)
}

func TestChangesRightBeforeThePauseAreApplied(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 100)
	changes := []string{
		"UPDATE orders_0 SET note = 'last words' WHERE id = 3", "DELETE FROM orders_0 WHERE id = 11",
		"INSERT INTO orders_0 VALUES (5003, 19, 'newcomer', NULL)", "UPDATE orders_0 SET id = 7003 WHERE id = 27",
	}
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.Observe = func(at rebalance.Step) {
			if at.Name != rebalance.StepCompared {
				return
			}
			for _, change := range changes {
				if _, err := s.dbs["a"].ExecContext(context.Background(), change); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err := until(t.Context(), m, s.moves(0, 1, 3)); err != nil {
		t.Fatal(err)
	}
	found := s.read(t, s.shards["orders"][1], "note")
	_, deleted := found[11]
	_, renamed := found[27]
	if len(found) != 13 || found[3] != "last words" || found[5003] != "newcomer" || found[7003] != "first" || deleted || renamed {
		t.Errorf("the new shard has %v", found)
	}
}

// An example is a counter that every request increases.
func TestARowThatAlwaysChangesDoesNotKeepItsSlotFromMoving(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 100)
	fenced := false
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.Observe = func(at rebalance.Step) {
			fenced = fenced || at.Name == rebalance.StepFenced
			if (at.Name == rebalance.StepStored || at.Name == rebalance.StepAcked) && !fenced {
				exec(t, s.dbs["a"], "UPDATE orders_0 SET note = note || '+' WHERE id = 3")
			}
		}
	})
	if err := until(t.Context(), m, s.moves(0, 1, 3)); err != nil {
		t.Fatal(err)
	}
	if note := s.read(t, s.shards["orders"][1], "note")[3]; len(note) < 100 {
		t.Errorf("the row's %d last changes", len(note))
	}
}

func TestAMoveThatWouldPauseForTooLongPutsTheSlotsBack(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 300)
	m := s.mover(t, func(c *rebalance.MoverConfig) { c.MaxPause = time.Nanosecond })
	var pause *rebalance.PauseError
	if _, err := m.Run(t.Context(), s.moves(0, 1, 3)...); !errors.As(err, &pause) || !errors.Is(err, rebalance.ErrNotReady) {
		t.Fatal(err)
	}
	exec(t, s.dbs["a"], "UPDATE orders_0 SET note = 'written' WHERE id = 3")
	s.check(t, 300, nil)
	if err := until(t.Context(), s.mover(t), s.moves(0, 1, 3)); err != nil {
		t.Fatal(err)
	}
	s.check(t, 300, nil)
}

func TestAnAbortedMoveIsCleanedUpByARunWithoutMoves(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 300)
	ctx, cancel := context.WithCancel(t.Context())
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.Observe = func(at rebalance.Step) {
			if at.Name == rebalance.StepCompared {
				cancel()
			}
		}
	})
	if err := until(ctx, m, s.moves(0, 1, 4)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, store := s.process(t)
	if err := store.Abort(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), s.mover(t), nil); err != nil {
		t.Fatal(err)
	}
	s.check(t, 300, nil)
	if n := len(s.read(t, s.shards["orders"][1], "note")); n > 0 {
		t.Errorf("%d copies are left", n)
	}
}

func TestARowThatAUniqueKeyRefusesStopsTheMoveBeforeThePause(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 100)
	if err := until(t.Context(), s.mover(t), s.moves(0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	exec(t, s.dbs["b"], "UPDATE orders_1 SET code = 'c12' WHERE id = 9")
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.Observe = func(at rebalance.Step) {
			if at.Name == rebalance.StepFenced {
				t.Error("the slots were closed")
			}
		}
	})
	var row *rebalance.RowError
	if err := until(t.Context(), m, s.moves(0, 1, 4)); !errors.As(err, &row) || !errors.Is(err, rebalance.ErrNotReady) || row.ID != 12 {
		t.Fatal(err)
	}
	exec(t, s.dbs["b"], "UPDATE orders_1 SET code = 'c9' WHERE id = 9")
	if err := until(t.Context(), s.mover(t), nil); err != nil {
		t.Fatal(err)
	}
	s.check(t, 100, nil)
}

func TestRowsOfAnotherSlotWithTheSameKeyAreNotTouched(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 100)
	exec(t, s.dbs["b"], "CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT, code TEXT UNIQUE); INSERT INTO orders_1 VALUES (12, 5, 'of user 5', NULL)")
	if err := until(t.Context(), s.mover(t), s.moves(0, 1, 4)); !errors.Is(err, rebalance.ErrChanged) {
		t.Error(err)
	}
	if n := count(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1 WHERE id = 12 AND note = 'of user 5'"); n != 1 {
		t.Error("the other row is gone")
	}
}

func TestMovesThatCannotBeMadeAreRefused(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 50)
	refused := func(what string, want error, moves ...sharding.Move) {
		t.Helper()
		if err := until(t.Context(), s.mover(t), moves); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("from where it is not", sharding.ErrStaleMap, s.moves(1, 2, 1)...)
	refused("no slot", sharding.ErrNoSlot, s.moves(0, 1, slotCount)...)
	refused("no target", rebalance.ErrConfig, sharding.Move{Slot: 1, From: s.shards["orders"][0], To: sharding.Target{DB: "b", Table: "elsewhere"}})
	exec(t, s.dbs["a"], "INSERT INTO orders_2 VALUES (900, 9, 'strayed', NULL)")
	refused("a stray row in the way", rebalance.ErrNotReady, s.moves(0, 2, 1)...)
	exec(t, s.dbs["a"], "DELETE FROM orders_2; CREATE TABLE notes (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders_0 (id))")
	refused("a foreign key from outside", rebalance.ErrUnsupported, s.moves(0, 2, 1)...)
	exec(t, s.dbs["a"], "DROP TABLE notes; CREATE TRIGGER own AFTER INSERT ON items_0 BEGIN SELECT 1; END")
	refused("a trigger", rebalance.ErrUnsupported, s.moves(0, 2, 1)...)
	exec(t, s.dbs["a"], "DROP TRIGGER own; ALTER TABLE orders_2 ADD COLUMN more TEXT")
	refused("another column", rebalance.ErrNotReady, s.moves(0, 2, 1)...)
	_, store := s.process(t)
	v, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range v.Slots {
		if slot.State != slotstore.Active || slot.Shard != 0 {
			t.Errorf("%+v", slot)
		}
	}
}

func TestATableThatCannotMoveIsFoundBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 1)
	m := s.mover(t)
	if err := m.Check(t.Context(), s.moves(0, 1, 4)...); err != nil {
		t.Fatal(err)
	}
	exec(t, s.dbs["a"], "DROP TABLE items_0; CREATE TABLE items_0 (user_id INTEGER NOT NULL, what TEXT NOT NULL, PRIMARY KEY (user_id, what))")
	checked := m.Check(t.Context(), s.moves(0, 1, 4)...)
	if _, err := m.Run(t.Context(), s.moves(0, 1, 4)...); !errors.Is(checked, rebalance.ErrUnsupported) || !errors.Is(err, rebalance.ErrUnsupported) {
		t.Errorf("check: %v; run: %v", checked, err)
	}
	if n := count(t, s.dbs["b"], "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'orders%'"); n != 0 {
		t.Error("a table was created")
	}
}

func TestMoverConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, store := newSlotShop(t, 1).process(t)
	for field, cfg := range map[string]rebalance.MoverConfig{
		"Store": {}, "MaxPause": {Store: store, MaxPause: -1}, "ChunkRows": {Store: store, ChunkRows: 1 << 20},
	} {
		if _, err := rebalance.NewMover(cfg); !errors.Is(err, rebalance.ErrConfig) || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestSlotsWithLargeRowsMoveInPortions(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 20)
	// Ten rows have 1 MB, and one has 10 MB, which is more than all that a move may hold.
	exec(t, s.dbs["a"], "UPDATE orders_0 SET note = hex(zeroblob(512 * 1024)) WHERE id % 2 = 0; UPDATE orders_0 SET note = hex(zeroblob(5 * 1024 * 1024)) || id WHERE id = 7")
	exec(t, s.dbs["a"], "UPDATE orders_0 SET user_id = 1; DELETE FROM items_0")
	var portions []int64
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.ChunkRows = 1000
		c.Observe = func(at rebalance.Step) {
			if at.Name == rebalance.StepSnapshot {
				portions = append(portions, at.Rows)
			}
		}
	})
	if err := until(t.Context(), m, s.moves(0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, n := range portions {
		sum += n
	}
	if sum != 20 || len(portions) < 3 {
		t.Errorf("%d rows in portions of %v", sum, portions)
	}
	if n := count(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1 WHERE length(note) = CASE WHEN id = 7 THEN 10485761 WHEN id % 2 = 0 THEN 1048576 ELSE 5 END"); n != 20 {
		t.Errorf("%d rows are as they were", n)
	}
}

// Without its triggers the table changes unseen, after all rows were compared.
func TestAMoveWhoseTriggersSomebodyDropsBeginsAnew(t *testing.T) {
	t.Parallel()
	s := newSlotShop(t, 100)
	dropped := false
	m := s.mover(t, func(c *rebalance.MoverConfig) {
		c.Observe = func(at rebalance.Step) {
			if at.Name != rebalance.StepCompared || dropped {
				return
			}
			dropped = true
			var drops string
			if err := s.dbs["a"].QueryRow("SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema WHERE type = 'trigger' AND name NOT LIKE '%fence%' AND tbl_name = 'orders_0'").Scan(&drops); err != nil {
				t.Error(err)
			}
			exec(t, s.dbs["a"], drops+"; UPDATE orders_0 SET note = 'late' WHERE id = 12")
		}
	})
	if err := until(t.Context(), m, s.moves(0, 1, 4)); !errors.Is(err, rebalance.ErrChanged) || !dropped {
		t.Errorf("the move did not notice: %v, %v", dropped, err)
	}
	if err := until(t.Context(), s.mover(t), s.moves(0, 1, 4)); err != nil && !errors.Is(err, sharding.ErrStaleMap) {
		t.Fatal(err)
	}
	if n := count(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1 WHERE id = 12 AND note = 'late'"); n != 1 {
		t.Error("the change is lost")
	}
}
