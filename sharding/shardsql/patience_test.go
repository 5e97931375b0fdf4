// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// patientItems are the items of two users, each with a slot, that of user 0 on a and that of user 1 on b. The statements of
// routed wait while a slot is held.
type patientItems struct {
	router *sharding.Router
	routed *sql.DB
	dbs    sharding.DBs
	asked  atomic.Int64 // how often the map was used
}

func newPatientItems(t *testing.T, patience time.Duration, held ...sharding.Slot) *patientItems {
	t.Helper()
	open := files(t)
	p := &patientItems{dbs: sharding.DBs{"a": open("a.db"), "b": open("b.db")}}
	for _, db := range p.dbs {
		exec(t, db, "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	var err error
	p.router, err = sharding.New(p.dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: p.at(t, "a", 0, patience).Holding(held...)})
	if err != nil {
		t.Fatal(err)
	}
	p.routed = shardsql.OpenDB(shardsql.Config{Router: p.router, Home: p.dbs["b"]})
	t.Cleanup(func() { _ = p.routed.Close() })
	return p
}

// at is the map with the slot of user 0 on a database.
func (p *patientItems) at(t *testing.T, db string, version int64, patience time.Duration) sharding.Map {
	t.Helper()
	m, err := sharding.MapOf(sharding.Target{DB: db, Table: "items"}, sharding.Target{DB: "b", Table: "items"})
	if err != nil {
		t.Fatal(err)
	}
	return m.Patient(patience).At(version).While(func() bool { p.asked.Add(1); return true })
}

// move has the slot of user 0 on b as soon as a statement has been refused its shard.
func (p *patientItems) move(t *testing.T) (done <-chan error) {
	t.Helper()
	moved := make(chan error, 1)
	to, before := p.at(t, "b", 2, time.Minute), p.asked.Load()
	go func() {
		testwait.Until(t, "a statement asks for its shard", func() bool { return p.asked.Load() > before })
		moved <- p.router.Swap(map[string]sharding.Map{"items": to})
	}()
	return moved
}

func TestAStatementWaitsUntilItsSlotHasMoved(t *testing.T) {
	for name, send := range map[string]func(ctx context.Context, p *patientItems) error{
		"an INSERT": func(ctx context.Context, p *patientItems) error {
			_, err := p.routed.ExecContext(ctx, "INSERT INTO items (id, user_id) VALUES (?, ?)", 8, 0)
			return err
		},
		"an INSERT into several shards": func(ctx context.Context, p *patientItems) error {
			_, err := p.routed.ExecContext(ctx, "INSERT INTO items (id, user_id) VALUES (8, 0), (9, 1)")
			return err
		},
		"an INSERT that returns rows": func(ctx context.Context, p *patientItems) error {
			return p.routed.QueryRowContext(ctx, "INSERT INTO items (id, user_id) VALUES (8, 0) RETURNING id").Scan(new(int))
		},
		"a query of all shards": func(ctx context.Context, p *patientItems) error {
			_, err := p.dbs["b"].ExecContext(ctx, "INSERT INTO items (id, user_id) VALUES (8, 0)")
			return errors.Join(err, p.routed.QueryRowContext(ctx, "SELECT id FROM items WHERE id = 8").Scan(new(int)))
		},
		"the first statement of a transaction": func(ctx context.Context, p *patientItems) error {
			tx, err := p.routed.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "INSERT INTO items (id, user_id) VALUES (8, 0)")
			return errors.Join(err, tx.Commit())
		},
		"a prepared statement": func(ctx context.Context, p *patientItems) error {
			st, err := p.routed.PrepareContext(ctx, "INSERT INTO items (id, user_id) VALUES (?, ?)")
			if err != nil {
				return err
			}
			defer func() { _ = st.Close() }()
			_, err = st.ExecContext(ctx, 8, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatientItems(t, time.Minute, 0)
			moved := p.move(t)
			if err := errors.Join(send(within(t), p), <-moved); err != nil {
				t.Fatal(err)
			}
			if id := one[int](t, p.dbs["b"], "SELECT id FROM items WHERE user_id = 0"); id != 8 {
				t.Errorf("the id is %d", id)
			}
		})
	}
}

