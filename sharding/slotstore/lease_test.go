// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// vanish leaves a lease on the present version that is never renewed.
func vanish(t *testing.T, w *world, s *Store) {
	t.Helper()
	f, err := s.Follow(t.Context())
	must(t, err)
	run(t, w.home, "UPDATE shard_lease SET holder = 'vanished' WHERE holder = ?", f.Holder())
	must(t, f.Close(t.Context()))
}

func TestAVersionWaitsUntilTheLeasesOfOlderOnesHaveRunOut(t *testing.T) {
	w := newWorld(t)
	w.term = 500 * time.Millisecond
	_, s := w.created(t)
	begin := time.Now()
	vanish(t, w, s)
	must(t, s.Copy(t.Context(), 1, 1)) // the lease is on the version before, which is allowed
	err := s.Fence(t.Context(), 1)
	var leased *LeasedError
	if !errors.As(err, &leased) || !errors.Is(err, ErrLeased) || leased.Version != 2 || leased.Holders != 1 || leased.Wait <= 0 || leased.Wait > w.term+clockTick {
		if time.Since(begin) < w.term { // else the lease has run out meanwhile
			t.Fatalf("%v", err)
		}
	}
	must(t, s.Settle(t.Context()))
	if waited := time.Since(begin); waited < w.term {
		t.Errorf("settled after %v, and the lease lasted %v", waited, w.term)
	}
	must(t, s.Fence(t.Context(), 1))
}

func TestSettleEndsWithItsContextAndNamesTheHolders(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	vanish(t, w, s)
	must(t, s.Copy(t.Context(), 1, 1))
	w.home.SetMaxOpenConns(1) // so that who has the connection knows where Settle is
	only, err := w.home.Conn(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- s.Settle(ctx) }()
	eventually(t, "Settle wants to look", func() bool { return w.home.Stats().WaitCount == 1 })
	must(t, only.Close()) // gives it to Settle
	only, err = w.home.Conn(t.Context())
	must(t, err) // Settle has looked
	defer func() { must(t, only.Close()) }()
	cancel()
	if err := <-ended; !errors.Is(err, ErrLeased) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAFollowerTakesEachVersionAndGivesTheOldOneUp(t *testing.T) {
	w := newWorld(t)
	w.term = 2 * time.Second
	_, operator := w.created(t)
	r := w.router(t)
	f := w.follow(t, w.store(t, r))
	must(t, operator.Copy(t.Context(), 1, 1))
	must(t, operator.Settle(t.Context()))
	if _, err := r.Target("orders", 1); err != nil {
		t.Errorf("copying: %v", err)
	}
	if _, err := r.Snapshot().Everywhere("items"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("copying, for all shards: %v", err)
	}
	must(t, operator.Fence(t.Context(), 1))
	must(t, operator.Settle(t.Context()))
	if _, err := r.Target("items", 1); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("fenced: %v", err)
	}
	if items, _ := r.Table("items"); items.Map.Patience() != 2*w.term {
		t.Errorf("statements wait %v for a slot", items.Map.Patience())
	}
	must(t, operator.Switch(t.Context(), 1))
	must(t, operator.Settle(t.Context()))
	if got, err := r.Target("items", 1); err != nil || got.String() != "b/items_1" {
		t.Errorf("moved: %v, %v", got, err)
	}
	must(t, f.Err())
}

func TestAProcessWhoseLeaseRanOutRefusesKeysUntilItFollowsAgain(t *testing.T) {
	w := newWorld(t)
	w.term = 200 * time.Millisecond
	r, s := w.created(t)
	f := w.follow(t, s)
	run(t, w.home, "ALTER TABLE shard_lease RENAME TO gone")
	eventually(t, "the router refuses", func() bool {
		_, err := r.Target("orders", 1)
		return errors.Is(err, sharding.ErrStaleMap)
	})
	eventually(t, "the error shows", func() bool { return f.Err() != nil })
	run(t, w.home, "ALTER TABLE gone RENAME TO shard_lease")
	eventually(t, "the router routes", func() bool {
		_, err := r.Target("orders", 1)
		return err == nil
	})
}

