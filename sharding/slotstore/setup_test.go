// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// world is a database for the map and two for shards, each with orders and items.
type world struct {
	home   *sql.DB
	dbs    sharding.DBs
	shards map[string][]sharding.Target
	term   time.Duration
}

const slots = 8

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(2000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	w := &world{
		home: open("home.db"), dbs: sharding.DBs{"a": open("a.db"), "b": open("b.db")}, term: 30 * time.Second,
		shards: map[string][]sharding.Target{
			"orders": {{DB: "a", Table: "orders_0"}, {DB: "b", Table: "orders_1"}},
			"items":  {{DB: "a", Table: "items_0"}, {DB: "b", Table: "items_1"}},
		},
	}
	for _, targets := range w.shards {
		for _, target := range targets {
			run(t, w.dbs[target.DB], "CREATE TABLE "+target.Table+" (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id BIGINT, note TEXT)")
		}
	}
	return w
}

func run(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// router is the router of one process: all slots are on the first shard.
func (w *world) router(t *testing.T) *sharding.Router {
	t.Helper()
	var tables []sharding.Table
	for _, name := range []string{"orders", "items"} {
		place := make([]sharding.Target, slots)
		for i := range place {
			place[i] = w.shards[name][0]
		}
		m, err := sharding.MapOf(place...)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Low(3), Map: m, Group: "shop"})
	}
	r, err := sharding.New(w.dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) store(t *testing.T, r *sharding.Router) *Store {
	t.Helper()
	s, err := New(t.Context(), Config{Name: "shop", DB: w.home, Router: r, Shards: w.shards, Term: w.term})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// created returns the store of an existing map.
func (w *world) created(t *testing.T) (*sharding.Router, *Store) {
	t.Helper()
	r := w.router(t)
	s := w.store(t, r)
	must(t, s.Create(t.Context()))
	return r, s
}

func (w *world) follow(t *testing.T, s *Store) *Follower {
	t.Helper()
	f, err := s.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, f.Close(context.Background())) })
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// insert writes a row as an application does: routed, with the database's refusal converted like
// the router does.
func insert(ctx context.Context, r *sharding.Router, id, user int64) error {
	target, err := r.Target("orders", user)
	if err == nil {
		err = insertOn(ctx, r.DB(target.DB), target.Table, id, user)
	}
	return err
}

func insertOn(ctx context.Context, db *sql.DB, table string, id, user int64) error {
	_, err := db.ExecContext(ctx, "INSERT INTO "+table+" (id, user_id, note) VALUES (?, ?, 'new')", id, user)
	return sharding.SlotMoving(err)
}

// copyRows copies the rows of a slot that the other shard lacks.
func (w *world) copyRows(ctx context.Context, s *Store, slot sharding.Slot) error {
	for _, name := range []string{"orders", "items"} {
		all, err := w.source(ctx, w.shards[name][0].Table, slot)
		if err != nil {
			return err
		}
		err = s.Bypass(ctx, slot, func(tx *sql.Tx) error {
			for _, row := range all {
				if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO "+w.shards[name][1].Table+" (id, user_id, note) VALUES (?, ?, ?)", row[:]...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) source(ctx context.Context, table string, slot sharding.Slot) (all [][3]any, err error) {
	rows, err := w.dbs["a"].QueryContext(ctx, "SELECT id, user_id, note FROM "+table+" WHERE user_id & 7 = ?", slot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row [3]any
		if err := rows.Scan(&row[0], &row[1], &row[2]); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// sweep deletes the rows of a slot from one of the databases.
func (w *world) sweep(ctx context.Context, s *Store, slot sharding.Slot, shard int) error {
	return s.Bypass(ctx, slot, func(tx *sql.Tx) error {
		for _, name := range []string{"orders", "items"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+w.shards[name][shard].Table+" WHERE user_id & 7 = ?", slot); err != nil {
				return err
			}
		}
		return nil
	})
}

// rows returns the ids in a table of orders.
func (w *world) rows(t *testing.T, shard int) map[int64]int64 {
	t.Helper()
	target := w.shards["orders"][shard]
	rows, err := w.dbs[target.DB].Query("SELECT id, user_id FROM " + target.Table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[int64]int64{}
	for rows.Next() {
		var id, user int64
		must(t, rows.Scan(&id, &user))
		all[id] = user
	}
	must(t, rows.Err())
	return all
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	testwait.Until(t, what, condition)
}
