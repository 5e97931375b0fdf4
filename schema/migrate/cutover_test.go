// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

const longPause = 10 * time.Minute

func mustRun(t *testing.T, j *migrate.Job) {
	t.Helper()
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func mustCutover(t *testing.T, j *migrate.Job) migrate.Switch {
	t.Helper()
	done, err := j.Cutover(t.Context(), longPause)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestCutoverUnderWritersLosesNothing(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"id", "user_id"} {
		s := newShop(t, 600)
		stop := s.writers(t, 3)
		j := s.job(t, key)
		mustRun(t, j)
		done := mustCutover(t, j)
		n := stop()
		t.Logf("%d changes, pause %s, %d drained", n, done.Pause, done.Drained)
		s.compare(t, orders(t, key), "orders_old")
		if got := routeOf(t, s); got != "shards" {
			t.Errorf("the route says %q", got)
		}
		if err := s.change(rand.New(rand.NewPCG(1, 1))); err == nil || !strings.Contains(err.Error(), "no such table") {
			t.Errorf("a writer of the closed table got %v", err)
		}
	}
}

func routeOf(t *testing.T, s *shop) string {
	t.Helper()
	var route string
	if err := s.source.QueryRowContext(t.Context(), "SELECT route FROM shardid_route WHERE tbl = 'orders'").Scan(&route); err != nil {
		t.Fatal(err)
	}
	return route
}

func TestCutoverGivesUpWhenAWriterHoldsTheTable(t *testing.T) {
	s := newShop(t, 100)
	j := s.job(t, "id")
	mustRun(t, j)
	writer, err := s.source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.ExecContext(t.Context(), "BEGIN IMMEDIATE; UPDATE orders SET note = 'slow' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	locked := make(chan struct{})
	go func() { // the lock is asked for and taken over by nobody while the writer works
		<-locked
		_, _ = writer.ExecContext(context.Background(), "COMMIT")
		_ = writer.Close()
	}()
	close(locked)
	// The leader's own election needs the file first, so that only the pause is short.
	_, err = j.Cutover(t.Context(), time.Nanosecond)
	var pause *migrate.PauseError
	if !errors.As(err, &pause) || !errors.Is(err, migrate.ErrNotReady) {
		t.Fatalf("got %v", err)
	}
	exec(t, s.source, "UPDATE orders SET note = 'goes on' WHERE id = 2")
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}

func TestTheRetiredTableRefusesWriters(t *testing.T) {
	s := newShop(t, 10)
	j := s.job(t, "id")
	mustRun(t, j)
	mustCutover(t, j)
	for _, text := range []string{"INSERT INTO orders_old (user_id) VALUES (1)", "UPDATE orders_old SET user_id = 3", "DELETE FROM orders_old"} {
		if _, err := s.source.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "moved to shards") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// writeOnShards changes rows where they lie, as the application does after the
// switch.
func writeOnShards(t *testing.T, s *shop, random *rand.Rand, n int) {
	t.Helper()
	table := orders(t, "id")
	for range n {
		id := int64(random.IntN(900) + 1)
		at, err := table.Target(id)
		if err != nil {
			t.Fatal(err)
		}
		text := []string{
			fmt.Sprintf("INSERT OR IGNORE INTO %s (id, user_id, code) VALUES (%d, 5, 's%d')", at.Table, id, id),
			fmt.Sprintf("UPDATE %s SET note = 'on shard %d' WHERE id = %d", at.Table, random.IntN(1000), id),
			fmt.Sprintf("DELETE FROM %s WHERE id = %d", at.Table, id),
		}[random.IntN(3)]
		exec(t, s.shards[at.DB], text)
	}
}

func TestRollbackBringsBackWhatWasWrittenToTheShards(t *testing.T) {
	s := newShop(t, 600)
	j := s.job(t, "id")
	random := rand.New(rand.NewPCG(3, 3))
	mustRun(t, j)
	for range 2 {
		mustCutover(t, j)
		writeOnShards(t, s, random, 300)
		ctx, cancel := context.WithCancel(t.Context())
		following := make(chan error)
		go func() { following <- j.Follow(ctx) }()
		writeOnShards(t, s, random, 300)
		cancel()
		if err := <-following; err != nil {
			t.Fatal(err)
		}
		writeOnShards(t, s, random, 100)
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compareSealed(t, orders(t, "id"), "orders", "_sealed")
		if got := routeOf(t, s); got != "returned" {
			t.Errorf("the route says %q", got)
		}
		stop := s.writers(t, 2)
		mustRun(t, j)
		stop()
	}
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
	if err := j.Finalize(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Finalize(t.Context()); err != nil {
		t.Error(err)
	}
	for _, db := range s.shards {
		if n := count(t, db, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger'"); n != 0 {
			t.Errorf("%d triggers are left on a shard", n)
		}
	}
	if err := j.Run(t.Context()); err != nil {
		t.Errorf("a finished job: %v", err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'shardid_log%'"); n != 0 {
		t.Error("a finished job has a log again")
	}
}

func TestAbortLeavesTheSourceAsItWas(t *testing.T) {
	s := newShop(t, 200)
	before := list(t, s.source, "orders")
	j := s.job(t, "id")
	mustRun(t, j)
	if err := j.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := list(t, s.source, "orders"); len(after) != len(before) {
		t.Errorf("%d rows of %d", len(after), len(before))
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' OR name LIKE 'shardid_log%'"); n != 0 {
		t.Errorf("%d triggers or logs are left", n)
	}
	mustRun(t, j) // a new job over the same shards
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}

func TestCutoverAsksWithTheHighestIDWhetherTheGeneratorIsReady(t *testing.T) {
	s := newShop(t, 120)
	exec(t, s.source, "UPDATE orders SET id = 4000 WHERE id = 7")
	behind, asked := errors.New("the generator is behind"), map[string]int64{}
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Ready = func(_ context.Context, highest map[string]int64) error {
			asked = highest
			return behind
		}
	})
	mustRun(t, j)
	exec(t, s.source, "INSERT INTO orders (id, user_id) VALUES (5000, 3)") // comes over during the pause
	if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, behind) || !errors.Is(err, migrate.ErrNotReady) {
		t.Errorf("got %v", err)
	}
	if len(asked) != 1 || asked["orders"] != 5000 {
		t.Errorf("asked with %v", asked)
	}
	exec(t, s.source, "UPDATE orders SET note = 'goes on' WHERE id = 2")
	behind = nil
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}

// A row that moves from one shard to another is on both for a moment.
func TestARowThatTwoShardsHaveWaits(t *testing.T) {
	s, job := switched(t, "user_id")
	exec(t, s.shards["b"], "INSERT INTO orders_01 (id, user_id, code) SELECT 4, 5, 'moved' WHERE true")
	exec(t, s.shards["a"], "UPDATE orders_00 SET note = 'comes back' WHERE id = 8")
	ctx, stop := context.WithCancel(t.Context())
	following := make(chan error, 1)
	go func() { following <- job.Follow(ctx) }()
	for count(t, s.source, "SELECT COUNT(*) FROM orders_old WHERE id = 8 AND note = 'comes back'") == 0 {
		continue
	}
	if user := count(t, s.source, "SELECT user_id FROM orders_old WHERE id = 4"); user != 4 {
		t.Errorf("the row that two shards have was brought back from one: %d", user)
	}
	if _, err := job.Rollback(t.Context(), longPause); err == nil {
		t.Error("rolled back with a row that two shards have")
	}
	exec(t, s.shards["a"], "DELETE FROM orders_00 WHERE id = 4")
	stop()
	if err := <-following; err != nil && !errors.Is(err, migrate.ErrFenced) {
		t.Error(err)
	}
	if _, err := job.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	s.compareSealed(t, orders(t, "user_id"), "orders", "_sealed")
}

// Nobody can say which of the two rows the source should get.
func TestARunEndsBesideARowThatTwoShardsHaveAndNoSwitchPassesIt(t *testing.T) {
	s, job := switched(t, "user_id")
	exec(t, s.shards["b"], "INSERT INTO orders_01 (id, user_id, code) SELECT 4, 5, 'another' WHERE true")
	mustRun(t, job)
	if p, err := job.Progress(t.Context()); err != nil || p.Backlog != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if v := verify(t, job); v.Clean() || v.Unsettled != 1 || v.Requeued != 0 {
		t.Errorf("%+v", v)
	}
	var row *migrate.RowError
	if _, err := job.Rollback(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !errors.As(err, &row) || row.ID != 4 {
		t.Errorf("a rollback ended with %v", err)
	}
	exec(t, s.shards["b"], "UPDATE orders_01 SET id = 4001 WHERE id = 4")
	mustRun(t, job)
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
	if _, err := job.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	s.compareSealed(t, orders(t, "user_id"), "orders", "_sealed")
}

func TestViewsAndTriggersThatNameATablePreventTheCutover(t *testing.T) {
	for what, c := range map[string]struct{ makes, drops string }{
		"view recent":      {"CREATE VIEW recent AS SELECT id FROM orders WHERE id > 10", "DROP VIEW recent"},
		"trigger counting": {"CREATE TABLE other (id INTEGER); CREATE TRIGGER counting AFTER INSERT ON other BEGIN DELETE FROM orders WHERE id = NEW.id; END", "DROP TRIGGER counting"},
		"table items": {
			"CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id))", "DROP TABLE items",
		},
	} {
		s := newShop(t, 20)
		j := s.job(t, "id")
		mustRun(t, j)
		exec(t, s.source, c.makes)
		if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		exec(t, s.source, "UPDATE orders SET note = 'goes on' WHERE id = 2")
		exec(t, s.source, c.drops)
		mustCutover(t, j)
		s.compare(t, orders(t, "id"), "orders_old")
	}
}

// Names differ in case where the database takes them for the same.
func TestATableThatTheConfigurationSpellsOtherwiseIsClosed(t *testing.T) {
	t.Parallel()
	s := newShop(t, 50)
	j := s.job(t, "id", func(c *migrate.Config) { c.Tables[0].Name = "Orders" })
	for range 2 {
		mustRun(t, j)
		mustCutover(t, j)
		if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = 'orders' COLLATE NOCASE"); n != 0 {
			t.Fatal("the table is open after the switch")
		}
		s.compare(t, orders(t, "id"), "orders_old")
		if _, err := j.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStatusTellsForHowLongWritersWaitedInTheLastSwitches(t *testing.T) {
	s := newShop(t, 30)
	no := errors.New("not before noon")
	var ready error
	job := s.job(t, "id", func(c *migrate.Config) { c.Ready = func(context.Context, map[string]int64) error { return ready } })
	mustRun(t, job)
	ready = no
	if _, err := job.Cutover(t.Context(), time.Minute); !errors.Is(err, no) {
		t.Fatal(err)
	}
	ready = nil
	done, err := job.Cutover(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := job.Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Rollback(t.Context(), time.Minute); err != nil { // once more, which lets nobody wait
		t.Fatal(err)
	}
	status, err := job.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		way  string
		made bool
	}{{"rollback", true}, {"cutover", true}, {"cutover", false}}
	if len(status.Switches) != len(want) {
		t.Fatalf("%+v", status.Switches)
	}
	for i, w := range want {
		if p := status.Switches[i]; p.Way != w.way || p.Made != w.made || p.PauseMS <= 0 || time.Since(p.Ended).Abs() > time.Hour {
			t.Errorf("%+v, want %+v", p, w)
		}
	}
	if is, want := status.Switches[1].PauseMS, float64(done.Pause.Microseconds())/1e3; is != want {
		t.Errorf("a pause of %v ms, and Cutover said %v", is, want)
	}
	if err := job.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, err := job.Status(t.Context()); err != nil || len(status.Switches) > 0 {
		t.Errorf("after an abort: %+v, %v", status.Switches, err)
	}
}
