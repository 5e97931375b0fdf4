// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func called(name string) func(*migrate.Config) {
	return func(c *migrate.Config) { c.Name = name }
}

func TestATableBelongsToOneJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, 100)
	ctx, stop := context.WithCancel(t.Context())
	paused := s.job(t, "id", called("a"), func(c *migrate.Config) {
		c.Throttle = func(context.Context) error { stop(); return ctx.Err() }
	})
	if err := paused.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("the job that copies nothing ended with %v", err)
	}
	other := s.job(t, "id", called("b"))
	err := other.Run(t.Context())
	if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "orders is of job a") {
		t.Fatalf("the second job ended with %v", err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'shardid_b%'"); n != 0 {
		t.Errorf("the second job left %d triggers", n)
	}
	if err := paused.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustRun(t, other)
	mustCutover(t, other)
	s.compare(t, orders(t, "id"), "orders_old")
}

func TestAnAbortLeavesTheRowsThatItsJobDidNotCopy(t *testing.T) {
	t.Parallel()
	s, foreign := newShop(t, 100), newShop(t, 100)
	ctx, stop := context.WithCancel(t.Context())
	idle := s.job(t, "id", func(c *migrate.Config) {
		c.Shards = foreign.shards
		c.Throttle = func(context.Context) error { stop(); return ctx.Err() }
	})
	if err := idle.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	foreign.eachShard(t, "INSERT INTO %s (id, user_id) VALUES (1, 1)")
	if err := idle.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, at := range orders(t, "id").Map.Targets() {
		if n := count(t, foreign.shards[at.DB], "SELECT COUNT(*) FROM "+at.Table); n != 1 {
			t.Errorf("%s has %d rows", at, n)
		}
	}
}

// eachShard executes a statement with the name of each shard.
func (s *shop) eachShard(tb testing.TB, format string) {
	tb.Helper()
	for _, at := range orders(tb, "id").Map.Targets() {
		exec(tb, s.shards[at.DB], fmt.Sprintf(format, at.Table))
	}
}

func TestShardsThatSomebodyEmptiedKeepTheCutoverFromHappening(t *testing.T) {
	t.Parallel()
	s := newShop(t, 100)
	j := s.job(t, "id")
	mustRun(t, j)
	s.eachShard(t, "DELETE FROM %s")
	if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrChanged) {
		t.Fatalf("the cutover ended with %v", err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM orders"); n != 100 {
		t.Errorf("the source has %d rows under its own name", n)
	}
	exec(t, s.source, "UPDATE orders SET note = 'goes on' WHERE id = 2")
}

func TestShardsBelongToOneSource(t *testing.T) {
	t.Parallel()
	first, second := newShop(t, 100), newShop(t, 100)
	exec(t, second.source, "UPDATE orders SET note = 'of the other shop'")
	mustRun(t, first.job(t, "id"))
	for _, name := range []string{"orders", "other"} {
		intruder := second.job(t, "id", called(name), func(c *migrate.Config) { c.Shards = first.shards })
		err := intruder.Run(t.Context())
		if !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "another source") && !strings.Contains(err.Error(), "belongs to job orders") {
			t.Errorf("job %s of the second source ended with %v", name, err)
		}
		if n := count(t, second.source, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger'"); n != 0 {
			t.Errorf("job %s left %d triggers", name, n)
		}
	}
	mustCutover(t, first.job(t, "id")) // no intruder has fenced it or left a row
	first.compare(t, orders(t, "id"), "orders_old")
}

func TestShardsOfAnAbortedJobMayBecomeThoseOfAnother(t *testing.T) {
	t.Parallel()
	first, second := newShop(t, 100), newShop(t, 50)
	second.shards = first.shards
	mustRun(t, first.job(t, "id"))
	if err := first.job(t, "id").Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := second.job(t, "id", called("other"))
	mustRun(t, other)
	mustCutover(t, other)
	second.compare(t, orders(t, "id"), "orders_old")
}

func TestAJobThatCouldNotBeginOwnsNothing(t *testing.T) {
	t.Parallel()
	first, second := newShop(t, 10), newShop(t, 10)
	second.shards = first.shards
	at := orders(t, "id").Map.Targets()[3]
	exec(t, first.shards[at.DB], strings.Replace(shopSQL, "orders", at.Table, 1))
	exec(t, first.shards[at.DB], "INSERT INTO "+at.Table+" (user_id) VALUES (1)")
	if err := first.job(t, "id").Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) {
		t.Fatalf("a shard with a row was taken: %v", err)
	}
	exec(t, first.shards[at.DB], "DELETE FROM "+at.Table)
	mustRun(t, second.job(t, "id", called("other")))
}
