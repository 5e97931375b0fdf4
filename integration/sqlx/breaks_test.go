// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sqlxhook"
)

// Each of these sends a statement that sqlx v1.4.0 changes wrongly, or on which it panics.
var sqlxBreaks = map[string]sqlxStory{
	"a batch without a column list is one insert": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 3)
		insertBills(t, db, h, "INSERT INTO bills VALUES (:id, :user_id, :note, NULL)", rows)
		wantBills(t, db, rows)
	},
	"a parameter behind the conflict clause of a batch is bound": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := []bill{{Note: "same"}, {Note: "same"}}
		upsert := fmt.Sprintf("INSERT INTO bills (id, user_id) VALUES (:id, :user_id) %s user_id = "+db.taken+", note = :note", db.upsert, "user_id")
		insertBills(t, db, h, upsert, rows)
		rows[0].UserID, rows[1].UserID = 7, 8
		insertBills(t, db, h, upsert, rows)
		wantBills(t, db, rows)
	},
	"a parenthesis in a literal is a letter": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 2)
		insertBills(t, db, h, "INSERT INTO bills (id, note) VALUES (:id, 'a)b')", rows)
		rows[0].Note, rows[1].Note = "a)b", "a)b"
		wantBills(t, db, rows)
	},
	"a cast is none of the parameter's name": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 2)
		insertBills(t, db, h, "INSERT INTO bills (id, note) VALUES ("+db.cast+", 'a::b')", rows)
		rows[0].Note, rows[1].Note = "a::b", "a::b"
		wantBills(t, db, rows)
	},
	"a time literal holds no parameters": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 2)
		insertBills(t, db, h, "INSERT INTO bills (id, at, note) VALUES (:id, '2024-01-02 12:30:00', '12:30:id')", rows)
		rows[0].Note, rows[1].Note = "12:30:id", "12:30:id"
		var n int
		if err := db.Get(&n, "SELECT COUNT(*) FROM bills WHERE at = '2024-01-02 12:30:00'"); err != nil || n != 2 {
			t.Errorf("%d rows at that time, %v", n, err)
		}
		wantBills(t, db, rows)
	},
	"a question mark in a literal stays one": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 2)
		insertBills(t, db, h, "INSERT INTO bills (id, note) VALUES (:id, 'what?') /* ? :no */", rows)
		rows[0].Note, rows[1].Note = "what?", "what?"
		wantBills(t, db, rows)
	},
	"a pointer to a slice is its rows": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, 2)
		if _, err := h.Insert(t.Context(), db.DB, "bills", &rows); err != nil {
			t.Fatal(err)
		}
		wantBills(t, db, rows)
	},
	"a nil element is an error": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := []*bill{{}, nil}
		_, err := h.Insert(t.Context(), db.DB, "bills", rows)
		var row *sqlxhook.RowError
		if !errors.Is(err, sqlxhook.ErrNil) || !errors.As(err, &row) || row.Row != 1 || rows[0].ID != 0 {
			t.Error(err)
		}
		wantBills(t, db, nil)
	},
	"a nil embedded pointer is an error": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		type Key struct {
			ID int64 `db:"id" keygen:"bill"`
		}
		row := struct {
			*Key
			Note string `db:"note"`
		}{}
		if _, err := h.Insert(t.Context(), db.DB, "bills", &row); !errors.Is(err, sqlxhook.ErrNil) {
			t.Error(err)
		}
		wantBills(t, db, nil)
	},
	"more parameters than a statement may have are several statements": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, db.most/3+10)
		insertBills(t, db, h, "INSERT INTO bills (id, user_id, note) VALUES (:id, :user_id, :note)", rows)
		wantBills(t, db, rows)
	},
	"as many parameters as a statement may have are one statement": func(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook) {
		rows := make([]bill, db.most/3)
		spy := &sqlxSpy{DB: db.DB}
		if _, err := h.Insert(t.Context(), spy, "bills", rows); err != nil || spy.statements != 1 {
			t.Errorf("%d statements, %v", spy.statements, err)
		}
		wantBills(t, db, rows)
	},
	"a Conn takes named statements": func(t *testing.T, db sqlxDatabase, _ *sqlxhook.Hook) {
		h := sqlxHook(t, sqlxhook.Config{DriverName: db.DriverName()})
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		row := bill{}
		if _, err := h.NamedExec(t.Context(), conn, "INSERT INTO bills (id) VALUES (:id)", &row); err != nil {
			t.Fatal(err)
		}
		found, err := h.NamedQuery(t.Context(), conn, "SELECT id, user_id, note FROM bills WHERE id = :id", row)
		if err != nil {
			t.Fatal(err)
		}
		var got []bill
		if err := sqlx.StructScan(found, &got); err != nil || !slices.Equal(got, []bill{row}) {
			t.Errorf("%v, %v", got, err)
		}
		_ = conn.Close() // before another connection looks, which SQLite would lock out
		wantBills(t, db, []bill{row})
	},
	"a wrapper of a handle keeps the mapper": func(t *testing.T, db sqlxDatabase, _ *sqlxhook.Hook) {
		h := sqlxHook(t, sqlxhook.Config{Mapper: reflectx.NewMapperFunc("json", strings.ToLower)})
		row := struct {
			ID   int64  `keygen:"bill"`
			Text string `json:"note"`
		}{Text: "mapped"}
		if _, err := h.NamedExec(t.Context(), &sqlxSpy{DB: db.DB}, "INSERT INTO bills (id, note) VALUES (:id, :note)", &row); err != nil {
			t.Fatal(err)
		}
		wantBills(t, db, []bill{{ID: row.ID, Note: "mapped"}})
	},
}

// sqlxSpy wraps a handle, as tracing does, and counts.
type sqlxSpy struct {
	*sqlx.DB
	statements int
}

func (s *sqlxSpy) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.statements++
	return s.DB.ExecContext(ctx, query, args...)
}

func insertBills(t *testing.T, db sqlxDatabase, h *sqlxhook.Hook, query string, rows []bill) {
	t.Helper()
	res, err := h.NamedExec(t.Context(), db.DB, query, rows)
	if err != nil {
		t.Fatalf("%.200s", err.Error())
	}
	for i, row := range rows {
		if row.ID == 0 || res.IDs[i] != row.ID {
			t.Fatalf("row %d has id %d, the result %d", i, row.ID, res.IDs[i])
		}
	}
}

func wantBills(t *testing.T, db sqlxDatabase, want []bill) {
	t.Helper()
	if got := db.bills(t); !slices.Equal(got, want) {
		t.Errorf("%d rows are stored, want %d: %.300s", len(got), len(want), fmt.Sprint(got))
	}
}
