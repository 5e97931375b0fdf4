// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

func TestAnAlterEndsAFollowingRunner(t *testing.T) {
	t.Parallel()
	for _, alter := range []string{"ALTER TABLE orders ADD COLUMN late TEXT", "ALTER TABLE orders RENAME COLUMN note TO remark"} {
		s := newShop(t, 50)
		j := s.job(t, "id")
		mustRun(t, j)
		following := make(chan error, 1)
		go func() { following <- j.Follow(t.Context()) }()
		exec(t, s.source, "UPDATE orders SET total = 4 WHERE id = 7")
		for count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders") > 0 {
			continue
		}
		exec(t, s.source, alter+"; UPDATE orders SET total = 5 WHERE id = 7")
		if err := <-following; !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%s: Follow ended with %v", alter, err)
		}
	}
}

// MariaDB may leave a table in this state after its RENAME was killed: the triggers are
// gone, and the table accepts writes that nobody notes.
func TestATableThatHasLostItsTriggersIsNotSwitched(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"insert", "update", "delete"} {
		s, job := copied(t, 50)
		var trigger string
		if err := s.source.QueryRow("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'shardid_%' AND sql LIKE '%AFTER " + event + "%' AND tbl_name = 'orders'").Scan(&trigger); err != nil {
			t.Fatal(err)
		}
		exec(t, s.source, "DROP TRIGGER "+trigger)
		if _, err := job.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), trigger) {
			t.Errorf("without %s: cutover: %v", trigger, err)
		}
		if err := job.Run(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("without %s: run: %v", trigger, err)
		}
		if _, err := job.Verify(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("without %s: verify: %v", trigger, err)
		}
		if err := job.Abort(t.Context()); err != nil {
			t.Errorf("without %s: abort: %v", trigger, err)
		}
	}
}

func TestVerifyNotesNothingOfATableThatWasAltered(t *testing.T) {
	t.Parallel()
	for _, alter := range []string{"ALTER TABLE orders ADD COLUMN late TEXT", "ALTER TABLE orders DROP COLUMN note"} {
		s, job := copied(t, 100)
		db, table := s.home(t, 7)
		exec(t, db, fmt.Sprintf("DELETE FROM %s WHERE id = 7", table))
		exec(t, s.source, alter)
		if v, err := job.Verify(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%s: %+v, %v", alter, v, err)
		}
		if n := count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders"); n != 0 {
			t.Errorf("%s: %d entries were noted", alter, n)
		}
	}
}

// fastWriters have a job whose source is written to whenever its log has become
// empty, until they stop or the tables are closed.
func fastWriters(t *testing.T, s *shop, write string) (j *migrate.Job, stop func()) {
	var writing atomic.Bool // copiers are observed side by side
	j = s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if step.Name == migrate.StepLocked {
				writing.Store(false)
			}
			if step.Name == migrate.StepAcked && writing.Load() && count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders") == 0 {
				exec(t, s.source, write)
			}
		}
	})
	mustRun(t, j)
	writing.Store(true)
	exec(t, s.source, write)
	return j, func() { writing.Store(false) }
}

func TestASwitchSaysHowManyChangesWaitWhenWritersAreTooFast(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1000)
	j, stop := fastWriters(t, s, "UPDATE orders SET note = 'again'")
	_, err := j.Cutover(t.Context(), 4*time.Millisecond)
	waiting := fmt.Sprintf("; %d changes wait", count(t, s.source, "SELECT COUNT(*) FROM shardid_log_orders"))
	if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), waiting) {
		t.Errorf("the cutover ended with %v", err)
	}
	stop()
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}

func TestThePauseTakesOverWhatWritersAddInAPartOfIt(t *testing.T) {
	t.Parallel()
	s := newShop(t, 400)
	j, _ := fastWriters(t, s, "UPDATE orders SET note = note || 'x' WHERE id <= 300")
	if done := mustCutover(t, j); done.Drained < 300 {
		t.Errorf("%d changes came over in the pause", done.Drained)
	}
	s.compare(t, orders(t, "id"), "orders_old")
}

