// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/shoptest"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

func TestWorkersRunEachJobOfEachUserOnce(t *testing.T) {
	onQueue(t, func(t *testing.T, q *queue) {
		const users, workers = 100, 4
		for user := range int64(users) {
			add(t, q, user)
		}
		var mu sync.Mutex
		ran := map[keygen.ID]int64{}
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				err := q.work(t.Context(), func(j job) error {
					mu.Lock()
					defer mu.Unlock()
					if user, again := ran[j.ID]; again {
						t.Errorf("job %d of user %d is taken again, as of user %d", j.ID, user, j.UserID)
					}
					ran[j.ID] = j.UserID
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(ran) != users {
			t.Errorf("%d jobs of %d ran", len(ran), users)
		}
		if left := count(t, q); left != 0 {
			t.Errorf("%d jobs are left", left)
		}
	})
}

func TestAPurgeDeletesTheOldJobsOfAllShardsBatchByBatch(t *testing.T) {
	onQueue(t, func(t *testing.T, q *queue) {
		now := time.Now()
		for user := range int64(2 * setup.Slots) {
			add(t, q, user)
		}
		var old []job
		for range 2*batch + 1 { // on one shard
			old = append(old, job{UserID: 3, Kind: "mail", FreeAt: now.Add(-48 * time.Hour).UnixMilli()})
		}
		if _, err := q.hook.NamedExec(t.Context(), q.db, "INSERT INTO jobs (id, user_id, kind, free_at) VALUES (:id, :user_id, :kind, :free_at)", old); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second finds none
			if err := q.purge(t.Context(), now.Add(-24*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if left := count(t, q); left != 2*setup.Slots {
				t.Errorf("%d jobs are left, want %d", left, 2*setup.Slots)
			}
		}
	})
}

func TestAJobOfOneUserIsTakenBesideManyOfAnother(t *testing.T) {
	onQueue(t, func(t *testing.T, q *queue) {
		for range 60 {
			add(t, q, 0)
		}
		add(t, q, 7)
		for range 60 {
			j, err := q.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if j.UserID == 7 {
				return
			}
		}
		t.Error("the job of user 7 waits for all of user 0")
	})
}

func TestAJobIsTakenByAnotherWorkerWhenItsLeaseHasEnded(t *testing.T) {
	onQueue(t, func(t *testing.T, q *queue) {
		add(t, q, 7)
		first, err := q.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.take(t.Context()); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("a taken job is taken again: %v", err)
		}
		if _, err := q.db.ExecContext(t.Context(), "UPDATE jobs SET free_at = 0 WHERE user_id = 7"); err != nil {
			t.Fatal(err)
		}
		second, err := q.take(t.Context())
		if err != nil || second.ID != first.ID {
			t.Fatalf("%+v, %v", second, err)
		}
		second.FreeAt++ // of another moment, should the clock not have moved on
		if _, err := q.db.ExecContext(t.Context(), "UPDATE jobs SET free_at = ? WHERE user_id = 7", second.FreeAt); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			j    job
			left int
		}{{first, 1}, {second, 0}} {
			if err := q.finish(t.Context(), step.j); err != nil {
				t.Error(err)
			}
			if n := count(t, q); n != step.left {
				t.Errorf("%d jobs are left, not %d", n, step.left)
			}
		}
	})
}

func TestAShardThatFailsKeepsNoWorkerFromTheOthers(t *testing.T) {
	onQueue(t, func(t *testing.T, q *queue) {
		add(t, q, 7)
		broken := q.router.Targets("jobs")[0]
		if _, err := q.router.DB(broken.DB).ExecContext(t.Context(), "DROP TABLE "+broken.Table); err != nil {
			t.Fatal(err)
		}
		if j, err := q.take(t.Context()); err != nil || j.UserID != 7 {
			t.Errorf("%+v, %v", j, err)
		}
		if _, err := q.take(t.Context()); err == nil || errors.Is(err, sql.ErrNoRows) {
			t.Errorf("the failure of a shard is not reported: %v", err)
		}
	})
}

func TestTheProgramEndsWhenAllJobsAreDone(t *testing.T) {
	if err := run(t.Context(), setup.Flags{}); err != nil {
		t.Error(err)
	}
}

func onQueue(t *testing.T, test func(*testing.T, *queue)) {
	t.Helper()
	shoptest.OnEveryDatabase(t, func(t *testing.T, f setup.Flags) {
		t.Helper()
		s, err := setup.Open(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		q, err := open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		test(t, q)
	})
}

func add(t *testing.T, q *queue, user int64) {
	t.Helper()
	if err := q.add(t.Context(), user, "mail"); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, q *queue) (n int) {
	t.Helper()
	if err := q.db.GetContext(sharding.AllShards(context.Background()), &n, "SELECT COUNT(*) FROM jobs"); err != nil {
		t.Fatal(err)
	}
	return n
}
