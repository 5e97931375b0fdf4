// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/slotstore"
)

// A program has rights on its own tables, and those on the map that the page on rebalancing names.
func TestTheFencesOfSlotsNeedNoRightsOfTheirWriters(t *testing.T) {
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.RunMariaDB(t), "MySQL": server.RunMySQL(t), "PostgreSQL": server.RunPostgres(t)} {
		t.Run(name, func(t *testing.T) {
			db := s.Open(t, "fenced")
			store := fencedStore(t, db, db)
			app := fencedClerk(t, s)
			follower, err := fencedStore(t, db, app).Follow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = follower.Close(context.Background()) })
			write := func(id, user int) error {
				_, err := app.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders_0 (id, user_id) VALUES (%d, %d)", id, user))
				return err
			}
			if err := store.Copy(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			if err := write(1, 1); err != nil {
				t.Errorf("while the slot is copied: %v", err)
			}
			if err := errors.Join(store.Settle(t.Context()), store.Fence(t.Context(), 1)); err != nil {
				t.Fatal(err)
			}
			if err := sharding.SlotMoving(write(2, 1)); !errors.Is(err, sharding.ErrSlotMoving) {
				t.Errorf("while the slot is fenced: %v", err)
			}
			if err := write(3, 2); err != nil {
				t.Errorf("of another slot: %v", err)
			}
			if name == "PostgreSQL" {
				pretendsOpenSlot(t, app)
			}
		})
	}
}

// pretendsOpenSlot writes to the fenced slot with a temporary table in the place of shard_fence.
func pretendsOpenSlot(t *testing.T, app *sql.DB) {
	t.Helper()
	c, err := app.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ExecContext(t.Context(), "CREATE TEMPORARY TABLE shard_fence AS SELECT 'fenced'::text AS name, 0 AS shard, 1 AS slot, 0 AS fenced"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(t.Context(), "INSERT INTO orders_0 (id, user_id) VALUES (4, 1)"); !errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving) {
		t.Errorf("beside a temporary table shard_fence: %v", err)
	}
}

// fencedStore creates the map and its tables, and returns the store as a user has it.
func fencedStore(t *testing.T, admin, db *sql.DB) *slotstore.Store {
	t.Helper()
	for _, table := range []string{"orders_0", "orders_1"} {
		database.Exec(t, admin, "CREATE TABLE IF NOT EXISTS "+table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	shards := []sharding.Target{{DB: "a", Table: "orders_0"}, {DB: "a", Table: "orders_1"}}
	m, err := sharding.MapOf(shards[0], shards[0])
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	store, err := slotstore.New(t.Context(), slotstore.Config{Name: "fenced", DB: db, Router: router, Term: time.Second, Shards: map[string][]sharding.Target{"orders": shards}})
	if err != nil {
		t.Fatal(err)
	}
	if admin == db {
		if err := store.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// fencedClerk opens the database as a user who may insert rows.
func fencedClerk(t *testing.T, s database.DSNOpener) *sql.DB {
	t.Helper()
	if p, is := s.(*server.Postgres); is {
		return database.PostgresAs(t, p, "fenced", "clerk", "GRANT SELECT, INSERT ON orders_0 TO clerk", "GRANT SELECT, UPDATE ON shard_map TO clerk", "GRANT SELECT ON shard_slot TO clerk", "GRANT SELECT, INSERT, UPDATE, DELETE ON shard_lease TO clerk")
	}
	admin := s.Open(t, "fenced")
	database.Exec(t, admin, "CREATE USER clerk")
	for table, rights := range map[string]string{"orders_0": "SELECT, INSERT", "shard_map": "SELECT, UPDATE", "shard_slot": "SELECT", "shard_lease": "SELECT, INSERT, UPDATE, DELETE"} {
		database.Exec(t, admin, "GRANT "+rights+" ON fenced."+table+" TO clerk")
	}
	return database.OpenAs(t, s, "clerk", "fenced")
}

// A user without TRIGGER does not see the fences of a table on MySQL and MariaDB, but may read which tables have them.
func TestAProgramThatDoesNotFollowTheMapOfItsTableIsRefusedOnEachServer(t *testing.T) {
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.RunMariaDB(t), "MySQL": server.RunMySQL(t), "PostgreSQL": server.RunPostgres(t)} {
		t.Run(name, func(t *testing.T) {
			db := s.Open(t, "fenced")
			store := fencedStore(t, db, db)
			clerk := fencedClerk(t, s)
			if err := store.Copy(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "orders_0"})
			if err != nil {
				t.Fatal(err)
			}
			read := func(by *sql.DB) (n int, err error) {
				router, err := sharding.New(sharding.DBs{"a": by}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(1), Map: m})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: by})
				defer func() { _ = routed.Close() }()
				return n, routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE user_id = 1").Scan(&n)
			}
			if n, err := read(db); !errors.Is(err, sharding.ErrStaleMap) {
				t.Errorf("%d rows, %v", n, err)
			}
			if n, err := read(clerk); n != 0 || err != nil {
				t.Errorf("as a user who may not read which tables have fences: %d rows, %v", n, err)
			}
			database.Exec(t, db, "GRANT SELECT ON shard_fence_table TO clerk")
			if n, err := read(clerk); !errors.Is(err, sharding.ErrStaleMap) {
				t.Errorf("as a user who may: %d rows, %v", n, err)
			}
		})
	}
}