func TestAClosedFollowerHoldsNoLeaseAndMayBeFollowedByAnother(t *testing.T) {
	w := newWorld(t)
	r, s := w.created(t)
	f := w.follow(t, s)
	must(t, f.Close(t.Context()))
	must(t, f.Close(t.Context()))
	var n int
	must(t, w.home.QueryRow("SELECT COUNT(*) FROM shard_lease").Scan(&n))
	if _, err := r.Target("orders", 1); n != 0 || !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("%d leases, %v", n, err)
	}
	w.follow(t, s)
	if _, err := r.Target("orders", 1); err != nil {
		t.Error(err)
	}
}

func TestAProcessWithAShorterListOfShardsDoesNotFollow(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	must(t, s.Copy(t.Context(), 1, 1))
	short := newWorld(t)
	short.home, short.dbs = w.home, w.dbs
	short.shards = map[string][]sharding.Target{"orders": w.shards["orders"][:1], "items": w.shards["items"][:1]}
	_, err := short.store(t, short.router(t)).Follow(t.Context())
	if !errors.Is(err, sharding.ErrStaleMap) || !strings.Contains(err.Error(), "deploy the longer list first") {
		t.Error(err)
	}
}

func TestInvalidConfigurationsAreRefused(t *testing.T) {
	w := newWorld(t)
	r := w.router(t)
	for want, change := range map[string]func(*Config){
		"Config.Name":              func(c *Config) { c.Name = "a'b" },
		"Config.DB is nil":         func(c *Config) { c.DB = nil },
		"Config.Router is nil":     func(c *Config) { c.Router = nil },
		"Config.Term is 1ms":       func(c *Config) { c.Term = time.Millisecond },
		"Config.Shards is empty":   func(c *Config) { c.Shards = nil },
		"\"users\": not a sharded": func(c *Config) { c.Shards = map[string][]sharding.Target{"users": nil} },
		"\"orders\" has 1 targets, and another table 2": func(c *Config) {
			c.Shards = map[string][]sharding.Target{"items": w.shards["items"], "orders": w.shards["orders"][:1]}
		},
		"\"items\" is not among them, but \"orders\" of its group is": func(c *Config) { c.Shards = map[string][]sharding.Target{"orders": w.shards["orders"]} },
		"no database \"c\"": func(c *Config) { c.Shards = map[string][]sharding.Target{"orders": {{DB: "c", Table: "x"}}} },
		"share a database": func(c *Config) {
			c.Shards = map[string][]sharding.Target{"items": w.shards["items"], "orders": {{DB: "b", Table: "x"}, {DB: "a", Table: "y"}}}
		},
		"not a plain SQL name": func(c *Config) { c.Shards = map[string][]sharding.Target{"orders": {{DB: "a", Table: "x y"}}} },
		"a trigger cannot compute its rule": func(c *Config) {
			m, err := sharding.Spread([]string{"a"}, 2, "h_%d")
			must(t, err)
			c.Router, err = sharding.New(w.dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Hash(8), Map: m})
			must(t, err)
		},
	} {
		cfg := Config{Name: "shop", DB: w.home, Router: r, Shards: w.shards}
		change(&cfg)
		if _, err := New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	closed, err := sql.Open("sqlite", ":memory:")
	must(t, err)
	must(t, closed.Close())
	if _, err := New(t.Context(), Config{Name: "shop", DB: closed, Router: r, Shards: w.shards}); err == nil {
		t.Error("a closed database is accepted")
	}
}