// TestShardsRestoredFromAnOlderBackupAreDetected restores files from an earlier moment in
// which the job was led as well.
func TestShardsRestoredFromAnOlderBackupAreDetected(t *testing.T) {
	t.Parallel()
	s, job := copied(t, 100)
	exec(t, s.shards["a"], "VACUUM INTO '"+s.dir+"/backup.db'")
	exec(t, s.source, "UPDATE orders SET note = 'after the backup'")
	mustRun(t, job)
	following := make(chan error, 1)
	go func() { following <- job.Follow(t.Context()) }()
	s.restore(t, "a")
	if err := <-following; !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("Follow ended with %v", err)
	}
	if _, err := job.Verify(t.Context()); !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("Verify ended with %v", err)
	}
	if _, err := job.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "orders_0") {
		t.Errorf("Cutover ended with %v", err)
	}
	if err := job.Follow(t.Context()); !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("Follow ended with %v", err)
	}
	if err := job.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustRun(t, job)
	mustCutover(t, job)
	s.compare(t, orders(t, "user_id"), "orders_old")
}

// restore makes the contents of a shard's database those of the backup.
func (s *shop) restore(t *testing.T, name string) {
	t.Helper()
	conn, err := s.shards[name].Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var tables string
	if err := conn.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(name) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	statements := []string{"ATTACH '" + s.dir + "/backup.db' AS backup"}
	for table := range strings.SplitSeq(tables, ",") {
		statements = append(statements, "DELETE FROM main."+table, "INSERT INTO main."+table+" SELECT * FROM backup."+table)
	}
	for _, text := range append(statements, "DETACH backup") {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// After the switch the source would miss what applications write to the shard: somebody has restored
// its table without triggers, say. An operator declares that the rows of the shard are right, and a
// runner then creates the triggers anew.
func TestAShardThatHasLostItsTriggersIsBroughtBackOnceItIsDeclaredRight(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"insert", "update", "delete"} {
		s, job := switched(t, "id")
		var trigger string
		if err := s.shards["b"].QueryRow("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'shardid_%' AND sql LIKE '%AFTER " + event + "%' AND tbl_name = 'orders_01'").Scan(&trigger); err != nil {
			t.Fatal(err)
		}
		exec(t, s.shards["b"], "DROP TRIGGER "+trigger)
		exec(t, s.shards["b"], "UPDATE orders_01 SET note = 'unseen' WHERE id = 5; DELETE FROM orders_01 WHERE id = 9; INSERT INTO orders_01 (id, user_id) VALUES (9001, 1)")
		_, verified := job.Verify(t.Context())
		_, rolledBack := job.Rollback(t.Context(), longPause)
		for call, err := range map[string]error{"Run": job.Run(t.Context()), "Follow": job.Follow(t.Context()), "Verify": verified, "Rollback": rolledBack} {
			if !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), trigger) || !strings.Contains(err.Error(), "orders_01 on b") {
				t.Errorf("without %s: %s: %v", trigger, call, err)
			}
		}
		exec(t, s.source, "DELETE FROM shardid_target WHERE place = 'b/orders_01'")
		mustRun(t, job)
		exec(t, s.shards["b"], "UPDATE orders_01 SET note = 'seen' WHERE id = 13; DELETE FROM orders_01 WHERE id = 17; INSERT INTO orders_01 (id, user_id) VALUES (9005, 1)")
		if v := verify(t, job); v.Requeued > 3 { // what happened without the trigger
			t.Errorf("%+v", v)
		}
		want := count(t, s.shards["b"], "SELECT COUNT(*) FROM orders_01")
		if _, err := job.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		unseen := count(t, s.source, "SELECT COUNT(*) FROM orders WHERE id = 5 AND note = 'unseen' OR id = 13 AND note = 'seen' OR id IN (9001, 9005)")
		if rows := count(t, s.source, "SELECT COUNT(*) FROM orders WHERE id & 3 = 1"); rows != want || unseen != 4 {
			t.Errorf("without %s: %d rows of %d, %d of 4 changes", trigger, rows, want, unseen)
		}
	}
}