// A process learns some time after the shards that a slot moves.
func TestAStatementThatAShardRefusesIsSentToTheNewOne(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO items (id, user_id) VALUES (8, 0)", "INSERT INTO items (id, user_id) VALUES (8, 0), (9, 1)", "INSERT INTO items (id, user_id) VALUES (8, 0) RETURNING id",
		"INSERT INTO items (id, user_id) VALUES (9, 1), (8, 0) RETURNING id",
	} {
		for _, first := range []func(p *patientItems) (execer, func() error){
			func(p *patientItems) (execer, func() error) { return p.routed, func() error { return nil } },
			func(p *patientItems) (execer, func() error) {
				tx, err := p.routed.BeginTx(sharding.AllShards(within(t)), nil)
				if err != nil {
					t.Fatal(err)
				}
				return tx, tx.Commit
			},
		} {
			p := newPatientItems(t, time.Minute)
			exec(t, p.dbs["a"], "CREATE TRIGGER fence BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, '"+sharding.FenceMessage+"'); END")
			on, end := first(p)
			moved := p.move(t)
			_, err := on.ExecContext(within(t), text)
			if err = errors.Join(err, end(), <-moved); err != nil {
				t.Errorf("%s: %v", text, err)
			} else if one[int](t, p.dbs["b"], "SELECT id FROM items WHERE user_id = 0") != 8 {
				t.Errorf("%s: the row is not there", text)
			}
		}
	}
}

func TestAWaitForASlotEndsWithThePatienceAndWithTheContext(t *testing.T) {
	const text = "SELECT id FROM items WHERE user_id = 0"
	p := newPatientItems(t, 30*time.Millisecond, 0)
	err := p.routed.QueryRowContext(t.Context(), text).Scan(new(int))
	if !errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("patience: %v", err)
	}
	_, told, _ := strings.Cut(fmt.Sprint(err), "; waited ")
	if waited, unknown := time.ParseDuration(told); unknown != nil || waited < 30*time.Millisecond || waited > time.Minute/2 {
		t.Errorf("patience: %v", err)
	}
	err = p.routed.QueryRowContext(t.Context(), "SELECT id FROM items WHERE user_id = 0 AND id > (SELECT MIN(id) FROM items WHERE user_id = 1)").Scan(new(int))
	if !errors.Is(err, sharding.ErrSlotMoving) || strings.Count(err.Error(), "waited") != 1 {
		t.Errorf("a query with a subquery: %v", err)
	}
	p = newPatientItems(t, time.Hour, 0)
	ended, cancel := context.WithCancel(t.Context())
	go func() {
		testwait.Until(t, "the statement asks for its shard", func() bool { return p.asked.Load() > 0 })
		cancel()
	}()
	_, err = p.routed.ExecContext(ended, "DELETE FROM items WHERE user_id = 0")
	if !errors.Is(err, sharding.ErrSlotMoving) || !errors.Is(err, context.Canceled) {
		t.Errorf("context: %v", err)
	}
}

func TestAWaitForASlotEndsWithItsTransaction(t *testing.T) {
	p := newPatientItems(t, time.Hour, 0)
	ended, cancel := context.WithCancel(t.Context())
	tx, err := p.routed.BeginTx(ended, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		testwait.Until(t, "the statement asks for its shard", func() bool { return p.asked.Load() > 0 })
		cancel()
	}()
	_, err = tx.ExecContext(within(t), "DELETE FROM items WHERE user_id = 0")
	if !errors.Is(err, sharding.ErrSlotMoving) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = tx.Rollback() // database/sql has done it
}

// Others would wait in vain, or for the locks that they hold themselves.
func TestOnlyAStatementWhoseSlotIsHeldWaits(t *testing.T) {
	p := newPatientItems(t, time.Hour)
	if err := p.router.Swap(map[string]sharding.Map{"items": p.at(t, "a", 1, time.Hour).Sharing(0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.routed.ExecContext(sharding.AllShards(within(t)), "DELETE FROM items"); !errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write of shards with copied rows: %v", err)
	}
	tx, err := p.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO items (id, user_id) VALUES (1, 0)")
	if err := p.router.Swap(map[string]sharding.Map{"items": p.at(t, "a", 2, time.Hour).Sharing(0).Holding(0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(within(t), "INSERT INTO items (id, user_id) VALUES (2, 0)"); !errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second statement: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	exec(t, p.routed, "INSERT INTO items (id, user_id) VALUES (3, 1)")
}

// The entry of a lookup table is written after the row, in the same transaction.
func TestAStatementWhoseEntryIsRefusedIsExecutedAgainAsAWhole(t *testing.T) {
	for name, do := range map[string]func(ctx context.Context, db *sql.DB, text string) error{
		"alone": func(ctx context.Context, db *sql.DB, text string) error {
			_, err := db.ExecContext(ctx, text)
			return err
		},
		"first in a transaction": func(ctx context.Context, db *sql.DB, text string) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, text)
			return errors.Join(err, tx.Commit())
		},
	} {
		for _, place := range []string{"a", "b"} { // the row is in a
			t.Run(name+", entries in "+place, func(t *testing.T) {
				open := files(t)
				dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
				exec(t, dbs["a"], "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, kind BIGINT, code BIGINT)")
				exec(t, dbs["a"], "CREATE INDEX items_kind ON items (kind)")
				exec(t, dbs["a"], "CREATE INDEX items_code ON items (code)")
				var asked atomic.Int64
				at := func(db, table string) sharding.Map {
					m, err := sharding.MapOf(sharding.Target{DB: db, Table: table})
					if err != nil {
						t.Fatal(err)
					}
					return m.Patient(time.Minute)
				}
				router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort),
					sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(1), Map: at("a", "items"), Lookups: []sharding.Lookup{{Column: "kind", Table: "kinds"}, {Column: "code", Table: "codes"}}},
					sharding.Table{Name: "codes", Key: "code", Rule: sharding.Mod(1), Map: at(place, "codes").While(func() bool { asked.Add(1); return true })})
				if err != nil {
					t.Fatal(err)
				}
				for _, column := range []string{"kind", "code"} {
					if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: dbs["a"], Table: "items", Column: column}); err != nil {
						t.Fatal(err)
					}
				}
				exec(t, dbs[place], "CREATE TRIGGER fence BEFORE INSERT ON codes BEGIN SELECT RAISE(ABORT, '"+sharding.FenceMessage+"'); END")
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
				t.Cleanup(func() { _ = routed.Close() })
				opened := make(chan error, 1)
				go func() {
					testwait.Until(t, "the statement is sent several times", func() bool { return asked.Load() > 20 })
					_, err := dbs[place].Exec("DROP TRIGGER fence")
					opened <- err
				}()
				if err := errors.Join(do(within(t), routed, "INSERT INTO items (id, user_id, kind, code) VALUES (8, 0, 4, 5)"), <-opened); err != nil {
					t.Fatal(err)
				}
				if rows, entries := one[int](t, dbs["a"], "SELECT COUNT(*) FROM items"), one[int](t, dbs[place], "SELECT COUNT(*) FROM codes"); rows != 1 || entries != 1 {
					t.Errorf("%d rows, %d entries", rows, entries)
				}
			})
		}
	}
}