func TestCreateStoresWhatTheRouterHasAndOnlyOnce(t *testing.T) {
	w := newWorld(t)
	r, s := w.created(t)
	must(t, s.Create(t.Context()))
	v, err := s.Load(t.Context())
	if err != nil || v.Version != 1 || len(v.Slots) != slots || v.Slots[5] != (Slot{Slot: 5, State: Active, Shard: 0, Other: nowhere, Version: 1}) {
		t.Errorf("%+v, %v", v, err)
	}
	must(t, s.Copy(t.Context(), 1, 5))
	must(t, s.Create(t.Context()))
	if v, err := s.Load(t.Context()); err != nil || v.Slots[5].State != Copying {
		t.Errorf("%+v, %v", v, err)
	}
	other := Config{Name: "other", DB: w.home, Router: r, Shards: map[string][]sharding.Target{"orders": w.shards["orders"][1:], "items": w.shards["items"][1:]}}
	unlisted, err := New(t.Context(), other)
	must(t, err)
	if err := unlisted.Create(t.Context()); err == nil || !strings.Contains(err.Error(), "slot 0 of table \"items\" is on a/items_0") {
		t.Error(err)
	}
	if _, err := unlisted.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "call Create once") {
		t.Error(err)
	}
}

func TestAProgramThatFollowsAMapThatNobodyCreatedIsToldHow(t *testing.T) {
	w := newWorld(t)
	s, err := New(t.Context(), Config{Name: "shop", DB: w.home, Router: w.router(t), Shards: w.shards})
	must(t, err)
	if _, err := s.Follow(t.Context()); err == nil || !strings.Contains(err.Error(), "rebalance create") {
		t.Error(err)
	}
}

// Its map has no lease, and nothing else would tell it that it does not find the rows of slots that have moved.
func TestAStatementOfAProgramThatDoesNotFollowTheMapOfItsTableIsRefused(t *testing.T) {
	w := newWorld(t)
	r, s := w.created(t)
	alone := w.router(t)
	open := func(of *sharding.Router) *sql.DB {
		db := shardsql.OpenDB(shardsql.Config{Router: of, Home: w.home})
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	following := open(r)
	w.follow(t, s)
	run(t, following, "INSERT INTO orders (id, user_id) VALUES (1, 3)")
	count := func(db *sql.DB) (n int, err error) {
		err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE user_id = 3").Scan(&n)
		return n, err
	}
	if n, err := count(open(alone)); n != 1 || err != nil {
		t.Errorf("before a slot moves: %d rows, %v", n, err)
	}
	must(t, s.Copy(t.Context(), 1, 3))
	forgetful := open(alone)
	for _, text := range []string{"SELECT COUNT(*) FROM orders WHERE user_id = 3", "SELECT COUNT(*) FROM orders", "UPDATE orders SET note = 'x' WHERE user_id = 3"} {
		if _, err := forgetful.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrStaleMap) || !strings.Contains(err.Error(), "the stored map shop") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n, err := count(following); n != 1 || err != nil {
		t.Errorf("a program that follows the map: %d rows, %v", n, err)
	}
}

// After a move, a program that does not follow the map would find no rows on the former shard.
func TestAProgramThatDoesNotFollowAStoredMapIsRefused(t *testing.T) {
	w := newWorld(t)
	place := slices.Repeat([]sharding.Target{w.shards["orders"][0]}, slots)
	first, err := sharding.MapOf(place...)
	must(t, err)
	r, err := sharding.New(w.dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: first.Stored()})
	must(t, err)
	s, err := New(t.Context(), Config{Name: "shop", Term: w.term, DB: w.home, Router: r, Shards: map[string][]sharding.Target{"orders": w.shards["orders"]}})
	must(t, err)
	must(t, s.Create(t.Context()))
	if at, err := r.Target("orders", 3); !errors.Is(err, sharding.ErrStaleMap) || !strings.Contains(err.Error(), "slotstore.Store.Follow") {
		t.Errorf("before it follows the map: %v, %v", at, err)
	}
	f, err := s.Follow(t.Context())
	must(t, err)
	if at, err := r.Target("orders", 3); err != nil || at != w.shards["orders"][0] {
		t.Errorf("while it follows the map: %v, %v", at, err)
	}
	must(t, f.Close(t.Context()))
	if at, err := r.Target("orders", 3); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("afterwards: %v, %v", at, err)
	}
}