// A program that creates missing tables at its start does that after the switch: the name of the
// retired table is free.
func TestATableThatIsCreatedInPlaceOfTheRetiredOneGetsNoRowsAndStopsARollback(t *testing.T) {
	t.Parallel()
	s, job := switched(t, "id")
	exec(t, s.source, "CREATE TABLE orders AS SELECT * FROM orders_old LIMIT 0")
	exec(t, s.shards["b"], "UPDATE orders_01 SET note = 'newest' WHERE id = 5; DELETE FROM orders_01 WHERE id = 9")
	mustRun(t, job)
	if v := verify(t, job); !v.Clean() || v.Rows == 0 {
		t.Errorf("%+v", v)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM orders_old WHERE id = 9 OR id = 5 AND note <> 'newest'"); n != 0 {
		t.Errorf("%d rows were not brought back", n)
	}
	if _, err := job.Rollback(t.Context(), longPause); !errors.Is(err, migrate.ErrUnclear) || !strings.Contains(err.Error(), "drop") {
		t.Errorf("a rollback beside the other table: %v", err)
	}
	exec(t, s.shards["b"], "UPDATE orders_01 SET note = 'served' WHERE id = 5") // the shards still serve
	exec(t, s.source, "DROP TABLE orders")
	if _, err := job.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM orders WHERE id = 5 AND note = 'served'"); n != 1 {
		t.Errorf("%d rows have the newest change", n)
	}
}

func TestATableThatSomebodyCreatedBesideTheServingOneIsNamed(t *testing.T) {
	t.Parallel()
	s, job := copied(t, 50)
	exec(t, s.source, "CREATE TABLE orders_old (x)")
	if err := job.Run(t.Context()); !errors.Is(err, migrate.ErrUnclear) || !strings.Contains(err.Error(), "both orders and orders_old exist") {
		t.Errorf("%v", err)
	}
	exec(t, s.source, "DROP TABLE orders_old")
	mustRun(t, job)
}

func TestATableThatSomebodyRenamedIsRenamedBack(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, job *migrate.Job, calls ...func(*migrate.Job) error) {
		t.Helper()
		for i, call := range calls {
			if err := call(job); !errors.Is(err, migrate.ErrUnclear) || !strings.Contains(err.Error(), "rename") {
				t.Errorf("call %d: %v", i, err)
			}
		}
	}
	run := func(job *migrate.Job) error { return job.Run(t.Context()) }
	cutover := func(job *migrate.Job) error { _, err := job.Cutover(t.Context(), longPause); return err }
	rollback := func(job *migrate.Job) error { _, err := job.Rollback(t.Context(), longPause); return err }
	s, job := copied(t, 50)
	exec(t, s.source, "ALTER TABLE orders RENAME TO elsewhere")
	refused(t, job, run, cutover)
	exec(t, s.source, "ALTER TABLE elsewhere RENAME TO orders")
	if err := errors.Join(run(job), cutover(job)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"elsewhere", "orders"} {
		exec(t, s.source, "ALTER TABLE orders_old RENAME TO "+name)
		refused(t, job, run, rollback)
		exec(t, s.source, "ALTER TABLE "+name+" RENAME TO orders_old")
		if err := run(job); err != nil {
			t.Fatal(err)
		}
	}
	if err := rollback(job); err != nil {
		t.Fatal(err)
	}
}

// ended is a context whose end no statement notices.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// Whoever stops Follow has to know when a table is not what it was: nobody else says so.
func TestFollowReportsWhatItHasFoundWhenItIsStopped(t *testing.T) {
	t.Parallel()
	s, job := copied(t, 10)
	exec(t, s.source, "ALTER TABLE orders ADD COLUMN more TEXT")
	if err := job.Follow(ended{context.WithoutCancel(t.Context())}); !errors.Is(err, migrate.ErrChanged) {
		t.Errorf("Follow ended with %v", err)
	}
}
