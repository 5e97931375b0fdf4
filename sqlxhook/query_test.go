// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

const returningOrder = insertOrder + " RETURNING id, user_id, note"

func scanAll(t *testing.T, found *sqlx.Rows) []order {
	t.Helper()
	var out []order
	if err := sqlx.StructScan(found, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// queryError returns the error of a query that must fail.
func queryError(t *testing.T, h *sqlxhook.Hook, q sqlxhook.Queryer, query string, arg any) error {
	t.Helper()
	found, err := h.NamedQuery(t.Context(), q, query, arg)
	if found != nil {
		defer func() { _ = found.Close() }()
	}
	return err
}

func TestNamedQueryFillsKeysAndReturnsWhatTheDatabaseReturns(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{DriverName: "sqlite"})
	tx := db.MustBegin()
	rows := []order{{UserID: 1, Note: "a"}, {ID: 7, UserID: 2}, {UserID: 3}}
	found, err := h.NamedQuery(t.Context(), tx, returningOrder, rows)
	if err != nil {
		t.Fatal(err)
	}
	if got := scanAll(t, found); !slices.Equal(got, rows) || rows[2].ID != 20 || gen.calls != 1 {
		t.Errorf("%v, rows %v after %d calls", got, rows, gen.calls)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err = h.NamedQuery(t.Context(), conn, "SELECT id, user_id, note FROM orders WHERE user_id = :user_id", order{UserID: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := scanAll(t, found); !slices.Equal(got, rows[1:2]) {
		t.Errorf("%v", got)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNamedQueryIsOneStatementOrNone(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 6})
	rows := make([]order, 3)
	err := queryError(t, h, db, returningOrder, rows)
	if !errors.Is(err, sqlxhook.ErrTooManyRows) || !strings.Contains(err.Error(), "3 rows need 2 statements, the first of 2 rows") {
		t.Error(err)
	}
	if len(stored(t, db)) != 0 || rows[0].ID != 0 {
		t.Error("something was sent or stored")
	}
}

func TestNamedQueryRemovesIDsOnlyIfNothingWasDone(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	tx := db.MustBegin()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	o := order{}
	if err := queryError(t, h, tx, returningOrder, &o); !errors.Is(err, sql.ErrTxDone) || o.ID != 0 {
		t.Errorf("%v, id %d", err, o.ID)
	}
	if err := queryError(t, h, db, strings.Replace(returningOrder, "orders", "nowhere", 1), &o); err == nil || o.ID != 0 {
		t.Errorf("no table: %v, id %d", err, o.ID)
	}
	if err := queryError(t, h, db, returningOrder+", nothing", &o); err == nil || o.ID != 30 {
		t.Errorf("no column: %v, id %d", err, o.ID)
	}
	gen.err = keygen.ErrStarved
	if err := queryError(t, h, db, returningOrder, &order{}); !errors.Is(err, keygen.ErrStarved) {
		t.Error(err)
	}
	if err := queryError(t, h, nil, returningOrder, &order{}); err == nil || !strings.Contains(err.Error(), "handle is nil") {
		t.Error(err)
	}
}

func TestLastInsertIdIsTheLastRowsKeyOrTheDatabases(t *testing.T) {
	db := open(t, ordersDDL, "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT)")
	h, _ := newHook(t, sqlxhook.Config{})
	res, err := h.Insert(t.Context(), db, "orders", []order{{}, {ID: 7}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id != 20 {
		t.Errorf("%d, %v", id, err)
	}
	db.MustExec("INSERT INTO notes VALUES (41, '')")
	res, err = h.NamedExec(t.Context(), db, "INSERT INTO notes (note) VALUES (:note)", map[string]any{"note": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id != 42 {
		t.Errorf("%d, %v", id, err)
	}
	if _, err := (sqlxhook.Result{}).LastInsertId(); err == nil {
		t.Error("no statement, and an id")
	}
}
