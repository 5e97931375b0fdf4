// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testkit/gatesuite"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

type (
	ticket  = gatesuite.Ticket
	harness = gatesuite.Harness
)

const ticketsDDL = "CREATE TABLE tickets (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, note TEXT NOT NULL)"

func newHarness(t *testing.T, key string) *harness {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"source", "a", "b"} {
		dbs[name] = openShared(t, name)
	}
	return gatesuite.New(t, "sqlite", dbs, ticketsDDL, key)
}

// openShared opens a file that many connections write to.
func openShared(t *testing.T, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), name+".db")+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestWritersSeeNoErrorDuringAMigration(t *testing.T) {
	for _, key := range []string{"id", "user_id"} {
		t.Run(key, func(t *testing.T) {
			newHarness(t, key).ThereAndBack(t, 3)
		})
	}
}

// switched is a harness with rows whose table has moved after the router read its route, so that
// every statement must notice it.
func switched(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, "user_id")
	if _, err := h.Insert(t.Context(), h.DB, "tickets", []ticket{{UserID: 1, Note: "a"}, {UserID: 1, Note: "b"}}); err != nil {
		t.Fatal(err)
	}
	h.Cutover(t, h.Job(t))
	return h
}

// made checks the ids of rows that were inserted after the switch.
func made(rows []ticket, err error) error {
	for _, row := range rows {
		if row.ID < 1<<40 {
			return fmt.Errorf("id %d is none of the generator's (%w)", row.ID, err)
		}
	}
	return err
}

