// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// small cuts the rows into many ranges.
func small(c *migrate.Config) { c.ChunkRows = 10 }

// home is the database and physical table of an order.
func (s *shop) home(t *testing.T, id int64) (*sql.DB, string) {
	t.Helper()
	table := orders(t, "user_id")
	at, err := table.Target(count(t, s.source, "SELECT user_id FROM orders WHERE id = ?", id))
	if err != nil {
		t.Fatal(err)
	}
	return s.shards[at.DB], at.Table
}

// copied is a shop whose rows are on the shards.
func copied(t *testing.T, rows int) (*shop, *migrate.Job) {
	t.Helper()
	s := newShop(t, rows)
	exec(t, s.source, "INSERT INTO orders (id, user_id, note) VALUES (-5, 3, 'below zero')")
	job := s.job(t, "user_id", small)
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, job
}

func verify(t *testing.T, job *migrate.Job) migrate.Verification {
	t.Helper()
	v, err := job.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifyOfACompleteCopyFindsNothing(t *testing.T) {
	_, job := copied(t, 400)
	v := verify(t, job)
	if !v.Clean() || v.Rows != 401 || v.Ranges != 6 || v.Suspects != 0 {
		t.Errorf("%+v", v)
	}
}

func TestVerifyTellsHowManyRowsItHasCompared(t *testing.T) {
	s, _ := copied(t, 400)
	var compared atomic.Int64
	job := s.job(t, "user_id", small, func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == migrate.StepCompared && at.Table == "orders" {
				compared.Add(at.Rows)
			}
		}
	})
	if v := verify(t, job); v.Rows != compared.Load() || v.Rows != 401 {
		t.Errorf("%d rows were told, %d compared", compared.Load(), v.Rows)
	}
}

func TestVerifyOfAnEmptyTableLooksAtTheShards(t *testing.T) {
	s := newShop(t, 0)
	job := s.job(t, "user_id")
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, job); !v.Clean() || v.Rows != 0 {
		t.Errorf("%+v", v)
	}
	exec(t, s.shards["a"], "INSERT INTO orders_00 (id, user_id) VALUES (5, 0)")
	if v := verify(t, job); len(v.Divergences) != 1 || v.Divergences[0].Kind != migrate.Extra {
		t.Errorf("%+v", v)
	}
}

func TestVerifyNamesEveryRowThatDiffers(t *testing.T) {
	s, job := copied(t, 300)
	change := func(id int64, statement string) {
		db, table := s.home(t, id)
		exec(t, db, fmt.Sprintf(statement, table, id))
	}
	change(5, "UPDATE %s SET total = NULL WHERE id = %d")
	change(6, "UPDATE %s SET note = CAST(note AS BLOB) WHERE id = %d")
	change(7, "DELETE FROM %s WHERE id = %d")
	exec(t, s.shards["a"], "INSERT INTO orders_00 (id, user_id, note) VALUES (-4000000000, 4, 'below all others')")
	exec(t, s.shards["a"], "INSERT INTO orders_00 (id, user_id, code, note, total) VALUES (1, 1, 'c1', 'note 1', 1.1)")
	exec(t, s.shards["b"], "INSERT INTO orders_01 (id, user_id, note) VALUES (9000000000, 1, 'above all others')")

	v := verify(t, job)
	got := named(v)
	want := []string{
		"orders -4000000000: extra on a/orders_00",
		"orders 1: misplaced on a/orders_00",
		"orders 5: different on b/orders_01",
		"orders 6: different on a/orders_02",
		"orders 7: missing on b/orders_03",
		"orders 9000000000: extra on b/orders_01",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if v.Clean() || v.Requeued != 6 || v.Suspects != 6 || v.Unsettled != 0 {
		t.Errorf("%+v", v)
	}
	rewritten(t, job)
}

// rewritten: what Verify found is right after the runner's next round.
func rewritten(t *testing.T, job *migrate.Job) {
	t.Helper()
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
}

func TestAChangeThatWaitsForTheRunnerIsNoDivergence(t *testing.T) {
	s, job := copied(t, 100)
	exec(t, s.source, "UPDATE orders SET note = 'new' WHERE id = 7")
	exec(t, s.source, "DELETE FROM orders WHERE id = 8")
	v := verify(t, job)
	if v.Clean() || len(v.Divergences) != 0 || v.Requeued != 0 || v.Unsettled != 2 {
		t.Errorf("%+v", v)
	}
	rewritten(t, job)
}

func TestVerifyComparesWhatIsCopiedSoFar(t *testing.T) {
	s := newShop(t, 300)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stored := 0
	stop := s.job(t, "user_id", small, func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if step.Name == migrate.StepStored {
				if stored++; stored == 5 {
					cancel()
				}
			}
		}
	})
	if err := stop.Run(ctx); err == nil {
		t.Fatal("the run ended well")
	}
	v := verify(t, s.job(t, "user_id", small))
	if v.Complete || v.Clean() || v.Rows < 30 || v.Rows > 60 || v.Requeued != 0 || v.Unsettled != 0 {
		t.Errorf("%+v", v)
	}
}

func TestVerifyBesideWritersAndARunnerReportsNoRow(t *testing.T) {
	t.Parallel()
	s, job := copied(t, 500)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- job.Follow(ctx) }()
	stopWriters := s.writers(t, 2)
	for range 3 {
		if v := verify(t, job); v.Requeued != 0 {
			t.Errorf("%+v", v)
		}
	}
	stopWriters()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	rewritten(t, job)
}

