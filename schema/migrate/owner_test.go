package migrate_test

import (
	"context"
	"errors"
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
	other := foreign.job(t, "id", called("other"))
	mustRun(t, other)
	if err := idle.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	foreign.compare(t, orders(t, "id"), "orders")
}

func TestShardsThatSomebodyEmptiedKeepTheCutoverFromHappening(t *testing.T) {
	t.Parallel()
	s := newShop(t, 100)
	j := s.job(t, "id")
	mustRun(t, j)
	for _, at := range orders(t, "id").Map.Targets() {
		exec(t, s.shards[at.DB], "DELETE FROM "+at.Table)
	}
	if _, err := j.Cutover(t.Context(), longPause); !errors.Is(err, migrate.ErrChanged) {
		t.Fatalf("the cutover ended with %v", err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM orders"); n != 100 {
		t.Errorf("the source has %d rows under its own name", n)
	}
	exec(t, s.source, "UPDATE orders SET note = 'goes on' WHERE id = 2")
}
