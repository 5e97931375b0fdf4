// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// slotShop has orders with items on three shards, two of them in one database,
// and begins with all slots on the first.
type slotShop struct {
	dir    string
	home   *sql.DB
	dbs    sharding.DBs
	shards map[string][]sharding.Target
	term   time.Duration
}

const slotCount = 8

func newSlotShop(tb testing.TB, rows int) *slotShop {
	tb.Helper()
	s := openSlotShop(tb, tb.TempDir())
	exec(tb, s.dbs["a"], `CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT, code TEXT UNIQUE);
		CREATE TABLE items_0 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, what TEXT);
		CREATE TABLE orders_2 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT, code TEXT UNIQUE)`)
	exec(tb, s.dbs["a"], fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO orders_0 SELECT i, 0 + i, 'first', 'c' || i FROM n`, rows))
	exec(tb, s.dbs["a"], "INSERT INTO items_0 SELECT id + 1000000, user_id, 'of ' || id FROM orders_0")
	_, store := s.process(tb)
	if err := store.Create(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

func openSlotShop(tb testing.TB, dir string) *slotShop {
	tb.Helper()
	return &slotShop{
		dir: dir, home: openFile(tb, dir, "home"), term: 300 * time.Millisecond,
		dbs: sharding.DBs{"a": openFile(tb, dir, "a"), "b": openFile(tb, dir, "b")},
		shards: map[string][]sharding.Target{
			"orders": {{DB: "a", Table: "orders_0"}, {DB: "b", Table: "orders_1"}, {DB: "a", Table: "orders_2"}},
			"items":  {{DB: "a", Table: "items_0"}, {DB: "b", Table: "items_1"}, {DB: "a", Table: "items_2"}},
		},
	}
}

// process is what one process of the application has.
func (s *slotShop) process(tb testing.TB) (*sharding.Router, *slotstore.Store) {
	tb.Helper()
	var tables []sharding.Table
	for _, name := range []string{"orders", "items"} {
		place := make([]sharding.Target, slotCount)
		for i := range place {
			place[i] = s.shards[name][0]
		}
		m, err := sharding.MapOf(place...)
		if err != nil {
			tb.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Low(3), Map: m, Group: "shop"})
	}
	r, err := sharding.New(s.dbs, sharding.Tables(tables...))
	if err != nil {
		tb.Fatal(err)
	}
	store, err := slotstore.New(tb.Context(), slotstore.Config{Name: "shop", DB: s.home, Router: r, Shards: s.shards, Term: s.term})
	if err != nil {
		tb.Fatal(err)
	}
	return r, store
}

func (s *slotShop) mover(tb testing.TB, change ...func(*rebalance.MoverConfig)) *rebalance.Mover {
	tb.Helper()
	_, store := s.process(tb)
	cfg := rebalance.MoverConfig{Store: store, ChunkRows: 100}
	for _, c := range change {
		c(&cfg)
	}
	m, err := rebalance.NewMover(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// moves of these slots of orders from one shard to another.
func (s *slotShop) moves(from, to int, slots ...sharding.Slot) []sharding.Move {
	var moves []sharding.Move
	for _, slot := range slots {
		moves = append(moves, sharding.Move{Slot: slot, From: s.shards["orders"][from], To: s.shards["orders"][to]})
	}
	return moves
}

// slotWriter writes rows of its own through its own router, and knows what each
// must hold; "" is a row that was deleted.
type slotWriter struct {
	router *sharding.Router
	random *rand.Rand
	first  int64
	known  map[int64]string
	done   int
}

// retriable reports whether nothing was written and a later try may succeed.
func retriable(err error) bool {
	return errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, sharding.ErrStaleMap) || strings.Contains(err.Error(), "locked") || strings.Contains(err.Error(), "try restarting transaction")
}

// change makes one change of a row, whose user has the same number.
func (w *slotWriter) change(ctx context.Context) error {
	id, value := w.first+w.random.Int64N(60), fmt.Sprint("v", w.done)
	text := "UPDATE %s SET note = '%s' WHERE id = %d"
	switch was, met := w.known[id]; {
	case !met || was == "":
		text = "INSERT INTO %s (note, id, user_id) VALUES ('%s', %d, %[3]d)"
	case w.random.IntN(4) == 0:
		text, value = "DELETE FROM %s WHERE note <> '%s' AND id = %d", ""
	}
	before, _ := w.router.Table("orders")
	at, err := w.router.Target("orders", id)
	if err != nil {
		return err
	}
	result, err := w.router.DB(at.DB).ExecContext(ctx, fmt.Sprintf(text, at.Table, value, id))
	if err != nil {
		return sharding.SlotMoving(err)
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("row %d is not on %v, where the router looks", id, at)
		// A statement that waited for longer than a lease's renewal finds nothing.
		if _, stale := w.router.Target("orders", id); stale != nil {
			err = stale
		}
		if now, _ := w.router.Table("orders"); now.Map.Version() != before.Map.Version() {
			err = fmt.Errorf("%w: %w", sharding.ErrStaleMap, err)
		}
	}
	if err != nil {
		return err
	}
	w.known[id] = value
	w.done++
	return nil
}

// writers change rows until stop is called, which returns them.
func (s *slotShop) writers(t *testing.T, n int) (stop func() []*slotWriter) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var wg sync.WaitGroup
	var all []*slotWriter
	for i := range n {
		r, store := s.process(t)
		f, err := store.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := &slotWriter{router: r, random: rand.New(rand.NewPCG(uint64(i), 11)), first: int64(100_000 * (i + 1)), known: map[int64]string{}}
		all = append(all, w)
		wg.Go(func() {
			defer func() { _ = f.Close(context.Background()) }()
			for ctx.Err() == nil {
				if err := w.change(context.Background()); err != nil && !retriable(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() []*slotWriter {
		cancel()
		wg.Wait()
		return all
	}
}

// check fails unless each row exists once, in the shard that the map gives and with the
// content that the writers wrote last, and nothing of the moves is left.
func (s *slotShop) check(t *testing.T, rows int64, writers []*slotWriter) {
	t.Helper()
	_, store := s.process(t)
	v, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[int64]string{}
	for shard, at := range s.shards["orders"] {
		for id, note := range s.read(t, at, "note") {
			if _, twice := found[id]; twice {
				t.Errorf("row %d is on two shards", id)
			}
			if is := v.Slots[id&(slotCount-1)]; is.Shard != shard || is.State != slotstore.Active {
				t.Errorf("row %d is on shard %d, its slot is %s on %d", id, shard, is.State, is.Shard)
			}
			found[id] = note
		}
	}
	for _, w := range writers {
		for id, want := range w.known {
			if got := found[id]; got != want {
				t.Errorf("row %d holds %q, and %q was acknowledged", id, got, want)
			}
			delete(found, id)
		}
	}
	if int64(len(found)) != rows {
		t.Errorf("%d rows that nobody changed, not %d", len(found), rows)
	}
	s.checkItems(t, rows, v)
}

func (s *slotShop) checkItems(t *testing.T, rows int64, v slotstore.View) {
	t.Helper()
	all := int64(0)
	for shard, at := range s.shards["items"] {
		for id, what := range s.read(t, at, "what") {
			user := id - 1_000_000
			if what != fmt.Sprint("of ", user) || v.Slots[user&(slotCount-1)].Shard != shard {
				t.Errorf("item %d (%s) is on shard %d", id, what, shard)
			}
			all++
		}
	}
	if all != rows {
		t.Errorf("%d items, not %d", all, rows)
	}
}

// read returns a column of a table by id; a table that is not there has no rows.
func (s *slotShop) read(t *testing.T, at sharding.Target, column string) map[int64]string {
	t.Helper()
	db := s.dbs[at.DB]
	if count(t, db, "SELECT COUNT(*) FROM sqlite_schema WHERE name = ?", at.Table) == 0 {
		return nil
	}
	rows, err := db.QueryContext(t.Context(), "SELECT id, "+column+" FROM "+at.Table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[int64]string{}
	for rows.Next() {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			t.Fatal(err)
		}
		all[id] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