// The program's store of the map may need the only connection of the pool.
func TestAStatementThatWaitsHoldsNoConnectionAtHome(t *testing.T) {
	p := newPatientItems(t, time.Minute)
	home := p.dbs["a"]
	home.SetMaxOpenConns(1)
	exec(t, home, "CREATE TRIGGER fence BEFORE INSERT ON items BEGIN SELECT RAISE(ABORT, '"+sharding.FenceMessage+"'); END")
	routed := shardsql.OpenDB(shardsql.Config{Router: p.router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	done := make(chan error, 1)
	go func() {
		_, err := routed.ExecContext(within(t), "INSERT INTO items (id, user_id) VALUES (8, 0)")
		done <- err
	}()
	testwait.Until(t, "the statement is sent several times", func() bool { return p.asked.Load() > 10 })
	exec(t, home, "DROP TRIGGER fence")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStatementAfterABeginOfItsSessionDoesNotWait(t *testing.T) {
	p := newPatientItems(t, time.Hour, 1)
	conn, err := p.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exec(t, conn, "PRAGMA foreign_keys = ON") // a session remembers the first of the two
	exec(t, conn, "BEGIN")
	if _, err := conn.ExecContext(within(t), "INSERT INTO items (id, user_id) VALUES (1, 1)"); !errors.Is(err, sharding.ErrSlotMoving) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	exec(t, conn, "ROLLBACK")
}

// Another error would say that the key is missing, and no program would send the statement again.
func TestAWriteByAValueWaitsForTheLookupTable(t *testing.T) {
	open := files(t)
	dbs := sharding.DBs{"a": open("a.db")}
	exec(t, dbs["a"], "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, code BIGINT)")
	exec(t, dbs["a"], "CREATE INDEX items_code ON items (code)")
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "items"})
	if err != nil {
		t.Fatal(err)
	}
	codes, err := sharding.MapOf(sharding.Target{DB: "a", Table: "codes"})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	router, err := sharding.New(dbs, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(1), Map: m, Lookups: []sharding.Lookup{{Column: "code", Table: "codes"}}},
		sharding.Table{Name: "codes", Key: "code", Rule: sharding.Mod(1), Map: codes})
	if err != nil {
		t.Fatal(err)
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: dbs["a"], Table: "items", Column: "code"}); err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	exec(t, routed, "INSERT INTO items (id, user_id, code) VALUES (8, 0, 5)")
	codes = codes.Patient(time.Minute).While(func() bool { asked.Add(1); return true })
	if err := router.Swap(map[string]sharding.Map{"codes": codes.At(1).Holding(0)}); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		testwait.Until(t, "the statement asks for its entry", func() bool { return asked.Load() > 0 })
		moved <- router.Swap(map[string]sharding.Map{"codes": codes.At(2)})
	}()
	r, err := routed.ExecContext(within(t), "UPDATE items SET code = 6 WHERE code = 5")
	if err := errors.Join(err, <-moved); err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); n != 1 || err != nil {
		t.Errorf("%d rows, %v", n, err)
	}
}
