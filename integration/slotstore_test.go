// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/slotstore"
)

// mover is one table on two shards whose slots move.
type mover struct {
	db     *sql.DB
	shards []sharding.Target
	rule   sharding.Rule
}

func newMover(t *testing.T, db *sql.DB, rule sharding.Rule) *mover {
	t.Helper()
	m := &mover{db: db, rule: rule, shards: []sharding.Target{{DB: "main", Table: "orders_0"}, {DB: "main", Table: "orders_1"}}}
	for _, target := range m.shards {
		m.run(t, "CREATE TABLE "+target.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT)")
	}
	return m
}

func (m *mover) run(t *testing.T, query string) {
	t.Helper()
	if _, err := m.db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// store returns a process' router, which has all slots on the first shard, and
// its store.
func (m *mover) store(t *testing.T, term time.Duration) (*sharding.Router, *slotstore.Store) {
	t.Helper()
	place := make([]sharding.Target, m.rule.Slots())
	for i := range place {
		place[i] = m.shards[0]
	}
	first, err := sharding.MapOf(place...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"main": m.db}, sharding.Table{Name: "orders", Key: "user_id", Rule: m.rule, Map: first})
	if err != nil {
		t.Fatal(err)
	}
	s, err := slotstore.New(t.Context(), slotstore.Config{Name: "shop", DB: m.db, Router: r, Term: term, Shards: map[string][]sharding.Target{"orders": m.shards}})
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

func (m *mover) insert(ctx context.Context, r *sharding.Router, id, user int64) error {
	target, err := r.Target("orders", user)
	if err == nil {
		_, err = m.db.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (id, user_id) VALUES (%d, %d)", target.Table, id, user))
	}
	return sharding.SlotMoving(err)
}

// rows returns the rows of a slot on a shard, id to user.
func (m *mover) rows(ctx context.Context, shard int, slot sharding.Slot) (map[int64]int64, error) {
	rows, err := m.db.QueryContext(ctx, "SELECT id, user_id FROM "+m.shards[shard].Table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[int64]int64{}
	for rows.Next() {
		var id, user int64
		if err := rows.Scan(&id, &user); err != nil {
			return nil, err
		}
		if s, err := m.rule.Slot(user); err != nil || slot >= 0 && s != slot {
			continue
		}
		all[id] = user
	}
	return all, rows.Err()
}

// copyRows copies the rows of a slot that shard 1 lacks.
func (m *mover) copyRows(ctx context.Context, s *slotstore.Store, slot sharding.Slot) error {
	from, err := m.rows(ctx, 0, slot)
	if err != nil {
		return err
	}
	to, err := m.rows(ctx, 1, slot)
	if err != nil {
		return err
	}
	return s.Bypass(ctx, slot, func(tx *sql.Tx) error {
		for id, user := range from {
			if _, there := to[id]; there {
				continue
			}
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders_1 (id, user_id) VALUES (%d, %d)", id, user)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *mover) sweep(ctx context.Context, s *slotstore.Store, slot sharding.Slot) error {
	left, err := m.rows(ctx, 0, slot)
	if err != nil || len(left) == 0 {
		return err
	}
	var ids []string
	for id := range left {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	return s.Bypass(ctx, slot, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM orders_0 WHERE id IN ("+strings.Join(ids, ", ")+")")
		return err
	})
}

func (m *mover) move(t *testing.T, s *slotstore.Store, slot sharding.Slot) {
	t.Helper()
	ctx := t.Context()
	for i, step := range []func() error{
		func() error { return s.Settle(ctx) },
		func() error { return s.Copy(ctx, 1, slot) },
		func() error { return s.Settle(ctx) },
		func() error { return m.copyRows(ctx, s, slot) },
		func() error { return s.Fence(ctx, slot) },
		func() error { return s.Settle(ctx) },
		func() error { return m.copyRows(ctx, s, slot) },
		func() error { return s.Switch(ctx, slot) },
		func() error { return s.Settle(ctx) },
		func() error { return m.sweep(ctx, s, slot) },
		func() error { return s.Finish(ctx, slot) },
	} {
		err := step()
		for errors.Is(err, slotstore.ErrLeased) { // who was late with a renewal comes back with the version that it had
			if err = s.Settle(ctx); err == nil {
				err = step()
			}
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// onEachMover runs a test on SQLite, MariaDB, PostgreSQL and MySQL.
func onEachMover(t *testing.T, test func(t *testing.T, open database.Opener)) {
	t.Helper()
	database.OnEach(t, test)
	t.Run("MySQL", func(t *testing.T) { test(t, database.MySQL(server.ShareMySQL(t))) })
}

func TestSlotsMoveUnderLiveWritersOnEveryDatabase(t *testing.T) {
	onEachMover(t, func(t *testing.T, open database.Opener) {
		m := newMover(t, open(t), sharding.OffsetStep(2, 5))
		_, operator := m.store(t, time.Second)
		if err := operator.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var written sync.Map
		var last, total atomic.Int64
		var wg sync.WaitGroup
		for range 2 {
			r, s := m.store(t, time.Second)
			f, err := s.Follow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close(context.Background()) }()
			wg.Go(func() {
				pause := time.NewTicker(2 * time.Millisecond) // SQLite's lock is not fair: see the test of the package
				defer pause.Stop()
				for ctx.Err() == nil {
					<-pause.C
					id, user := last.Add(1), rand.Int64N(1000)-500
					switch err := m.insert(ctx, r, id, user); {
					case err == nil:
						written.Store(id, user)
						total.Add(1)
					case ctx.Err() != nil, errors.Is(err, sharding.ErrSlotMoving), errors.Is(err, sharding.ErrStaleMap), strings.Contains(err.Error(), "locked"):
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		for _, slot := range []sharding.Slot{3, 0} {
			progress := total.Load()
			testwait.Until(t, "the writers go on", func() bool { return total.Load() >= progress+50 || t.Failed() })
			m.move(t, operator, slot)
		}
		if err := operator.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		wg.Wait()
		router, s := m.store(t, time.Minute) // of one who only looks, so that its lease lasts
		f, err := s.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close(context.Background()) }()
		m.compare(t, router, &written)
	})
}

// compare checks that each written row exists once, on the shard of its key.
func (m *mover) compare(t *testing.T, r *sharding.Router, written *sync.Map) {
	t.Helper()
	found := map[string]map[int64]int64{}
	for shard, target := range m.shards {
		rows, err := m.rows(t.Context(), shard, -1)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s has %d rows: %v", target, len(rows), err)
		}
		found[target.Table] = rows
	}
	written.Range(func(id, user any) bool {
		target, err := r.Target("orders", user)
		for table, rows := range found {
			if _, stands := rows[id.(int64)]; err != nil || stands != (table == target.Table) {
				t.Errorf("row %v of user %v on %s: %v, and its key leads to %s (%v)", id, user, table, stands, target, err)
			}
		}
		return true
	})
}

// The trigger of the old shard fires for the write of a process with an old map, and
// waits in its transaction.
func TestTheOldShardRefusesLateWritesOnEveryDatabase(t *testing.T) {
	onEachMover(t, func(t *testing.T, open database.Opener) {
		m := newMover(t, open(t), sharding.Low(3))
		_, s := m.store(t, time.Second)
		m.run(t, "INSERT INTO orders_0 (id, user_id) VALUES (1, 9), (2, 2)")
		ctx := t.Context()
		for _, step := range []func() error{func() error { return s.Create(ctx) }, func() error { return s.Copy(ctx, 1, 1) }} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := m.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders_0 (id, user_id) VALUES (3, -7)"); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		if err := s.Fence(short, 1); err == nil {
			t.Error("the slot was fenced beside an open transaction that wrote to it")
		}
		cancel()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := s.Fence(ctx, 1); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			"INSERT INTO orders_0 (id, user_id) VALUES (4, 1)",
			"INSERT INTO orders_0 (id, user_id) VALUES (4, NULL)",
			"UPDATE orders_0 SET id = 5 WHERE id = 1",
			"UPDATE orders_0 SET user_id = 1 WHERE id = 2",
			"DELETE FROM orders_0 WHERE id = 1",
			"INSERT INTO orders_1 (id, user_id) VALUES (4, 1)",
		} {
			if _, err := m.db.ExecContext(ctx, query); !errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving) {
				t.Errorf("%s: %v", query, err)
			}
		}
		m.run(t, "UPDATE orders_0 SET id = 6 WHERE id = 2")
		rows, err := m.rows(ctx, 0, -1)
		if err != nil || fmt.Sprint(rows) != "map[1:9 3:-7 6:2]" {
			t.Errorf("%v, %v", rows, err)
		}
	})
}

// All statements on a table wait behind a session that waits to create a trigger on it.
func TestATransactionThatIsOpenWhenSlotsBeginToMoveKeepsNoOthersWaiting(t *testing.T) {
	waiters := map[string]string{
		"mysql":    "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock'",
		"postgres": "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
	}
	for name, open := range map[string]database.Opener{
		"mysql": database.MySQL(server.ShareMySQL(t)), "mariadb": database.MariaDB(server.ShareMariaDB(t)), "postgres": database.Postgres(server.SharePostgres(t)),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMover(t, open(t), sharding.Low(3))
			_, s := m.store(t, time.Second)
			if err := s.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			tx, err := m.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders_0 (id, user_id) VALUES (1, 9)"); err != nil {
				t.Fatal(err)
			}
			copied := make(chan error, 1)
			go func() { copied <- s.Copy(t.Context(), 1, 1) }()
			query := waiters[name]
			if query == "" {
				query = waiters["mysql"]
			}
			testwait.Until(t, "the triggers wait for the transaction", func() bool {
				var n int
				return m.db.QueryRowContext(t.Context(), query).Scan(&n) == nil && n > 0
			})
			for id := 2; id < 5; id++ {
				short, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				if _, err := m.db.ExecContext(short, fmt.Sprintf("INSERT INTO orders_0 (id, user_id) VALUES (%d, 8)", id)); err != nil {
					t.Error(err)
				}
				cancel()
			}
			if err := errors.Join(tx.Commit(), <-copied); err != nil {
				t.Error(err)
			}
		})
	}
}

// MariaDB executes a write that returns rows while these are read.
func TestAWriteThatReturnsRowsReportsThatItsSlotMovesOnEveryDatabase(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		m := newMover(t, open(t), sharding.Low(3))
		router, s := m.store(t, time.Second)
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: m.db}) // of a process with the old map, which has read the columns before
		defer func() { _ = routed.Close() }()
		database.Exec(t, routed, "INSERT INTO orders (id, user_id) VALUES (1, 9)")
		ctx := t.Context()
		for _, step := range []func() error{func() error { return s.Create(ctx) }, func() error { return s.Copy(ctx, 1, 1) }, func() error { return s.Fence(ctx, 1) }} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{"INSERT INTO orders (id, user_id) VALUES (2, 9) RETURNING id", "DELETE FROM orders WHERE user_id = 9 RETURNING id"} {
			var id int64
			if err := routed.QueryRowContext(ctx, text).Scan(&id); !errors.Is(err, sharding.ErrSlotMoving) {
				t.Errorf("%s: %d, %v", text, id, err)
			}
		}
	})
}

// Replication and restores write in sessions in which ordinary triggers do not fire. The fence is none of those, but a mover
// that ignores foreign keys by the same setting passes it.
func TestASessionOfPostgresThatFiresNoTriggersIsFencedToo(t *testing.T) {
	m := newMover(t, server.RunPostgres(t).Open(t, "shop"), sharding.Low(1))
	_, s := m.store(t, time.Second)
	m.run(t, "INSERT INTO orders_0 (id, user_id) VALUES (1, 1)")
	ctx := t.Context()
	for _, step := range []func() error{func() error { return s.Create(ctx) }, func() error { return s.Copy(ctx, 1, 1) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	const asReplica, copied = "SET LOCAL session_replication_role = replica", "INSERT INTO orders_1 (id, user_id) VALUES (1, 1)"
	tx, err := m.db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, asReplica); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, copied); !errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving) {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	err = s.Bypass(ctx, 1, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, asReplica)
		if err == nil {
			_, err = tx.ExecContext(ctx, copied)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