func TestEachFormOfStatementSucceedsAfterASwitch(t *testing.T) {
	const insert = "INSERT INTO tickets (id, user_id, note) VALUES (:id, :user_id, :note)"
	ctx := context.Background()
	for name, send := range map[string]func(h *harness) error{
		"ExecContext": func(h *harness) error {
			return second(h.DB.ExecContext(ctx, "UPDATE tickets SET note = 'x' WHERE user_id = ?", 1))
		},
		"QueryxContext": func(h *harness) error {
			rows, err := h.DB.QueryxContext(ctx, "SELECT * FROM tickets")
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"GetContext": func(h *harness) error {
			var n int
			err := h.DB.GetContext(ctx, &n, "SELECT COUNT(*) FROM tickets")
			if n != 2 {
				return fmt.Errorf("%d rows (%w)", n, err)
			}
			return err
		},
		"SelectContext": func(h *harness) error {
			var rows []ticket
			err := h.DB.SelectContext(ctx, &rows, "SELECT * FROM tickets")
			if len(rows) != 2 {
				return fmt.Errorf("%d rows (%w)", len(rows), err)
			}
			return err
		},
		"NamedQuery": func(h *harness) error {
			rows, err := h.NamedQuery(ctx, h.DB, "SELECT * FROM tickets WHERE user_id = :user_id", ticket{UserID: 1})
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"NamedQuery of an insert": func(h *harness) error {
			rows := []ticket{{UserID: 1}}
			found, err := h.NamedQuery(ctx, h.DB, insert+" RETURNING id", rows)
			if err != nil {
				return err
			}
			return made(rows, found.Close())
		},
		"Insert": func(h *harness) error {
			rows := []ticket{{UserID: 1}}
			return made(rows, second(h.Insert(ctx, h.DB, "tickets", rows)))
		},
		"NamedExec": func(h *harness) error {
			rows := []ticket{{UserID: 1}}
			return made(rows, second(h.NamedExec(ctx, h.DB, insert, rows)))
		},
		"Insert of a batch": func(h *harness) error {
			rows := []ticket{{UserID: 1}, {UserID: 5}}
			return made(rows, second(h.Insert(ctx, h.DB, "tickets", rows)))
		},
		"Insert of a batch for two databases": func(h *harness) error {
			rows := []ticket{{UserID: 1}, {UserID: 2}}
			err := second(h.Insert(ctx, h.DB, "tickets", rows))
			if !errors.Is(err, sharding.ErrCrossDatabase) || rows[0].ID != 0 { // on the source they were together
				return fmt.Errorf("%v, %w", rows, err)
			}
			return second(h.DB.ExecContext(ctx, "DELETE FROM tickets WHERE user_id = 2"))
		},
		"a hint": func(h *harness) error {
			return second(h.DB.ExecContext(sharding.OnKey(ctx, "tickets", 1), "UPDATE tickets SET note = 'x'"))
		},
		"a transaction": func(h *harness) error {
			tx, err := h.DB.Beginx()
			if err != nil {
				return err
			}
			rows := []ticket{{UserID: 1}}
			if _, err := h.Insert(ctx, tx, "tickets", rows); err != nil {
				return err
			}
			return made(rows, tx.Commit())
		},
		"a prepared statement": func(h *harness) error {
			s, err := h.DB.PreparexContext(ctx, "SELECT note FROM tickets WHERE user_id = ?")
			if err != nil {
				return err
			}
			var notes []string
			return errors.Join(s.SelectContext(ctx, &notes, 1), s.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := switched(t)
			if err := send(h); err != nil {
				t.Error(err)
			}
			for id, row := range h.All(t) { // that each is where it belongs
				if row.UserID%4 != 1 {
					t.Errorf("row %d is of user %d", id, row.UserID)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A transaction that has executed a statement cannot continue on another database.
func TestATransactionEndsWhenItsTableMoves(t *testing.T) {
	h := switched(t)
	tx := begun(t, h)
	for name, err := range map[string]error{
		"Exec":   second(tx.ExecContext(t.Context(), "UPDATE tickets SET note = 'x'")),
		"Select": tx.SelectContext(t.Context(), &[]ticket{}, "SELECT * FROM tickets"),
		"Insert": second(h.Insert(t.Context(), tx, "tickets", &ticket{UserID: 1})),
		"Batch":  second(h.Insert(t.Context(), tx, "tickets", []ticket{{UserID: 1, Note: "x"}, {UserID: 1}})),
	} {
		var moved *sharding.MovedError
		if !errors.Is(err, sharding.ErrRouteMoved) || !errors.As(err, &moved) || moved.Table != "tickets" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	again, err := h.DB.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	rows := []ticket{{UserID: 1}, {UserID: 5}}
	if err := made(rows, second(h.Insert(t.Context(), again, "tickets", rows))); err != nil {
		t.Error(err)
	}
	if err := again.Commit(); err != nil {
		t.Error(err)
	}
	if n := len(h.All(t)); n != 4 {
		t.Errorf("%d rows", n)
	}
}

// begun is a transaction that has sent a query to the source.
func begun(t *testing.T, h *harness) *sqlx.Tx {
	t.Helper()
	tx, err := h.DB.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Get(new(int), "SELECT COUNT(*) FROM sqlite_master"); err != nil {
		t.Fatal(err)
	}
	return tx
}

func TestARefusedRowOfATransactionLosesItsID(t *testing.T) {
	h := switched(t)
	tx := begun(t, h)
	defer func() { _ = tx.Rollback() }()
	if _, err := h.Insert(t.Context(), h.DB, "tickets", &ticket{UserID: 1}); err != nil { // finds the shards
		t.Fatal(err)
	}
	row := ticket{UserID: 1}
	if _, err := h.Insert(t.Context(), tx, "tickets", &row); !errors.Is(err, sharding.ErrCrossDatabase) || row.ID != 0 {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestPhysicalNamesAreNotFollowed(t *testing.T) {
	h := switched(t)
	ctx := sharding.Unsharded(t.Context())
	_, err := h.DB.ExecContext(ctx, "DELETE FROM tickets")
	if err == nil || !strings.Contains(err.Error(), "no such table") || errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("got %v", err)
	}
	row := ticket{UserID: 1}
	if _, err := h.Insert(ctx, h.DB, "tickets", &row); err == nil || row.ID != 0 {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestTheSourceNumbersTheRows(t *testing.T) {
	h := newHarness(t, "id")
	rows := []ticket{{UserID: 1}, {ID: 100, UserID: 2}, {UserID: 3}}
	res, err := h.Insert(t.Context(), h.DB, "tickets", rows)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].ID != 1 || rows[1].ID != 100 || rows[2].ID != 101 || fmt.Sprint(res.IDs) != "[1 100 101]" || res.RowsAffected != 3 {
		t.Errorf("%+v, %+v", rows, res)
	}
	tx, err := h.DB.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	two := []ticket{{UserID: 1}, {UserID: 2}}
	if _, err := h.Insert(t.Context(), tx, "tickets", two); err != nil || two[1].ID != 103 {
		t.Errorf("%+v, %v", two, err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	one := ticket{UserID: 9}
	upsert := "INSERT INTO tickets (id, user_id, note) VALUES (:id, :user_id, :note) ON CONFLICT DO NOTHING"
	if res, err := h.NamedExec(t.Context(), h.DB, upsert, &one); err != nil || one.ID != 0 || res.IDs != nil {
		t.Errorf("an upsert says which row it wrote: %+v, %+v, %v", one, res, err)
	}
	if _, err := h.Insert(t.Context(), h.DB, "tickets", ticket{UserID: 1}); !errors.Is(err, sqlxhook.ErrNotAddressable) {
		t.Errorf("a row that cannot bear its id: %v", err)
	}
	if got := h.All(t); len(got) != 6 {
		t.Errorf("%d rows", len(got))
	}
	for _, s := range h.Preview.Statements() { // the hook will fill the ids
		if errors.Is(s.Err, sharding.ErrNotNumbered) {
			t.Errorf("%+v", s)
		}
	}
	if _, err := h.DB.Exec("INSERT INTO tickets (user_id, note) VALUES (1, 'x')"); err != nil {
		t.Fatal(err)
	}
	if raw := previewed(&h.Preview, "INSERT INTO tickets (user_id, note) VALUES (?, …)"); !errors.Is(raw, sharding.ErrNotNumbered) {
		t.Errorf("raw SQL: %v", raw)
	}
}

func TestABatchThatFailsOnTheSourceRemovesItsIDs(t *testing.T) {
	h := newHarness(t, "id")
	rows := []ticket{{UserID: 1}, {ID: 7, UserID: 2}, {ID: 7, UserID: 3}}
	if _, err := h.Insert(t.Context(), h.DB, "tickets", rows); err == nil {
		t.Fatal("two rows have one id")
	}
	if got := h.All(t); len(got) != 0 {
		t.Errorf("%d rows", len(got))
	}
}

func TestAnInsertReadsAnUnreadRoute(t *testing.T) {
	h := newHarness(t, "id")
	router, err := sharding.New(h.DBs, h.Table, sharding.Migration{Source: "source", Tables: map[string]string{"tickets": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: keygen.Counting(50, 1)}, Router: router})
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: h.DBs["source"]}), "sqlite")
	defer func() { _ = db.Close() }()
	ended, end := context.WithCancel(t.Context())
	end()
	row := ticket{UserID: 1}
	if _, err := fresh.Insert(ended, db, "tickets", &row); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := fresh.Insert(t.Context(), db, "tickets", &row); err != nil || row.ID != 1 {
		t.Errorf("%+v, %v", row, err)
	}
}

// autumn is a migration of lines that has switched to its shards; back restores the source's table
// and route.
type autumn struct {
	h            *sqlxhook.Hook
	db           *sqlx.DB // routed
	source, a, b *sqlx.DB
	near         *faulty // of a
}

func newAutumn(t *testing.T) *autumn {
	t.Helper()
	m := &autumn{source: open(t), b: open(t)}
	m.near = &faulty{file: filepath.Join(t.TempDir(), "a"), driver: m.source.Driver()}
	m.a = sqlx.NewDb(sql.OpenDB(m.near), "sqlite")
	t.Cleanup(func() { _ = m.a.Close() })
	for name, db := range map[string]*sqlx.DB{"lines_closed": m.source, "lines_0": m.a, "lines_1": m.b, "lines_2": m.a, "lines_3": m.b} {
		db.MustExec("CREATE TABLE " + name + " (id INTEGER PRIMARY KEY, user_id INTEGER)")
	}
	m.source.MustExec("CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	m.source.MustExec("INSERT INTO shardid_route VALUES ('lines', 'autumn', 1, 'shards')")
	router, err := sharding.New(sharding.DBs{"source": m.source.DB, "a": m.a.DB, "b": m.b.DB},
		sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Low(2), Map: spread(t, []string{"a", "b"}, "lines_%d")},
		sharding.Migration{Source: "source", Tables: map[string]string{"lines": "id"}}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	m.h, err = sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1000, 1)}}, Router: router, MaxParams: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.db = sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: m.source.DB}), "sqlite")
	t.Cleanup(func() { _ = m.db.Close() })
	return m
}

func (m *autumn) back(route sharding.Route) {
	m.b.MustExec("ALTER TABLE lines_1 RENAME TO lines_1_closed")
	m.source.MustExec("ALTER TABLE lines_closed RENAME TO lines")
	m.source.MustExec("UPDATE shardid_route SET epoch = 2, route = ?", route)
}

// A rollback closes one shard after another, so it can come between two statements of a batch.
func TestABatchInItsOwnTransactionIsRepeatedWhenATableMoves(t *testing.T) {
	m := newAutumn(t)
	m.near.after = func() { m.back(sharding.Returned) }
	rows := users(4, 5)
	if res, err := m.h.Insert(t.Context(), m.db, "lines", rows); err != nil || res.RowsAffected != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if left, found := idsIn(t, m.a, "lines_0"), idsIn(t, m.source, "lines"); len(left) != 0 || fmt.Sprint(found) != fmt.Sprint([]int64{rows[0].ID, rows[1].ID}) {
		t.Errorf("%v of %v are on the source, %v on the shard", found, rows, left)
	}
}

// After a rollback of a job that assigns new ids, the source numbers its rows itself.
func TestIDsForShardsAreDroppedWhenTheSourceNumbersAgain(t *testing.T) {
	m := newAutumn(t)
	if _, err := m.h.Insert(t.Context(), m.db, "lines", users(4)); err != nil {
		t.Fatal(err)
	}
	m.back(sharding.OnSource)
	rows := users(5)
	res, err := m.h.Insert(t.Context(), m.db, "lines", rows)
	if err != nil || rows[0].ID != 1 || fmt.Sprint(res.IDs) != "[1]" {
		t.Errorf("%+v, %+v, %v", rows, res, err)
	}
	own := []line{{ID: 70, UserID: 5}} // of the program, which must know
	if _, err := m.h.Insert(t.Context(), m.db, "lines", own); err != nil || fmt.Sprint(idsIn(t, m.source, "lines")) != "[1 70]" {
		t.Errorf("%v, %v", own, err)
	}
}
