package sqlxhook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/gatesuite"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

type (
	ticket  = gatesuite.Ticket
	theatre = gatesuite.Theatre
)

const ticketsDDL = "CREATE TABLE tickets (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, note TEXT NOT NULL)"

func newTheatre(t *testing.T, key string) *theatre {
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

func TestWritersSeeNothingOfAMigration(t *testing.T) {
	for _, key := range []string{"id", "user_id"} {
		t.Run(key, func(t *testing.T) {
			newTheatre(t, key).ThereAndBack(t, 3)
		})
	}
}

// switched is a theatre with rows whose table has moved after the hook read where
// it is, so that every handle must find out.
func switched(t *testing.T) (*theatre, *sqlxhook.Shard) {
	t.Helper()
	h := newTheatre(t, "user_id")
	if _, err := h.Insert(t.Context(), h.Shards(), "tickets", []ticket{{UserID: 1, Note: "a"}, {UserID: 1, Note: "b"}}); err != nil {
		t.Fatal(err)
	}
	s, err := h.For("tickets", 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.Target().String() != "source/tickets" {
		t.Fatalf("before the switch the rows are on %s", s.Target())
	}
	h.Cutover(t, h.Job(t))
	return h, s
}

func TestEachFormOfStatementGoesOnAfterASwitch(t *testing.T) {
	for name, send := range map[string]func(h *theatre, s *sqlxhook.Shard) error{
		"ExecContext": func(_ *theatre, s *sqlxhook.Shard) error {
			_, err := s.ExecContext(context.Background(), "UPDATE tickets SET note = 'x' WHERE user_id = ?", 1)
			return err
		},
		"QueryxContext": func(_ *theatre, s *sqlxhook.Shard) error {
			rows, err := s.QueryxContext(context.Background(), "SELECT * FROM tickets")
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"GetContext": func(_ *theatre, s *sqlxhook.Shard) error {
			var n int
			return s.GetContext(context.Background(), &n, "SELECT COUNT(*) FROM tickets")
		},
		"SelectContext": func(_ *theatre, s *sqlxhook.Shard) error {
			var rows []ticket
			err := s.SelectContext(context.Background(), &rows, "SELECT * FROM tickets")
			if len(rows) != 2 {
				return fmt.Errorf("%d rows (%w)", len(rows), err)
			}
			return err
		},
		"NamedQuery": func(h *theatre, s *sqlxhook.Shard) error {
			rows, err := h.NamedQuery(context.Background(), s, "SELECT * FROM tickets WHERE user_id = :user_id", ticket{UserID: 1})
			if err != nil {
				return err
			}
			return rows.Close()
		},
		"Insert": func(h *theatre, s *sqlxhook.Shard) error {
			row := ticket{UserID: 1}
			if _, err := h.Insert(context.Background(), s, "tickets", &row); err != nil || row.ID < 1<<40 {
				return fmt.Errorf("id %d is none of the generator's (%w)", row.ID, err)
			}
			return nil
		},
		"Insert of a batch": func(h *theatre, s *sqlxhook.Shard) error {
			_, err := h.Insert(context.Background(), s, "tickets", make([]ticket, 3))
			if !errors.Is(err, sharding.ErrMisplaced) { // user 0 is elsewhere now
				return fmt.Errorf("rows of user 0 are accepted for user 1 (%w)", err)
			}
			_, err = h.Insert(context.Background(), s, "tickets", []ticket{{UserID: 1}, {UserID: 5}})
			return err
		},
		"Shards": func(h *theatre, _ *sqlxhook.Shard) error {
			_, err := h.Insert(context.Background(), h.Shards(), "tickets", []ticket{{UserID: 1}, {UserID: 3}})
			return err
		},
		"a hint": func(h *theatre, _ *sqlxhook.Shard) error {
			_, err := h.Shards().ExecContext(sharding.OnKey(context.Background(), "tickets", 1), "UPDATE tickets SET note = 'x' WHERE user_id = ?", 1)
			return err
		},
		"a transaction of the shard": func(h *theatre, s *sqlxhook.Shard) error {
			if _, err := s.ExecContext(context.Background(), "DELETE FROM tickets WHERE id = 0"); err != nil {
				return err
			}
			tx, err := s.Begin(context.Background(), nil) // by now the router knows
			if err != nil {
				return err
			}
			if _, err := h.Insert(context.Background(), tx, "tickets", &ticket{UserID: 1}); err != nil {
				return err
			}
			return tx.Commit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := switched(t)
			if err := send(h, s); err != nil {
				t.Error(err)
			}
			if at, err := h.For("tickets", 1); err != nil || at.Target().String() != "b/tickets_1" {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
}

func TestATransactionEndsWhenItsTableMoves(t *testing.T) {
	h, s := switched(t)
	tx, err := s.Begin(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Exec":   second(tx.ExecContext(t.Context(), "UPDATE tickets SET note = 'x'")),
		"Select": tx.SelectContext(t.Context(), &[]ticket{}, "SELECT * FROM tickets"),
		"Insert": second(h.Insert(t.Context(), tx, "tickets", &ticket{UserID: 1})),
		"Batch":  second(h.Insert(t.Context(), tx, "tickets", make([]ticket, 2))),
	} {
		var moved *sharding.MovedError
		if !errors.Is(err, sharding.ErrRouteMoved) || !errors.As(err, &moved) || moved.Table != "tickets" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	again, err := h.Begin(t.Context(), "tickets", 1)
	if err != nil {
		t.Fatal(err)
	}
	if again.Target().DB != "b" {
		t.Errorf("the next attempt is on %s", again.Target())
	}
	if _, err := h.Insert(t.Context(), again, "tickets", []ticket{{UserID: 1}, {UserID: 5}}); err != nil {
		t.Error(err)
	}
	if err := again.Commit(); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestATransactionEndsWhenAnotherHasSeenItsTableMove(t *testing.T) {
	h := newTheatre(t, "user_id")
	tx, err := h.Begin(t.Context(), "tickets", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil { // the switch waits for those that are under way
		t.Fatal(err)
	}
	h.Cutover(t, h.Job(t))
	if _, err := h.Insert(t.Context(), h.Shards(), "tickets", &ticket{UserID: 1}); err != nil {
		t.Fatal(err)
	}
	var moved *sharding.MovedError
	if _, err := tx.For("tickets", 1); !errors.Is(err, sharding.ErrRouteMoved) || !errors.As(err, &moved) || moved.Table != "tickets" {
		t.Errorf("For: %v", err)
	}
}

func TestHandlesOfATargetEndWhenTheTableMoves(t *testing.T) {
	h, _ := switched(t)
	at, err := h.At(sharding.Target{DB: "source", Table: "tickets"})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := sqlxhook.GroupKeys(h.Hook, "tickets", []int{1, 2})
	if err != nil || len(groups) != 1 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	for name, s := range map[string]*sqlxhook.Shard{"At": at, "GroupKeys": groups[0].Shard} {
		if _, err := s.ExecContext(t.Context(), "DELETE FROM tickets"); !errors.Is(err, sharding.ErrRouteMoved) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rows := []ticket{{UserID: 1}, {UserID: 2}}
	byShard, err := sqlxhook.GroupBy(t.Context(), h.Hook, "tickets", rows) // looks where the table is, after that
	if err != nil || len(byShard) != 2 {
		t.Errorf("%d groups, %v", len(byShard), err)
	}
	if _, err := h.At(sharding.Target{DB: "source", Table: "tickets"}); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Errorf("the source's table is a target still: %v", err)
	}
}

func TestNamesThatArePhysicalAreNotFollowed(t *testing.T) {
	_, s := switched(t)
	_, err := s.ExecContext(sharding.Unsharded(t.Context()), "DELETE FROM tickets")
	if err == nil || !strings.Contains(err.Error(), "no such table") || errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("got %v", err)
	}
}

func TestTheSourceNumbersTheRows(t *testing.T) {
	h := newTheatre(t, "id")
	rows := []ticket{{UserID: 1}, {ID: 100, UserID: 2}, {UserID: 3}}
	res, err := h.Insert(t.Context(), h.Shards(), "tickets", rows)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].ID != 1 || rows[1].ID != 100 || rows[2].ID != 101 || fmt.Sprint(res.IDs) != "[1 100 101]" || res.RowsAffected != 3 {
		t.Errorf("%+v, %+v", rows, res)
	}
	groups, err := sqlxhook.GroupBy(t.Context(), h.Hook, "tickets", []ticket{{UserID: 1}, {UserID: 2}})
	if err != nil || len(groups) != 1 || groups[0].Items[0].ID != 0 {
		t.Fatalf("%+v, %v", groups, err)
	}
	if _, err := h.Insert(t.Context(), groups[0].Shard, "tickets", groups[0].Items); err != nil || groups[0].Items[1].ID != 103 {
		t.Errorf("%+v, %v", groups[0].Items, err)
	}
	one := ticket{UserID: 9}
	upsert := "INSERT INTO tickets (id, user_id, note) VALUES (:id, :user_id, :note) ON CONFLICT DO NOTHING"
	if res, err := h.NamedExec(t.Context(), h.Shards(), upsert, &one); err != nil || one.ID != 0 || res.IDs != nil {
		t.Errorf("an upsert says which row it wrote: %+v, %+v, %v", one, res, err)
	}
	if _, err := h.Insert(t.Context(), h.Shards(), "tickets", ticket{UserID: 1}); !errors.Is(err, sqlxhook.ErrNotAddressable) {
		t.Errorf("a row that cannot bear its id: %v", err)
	}
	if got := h.All(t); len(got) != 6 {
		t.Errorf("%d rows", len(got))
	}
}

func TestABatchThatFailsOnTheSourceGivesItsIDsBack(t *testing.T) {
	h := newTheatre(t, "id")
	rows := []ticket{{UserID: 1}, {ID: 7, UserID: 2}, {ID: 7, UserID: 3}}
	if _, err := h.Insert(t.Context(), h.Shards(), "tickets", rows); err == nil {
		t.Fatal("two rows have one id")
	}
	if got := h.All(t); len(got) != 0 {
		t.Errorf("%d rows", len(got))
	}
}

func TestHandlesNeedARouteThatWasRead(t *testing.T) {
	h := newTheatre(t, "id")
	router, err := sharding.New(h.DBs, h.Table, sharding.Migration{Source: "source", Tables: map[string]string{"tickets": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router, DriverName: "sqlite"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.For("tickets", 1); !errors.Is(err, sharding.ErrRouteUnread) || !strings.Contains(err.Error(), "Router.Load") {
		t.Errorf("For: %v", err)
	}
	if _, err := fresh.Insert(t.Context(), fresh.Shards(), "tickets", &ticket{}); err != nil { // it has a context, and looks itself
		t.Errorf("Insert: %v", err)
	}
	if _, err := fresh.For("tickets", 1); err != nil {
		t.Errorf("For: %v", err)
	}
}
