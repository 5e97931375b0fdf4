// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// household has orders of users and their items on two servers. Their ids lead to no shard. whole has the same rows in one database.
type household struct {
	home, whole *sql.DB
	dbs         sharding.DBs
	shards      map[string][]sharding.Target
}

var householdTables = map[string]string{
	"orders": "(id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL)",
	"items":  "(id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, amount BIGINT NOT NULL)",
}

func newHousehold(t *testing.T, first, second database.Server) *household {
	t.Helper()
	f := &household{home: first.Open(t, "home"), whole: first.Open(t, "whole"), dbs: sharding.DBs{"a": first.Open(t, "family_a"), "b": second.Open(t, "family_b")}, shards: map[string][]sharding.Target{}}
	for name, columns := range householdTables {
		f.shards[name] = []sharding.Target{{DB: "a", Table: name + "_0"}, {DB: "b", Table: name + "_1"}}
		for table, db := range map[string]*sql.DB{name: f.whole, name + "_0": f.dbs["a"]} {
			database.Exec(t, db, "CREATE TABLE "+table+" "+columns)
			if name == "items" {
				database.Exec(t, db, "CREATE INDEX by_order ON "+table+" (order_id)")
			}
		}
	}
	_, store := f.process(t)
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *household) process(t *testing.T) (*sharding.Router, *slotstore.Store) {
	t.Helper()
	var tables []sharding.Table
	for name := range householdTables {
		m, err := sharding.MapOf(slices.Repeat(f.shards[name][:1], slotCount)...)
		if err != nil {
			t.Fatal(err)
		}
		table := sharding.Table{Name: name, Key: "user_id", Rule: sharding.Low(3), Map: m, Group: "family"}
		if name == "items" {
			table.Parents = []sharding.Parent{{Column: "order_id", Table: "orders"}}
		}
		tables = append(tables, table)
	}
	r, err := sharding.New(f.dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	store, err := slotstore.New(t.Context(), slotstore.Config{Name: "family", DB: f.home, Router: r, Term: time.Second, Shards: f.shards})
	if err != nil {
		t.Fatal(err)
	}
	return r, store
}

// member is a program that writes orders of its own, and does the same to one table each.
type member struct {
	router        *sharding.Router
	routed, whole *sql.DB
	random        *rand.Rand
	first         int64 // of its orders
	items         int64
	done, late    int
}

// texts returns the statements of a transaction, or one without a transaction.
func (m *member) texts() []string {
	order := func() int64 { return m.first + m.random.Int64N(10) }
	id, amount := order(), m.random.Int64N(1000)
	user := id * 13
	item := func() string {
		m.items++
		return fmt.Sprintf("INSERT INTO items (id, user_id, order_id, amount) VALUES (%d, %d, %d, %d)", 1000*m.first+m.items, user, id, amount)
	}
	ofOrder := fmt.Sprintf("SELECT id, order_id, amount FROM items WHERE order_id = %d", id)
	switch m.random.IntN(10) {
	case 0, 1:
		return []string{fmt.Sprintf("DELETE FROM orders WHERE id = %d", id), fmt.Sprintf("INSERT INTO orders (id, user_id, note) VALUES (%d, %d, 'n%d')", id, user, amount), item(), item()}
	case 2:
		return []string{fmt.Sprintf("DELETE FROM items WHERE order_id = %d", id)}
	case 3:
		return []string{ofOrder, fmt.Sprintf("UPDATE items SET amount = amount + 1 WHERE order_id = %d", id), ofOrder}
	case 4:
		return []string{fmt.Sprintf("UPDATE items SET amount = %d WHERE order_id IN (SELECT id FROM orders WHERE user_id = %d)", amount, user)}
	case 5:
		return []string{fmt.Sprintf("SELECT o.id, COUNT(i.id), SUM(i.amount) FROM orders o LEFT JOIN items i ON i.order_id = o.id WHERE o.user_id = %d AND o.id = %d GROUP BY o.id", user, id)}
	case 6:
		return []string{fmt.Sprintf("SELECT o.id, i.id, i.amount FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id BETWEEN %d AND %d", m.first, m.first+9)}
	case 7:
		return []string{fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE user_id = %d", user), ofOrder}
	case 8:
		return []string{ofOrder, fmt.Sprintf("SELECT id, amount FROM items WHERE order_id IN (%d, %d)", id, order())}
	}
	return []string{fmt.Sprintf("UPDATE orders SET note = 'u%d' WHERE id = %d", amount, id)}
}

// speaker executes statements.
type speaker interface {
	database.Queryer
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

// change does one thing to both, and compares what each statement returns.
func (m *member) change(ctx context.Context) error {
	texts := m.texts()
	before, _ := m.router.Table("items")
	one, err := m.whole.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = one.Rollback() }()
	var here speaker = m.routed
	end := one.Commit
	if len(texts) > 1 {
		tx, err := m.routed.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		here, end = tx, func() error {
			if err := tx.Commit(); err != nil {
				return err
			}
			return one.Commit()
		}
	}
	for _, text := range texts {
		got, err := outcome(ctx, here, text)
		if err != nil {
			return err
		}
		want, err := outcome(ctx, one, text)
		if now, _ := m.router.Table("items"); err == nil && got != want {
			err = fmt.Errorf("%s returned %q, and %q from one table", text, got, want)
			if now.Map.Version() != before.Map.Version() { // it waited for longer than a lease's renewal
				err = fmt.Errorf("%w: %w", sharding.ErrStaleMap, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return end()
}

// outcome is what a statement returns.
func outcome(ctx context.Context, on speaker, text string) (string, error) {
	if !strings.HasPrefix(text, "SELECT") {
		result, err := on.ExecContext(ctx, text)
		if err != nil {
			return "", err
		}
		n, err := result.RowsAffected()
		return strconv.FormatInt(n, 10), err
	}
	rows, err := on.QueryContext(ctx, text)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	var all []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprint(values))
	}
	slices.Sort(all)
	return strings.Join(all, ", "), rows.Err()
}

// members write until stop is called, which returns how much they have done.
func (f *household) members(t *testing.T) (stop func() (done, late int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var wg sync.WaitGroup
	var all []*member
	var followers []*slotstore.Follower
	for i := range 4 {
		router, store := f.process(t)
		follower, err := store.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := &member{router: router, routed: database.RoutedSqlx(t, router, f.home).DB, whole: f.whole, random: rand.New(rand.NewPCG(uint64(i), 9)), first: int64(100 * (i + 1))}
		all, followers = append(all, m), append(followers, follower)
		wg.Go(func() {
			for ctx.Err() == nil {
				err := m.change(context.Background())
				switch {
				case err == nil:
					m.done++
				case later(err), errors.Is(err, sharding.ErrCrossDatabase): // after a DELETE of no rows, which have no shard
					m.late++
				default:
					t.Error(err)
					return
				}
				time.Sleep(writersRest())
			}
		})
	}
	return func() (done, late int) {
		cancel()
		wg.Wait()
		for i, m := range all {
			_ = followers[i].Close(context.Background())
			done, late = done+m.done, late+m.late
		}
		return done, late
	}
}

func TestSlotsMoveWhileRowsAreWrittenByTheIDsOfTheirParents(t *testing.T) {
	for name, run := range map[string]func(t *testing.T) database.Server{
		"MariaDB":    func(t *testing.T) database.Server { t.Helper(); return server.RunMariaDB(t) },
		"MySQL":      func(t *testing.T) database.Server { t.Helper(); return server.RunMySQL(t) },
		"PostgreSQL": func(t *testing.T) database.Server { t.Helper(); return server.RunPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newHousehold(t, run(t), run(t))
			stop := f.members(t)
			_, store := f.process(t)
			m, err := rebalance.NewMover(rebalance.MoverConfig{Store: store, ChunkRows: 20})
			if err != nil {
				t.Fatal(err)
			}
			for round := range effort.Cases(4, 100) {
				var moves []sharding.Move
				for _, slot := range []sharding.Slot{1, 2, 4, 5, 7} {
					moves = append(moves, sharding.Move{Slot: slot, From: f.shards["orders"][round%2], To: f.shards["orders"][1-round%2]})
				}
				if _, err := m.Run(t.Context(), moves...); err != nil {
					t.Fatal(err)
				}
			}
			done, late := stop()
			t.Logf("%d changes, and %d to be repeated", done, late)
			for name, columns := range map[string]string{"orders": "id, user_id, note", "items": "id, user_id, order_id, amount"} {
				var got []string
				for _, at := range f.shards[name] {
					got = append(got, database.Texts(t, f.dbs[at.DB], "SELECT CONCAT_WS(' ', "+columns+") FROM "+at.Table)...)
				}
				want := database.Texts(t, f.whole, "SELECT CONCAT_WS(' ', "+columns+") FROM "+name)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s: the shards have %q, one table %q", name, got, want)
				}
			}
		})
	}
}