func TestVerifyOfAJobThatWasNotBegunIsRefused(t *testing.T) {
	if v, err := newShop(t, 3).job(t, "id").Verify(t.Context()); !errors.Is(err, migrate.ErrPhase) {
		t.Errorf("%+v, %v", v, err)
	}
}

// switched is a shop whose shards serve, and whose changes were brought back.
func switched(t *testing.T, key string) (*shop, *migrate.Job) {
	t.Helper()
	s := newShop(t, 300)
	job := s.job(t, key, small)
	mustRun(t, job)
	mustCutover(t, job)
	return s, job
}

// broughtBack has the changes of the shards carried into the retired table.
func broughtBack(t *testing.T, job *migrate.Job) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- job.Follow(ctx) }()
	for {
		p, err := job.Progress(t.Context())
		if err != nil || p.Backlog == 0 {
			stop()
			if err = errors.Join(err, <-ended); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestVerifyAfterTheSwitchNamesWhatTheRetiredTableLacks(t *testing.T) {
	s, job := switched(t, "user_id")
	if v := verify(t, job); !v.Clean() || v.Rows != 300 {
		t.Errorf("%+v", v)
	}
	exec(t, s.source, "UPDATE shardid_fence SET pass = 1") // so that the barrier lets the test break things
	exec(t, s.source, "UPDATE orders_old SET total = NULL WHERE id = 5")
	exec(t, s.source, "DELETE FROM orders_old WHERE id = 7")
	exec(t, s.source, "INSERT INTO orders_old (id, user_id) VALUES (-8, 3), (7000, 3)")
	exec(t, s.source, "UPDATE shardid_fence SET pass = 0")

	v := verify(t, job)
	want := []string{
		"orders -8: extra on source/orders_old", "orders 5: different on source/orders_old",
		"orders 7000: extra on source/orders_old", "orders 7: missing on source/orders_old",
	}
	if got := named(v); !slices.Equal(got, want) || v.Requeued != 4 {
		t.Errorf("\n got %q\nwant %q\n%+v", got, want, v)
	}
	broughtBack(t, job)
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
}

// A row on the wrong shard is a mistake of the application. It is not lost.
func TestARowOnTheWrongShardIsNamedAndComesBack(t *testing.T) {
	for _, key := range []string{"id", "user_id"} {
		s, job := switched(t, key)
		exec(t, s.shards["b"], "INSERT INTO orders_03 (id, user_id, note) VALUES (9000, 8, 'of slot 0')")
		broughtBack(t, job)
		v := verify(t, job)
		if want := []string{"orders 9000: misplaced on b/orders_03"}; !slices.Equal(named(v), want) {
			t.Errorf("%s: %+v", key, v)
		}
		if _, err := job.Rollback(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if note := count(t, s.source, "SELECT COUNT(*) FROM orders WHERE id = 9000 AND note = 'of slot 0'"); note != 1 {
			t.Errorf("%s: the row is lost", key)
		}
		// The source serves: the shards have to follow.
		if v := verify(t, job); v.Requeued != 1 {
			t.Errorf("%s: %+v", key, v)
		}
		rewritten(t, job)
	}
}

func TestVerifyBesideWritersOfTheShardsReportsNoRow(t *testing.T) {
	t.Parallel()
	s, job := switched(t, "id")
	ctx, stop := context.WithCancel(t.Context())
	following, writing := make(chan error, 1), make(chan struct{})
	go func() { following <- job.Follow(ctx) }()
	go func() {
		defer close(writing)
		for seed := uint64(0); ctx.Err() == nil; seed++ {
			writeOnShards(t, s, rand.New(rand.NewPCG(seed, 5)), 20)
		}
	}()
	for range 3 {
		if v := verify(t, job); v.Requeued != 0 {
			t.Errorf("%+v", v)
		}
	}
	stop()
	<-writing
	if err := <-following; err != nil {
		t.Error(err)
	}
	broughtBack(t, job)
	if v := verify(t, job); !v.Clean() {
		t.Errorf("%+v", v)
	}
}

func TestVerifyAfterARollbackComparesTheClosedShards(t *testing.T) {
	s, job := switched(t, "user_id")
	exec(t, s.shards["b"], "UPDATE orders_01 SET note = 'on the shard'")
	if _, err := job.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, job); !v.Clean() || v.Rows != 300 {
		t.Errorf("%+v", v)
	}
	exec(t, s.shards["a"], "DELETE FROM orders_00_sealed WHERE id = 4")
	if v := verify(t, job); len(v.Divergences) != 1 || v.Divergences[0].Kind != migrate.Missing {
		t.Errorf("%+v", v)
	}
	rewritten(t, job)
}

func named(v migrate.Verification) (all []string) {
	for _, d := range v.Divergences {
		all = append(all, d.String())
	}
	slices.Sort(all)
	return all
}

// A runner counts up beats, on the shards first.
func TestVerifyBesideHeartbeatsReportsNoRow(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10)
	j := s.job(t, "id")
	mustRun(t, j)
	ctx, cancel := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		for beat := 1000; ctx.Err() == nil; beat++ {
			for _, step := range []struct {
				db    *sql.DB
				table string
			}{{s.shards["a"], "shardid_owner"}, {s.shards["b"], "shardid_owner"}, {s.source, "shardid_target"}} {
				if _, err := step.db.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET beat = %d", step.table, beat)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 30 {
		if _, err := j.Verify(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	beating.Wait()
}
