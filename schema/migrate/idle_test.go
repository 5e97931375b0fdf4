// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// idler is an instance of the application that has read the route to the shards, and no
// later one.
type idler struct {
	shop   *shop
	router *sharding.Router
	seen   *sharding.Snapshot
}

func (s *shop) newIdler(t *testing.T) *idler {
	t.Helper()
	dbs := sharding.DBs{"source": s.source, "a": s.shards["a"], "b": s.shards["b"]}
	r, err := sharding.New(dbs, orders(t, "id").Table, sharding.Migration{Source: "source", Tables: map[string]string{"orders": "id"}, Patience: 15 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &idler{s, r, r.Snapshot()}
}

// write sends an INSERT to where the instance believes order 8 to lie.
func (i *idler) write(ctx context.Context, snapshot *sharding.Snapshot) (sharding.Target, error) {
	table, _ := snapshot.Lookup("orders")
	at, err := table.Target(8)
	if err == nil {
		_, err = i.router.DB(at.DB).ExecContext(ctx, "INSERT INTO "+at.Table+" (id, user_id) VALUES (8000008, 8)")
	}
	return at, err
}

// mustBeRefused checks that the write is refused because the shard has another name.
func (i *idler) mustBeRefused(t *testing.T, when string) {
	t.Helper()
	at, err := i.write(context.Background(), i.seen)
	if err == nil {
		t.Errorf("%s: %s took the row of an instance that was idle since the switch", when, at)
	}
}

func TestAnInstanceThatWasIdleSinceTheSwitchReachesNoShardWhileTheSourceServes(t *testing.T) {
	t.Parallel()
	s := newShop(t, 200)
	j := s.job(t, "id")
	mustRun(t, j)
	mustCutover(t, j)
	idle := s.newIdler(t)
	if _, err := j.Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	idle.mustBeRefused(t, "after the rollback")
	if err := j.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	idle.mustBeRefused(t, "after the end of the job")
	for _, shard := range orders(t, "id").Map.Targets() { // as somebody may do who tidies up
		exec(t, s.shards[shard.DB], "DROP TABLE "+shard.Table+"_sealed")
	}
	again := s.job(t, "id", func(c *migrate.Config) {
		c.Name = "again"
		c.Observe = func(step migrate.Step) {
			if step.Name != migrate.StepFlipped { // it serves
				idle.mustBeRefused(t, step.Name)
			}
		}
	})
	mustRun(t, again)
	s.compareSealed(t, orders(t, "id"), "orders", "_sealed")
	mustCutover(t, again)
	s.compare(t, orders(t, "id"), "orders_old")
}

func TestAnInstanceThatWasIdleSinceTheSwitchFindsTheSourceAfterTheJobHasEnded(t *testing.T) {
	s := newShop(t, 50)
	j := s.job(t, "id")
	mustRun(t, j)
	mustCutover(t, j)
	idle := s.newIdler(t)
	if _, err := j.Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := j.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := idle.write(t.Context(), idle.seen)
	now, err := idle.router.Moved(t.Context(), idle.seen, err)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := idle.write(t.Context(), now); err != nil || at.DB != "source" {
		t.Errorf("the row went to %s: %v", at, err)
	}
}

func TestAShardThatSomebodyMadeBesideTheClosedOneKeepsTheCutoverFromHappening(t *testing.T) {
	s := newShop(t, 50)
	j := s.job(t, "id")
	mustRun(t, j)
	mustCutover(t, j)
	if _, err := j.Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	exec(t, s.shards["a"], "CREATE TABLE orders_00 (id INTEGER PRIMARY KEY)")
	if _, err := j.Cutover(t.Context(), time.Minute); !errors.Is(err, migrate.ErrNotReady) {
		t.Fatalf("the cutover ended with %v", err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM orders"); n != 50 {
		t.Errorf("the source has %d rows under its own name", n)
	}
	exec(t, s.shards["a"], "DROP TABLE orders_00")
	mustCutover(t, j)
	s.compare(t, orders(t, "id"), "orders_old")
}
