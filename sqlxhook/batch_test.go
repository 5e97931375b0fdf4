// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sqlxhook"
)

func TestBatchesAreSplitAtTheLimitOfParameters(t *testing.T) {
	tx := open(t, ordersDDL).MustBegin()
	db := &spy{Execer: tx}
	h, gen := newHook(t, sqlxhook.Config{MaxParams: 7, DriverName: "sqlite"})
	rows := make([]order, 5)
	for i := range rows {
		rows[i].UserID = int64(i)
	}
	res, err := h.Insert(t.Context(), db, "orders", rows)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(res.IDs, []int64{10, 20, 30, 40, 50}) || res.RowsAffected != 5 || gen.calls != 1 {
		t.Errorf("%+v, %d calls", res, gen.calls)
	}
	insert := `INSERT INTO "orders" ("id","user_id","note") VALUES `
	want := []string{insert + "(?,?,?),(?,?,?)", insert + "(?,?,?),(?,?,?)", insert + "(?,?,?)"}
	if !slices.Equal(db.queries, want) {
		t.Errorf("%q", db.queries)
	}
	if got := stored(t, tx); !slices.Equal(got, rows) {
		t.Errorf("%v", got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestParametersOutsideVALUESCountInEveryStatement(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 7})
	db := &speaks{driver: "postgres"}
	query := "WITH n AS (SELECT :note) INSERT INTO orders (id, user_id) VALUES (:id, :user_id) ON CONFLICT DO UPDATE SET note = :note"
	if _, err := h.NamedExec(t.Context(), db, query, make([]order, 3)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"WITH n AS (SELECT $1) INSERT INTO orders (id, user_id) VALUES ($2, $3),($4, $5) ON CONFLICT DO UPDATE SET note = $6",
		"WITH n AS (SELECT $1) INSERT INTO orders (id, user_id) VALUES ($2, $3) ON CONFLICT DO UPDATE SET note = $4",
	}
	if !slices.Equal(db.queries, want) || len(db.args[0]) != 6 || len(db.args[1]) != 4 || db.args[1][1] != int64(30) {
		t.Errorf("%q %v", db.queries, db.args)
	}
}

func TestMoreRowsThanSQLiteTakesInOneStatementAreStored(t *testing.T) {
	db := open(t, ordersDDL)
	h, gen := newHook(t, sqlxhook.Config{})
	rows := make([]order, 12000) // 36,000 parameters
	res, err := h.NamedExec(t.Context(), db, insertOrder, &rows)
	if err != nil || res.RowsAffected != 12000 || gen.calls != 1 {
		t.Fatalf("%d rows, %d calls, %v", res.RowsAffected, gen.calls, err)
	}
	if got := stored(t, db); !slices.Equal(got, rows) {
		t.Error("the table differs from the rows")
	}
}

// clashing returns five rows, the fourth of which exists already.
func clashing(db *sqlx.DB) []order {
	db.MustExec("INSERT INTO orders (id, user_id) VALUES (40, 9)")
	return make([]order, 5)
}

func TestASplitBatchIsAllOrNothingOnADB(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 6})
	rows := clashing(db)
	res, err := h.Insert(t.Context(), db, "orders", rows)
	var partial *sqlxhook.PartialError
	if err == nil || errors.As(err, &partial) || !strings.Contains(err.Error(), "UNIQUE") || res.RowsAffected != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := stored(t, db); len(got) != 1 || rows[0].ID != 10 {
		t.Errorf("%v, %v", got, rows)
	}
}

func TestASplitBatchOnAConnReportsTheRowsThatWereWritten(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 6, DriverName: "sqlite"})
	rows := clashing(db)
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Insert(t.Context(), conn, "orders", rows)
	var partial *sqlxhook.PartialError
	if !errors.As(err, &partial) || partial.Done != 2 || !strings.Contains(err.Error(), "the first 2 rows were written") || res.RowsAffected != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, db); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestATransactionThatCannotBeginRemovesTheIDs(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 6})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rows := make([]order, 5)
	if _, err := h.Insert(ctx, db, "orders", rows); !errors.Is(err, context.Canceled) || rows[0].ID != 0 {
		t.Errorf("%v, %v", err, rows)
	}
}

func TestTheFailureOfALaterStatementKeepsAllIDs(t *testing.T) {
	gone := errors.New("gone")
	db := &spy{Execer: open(t, ordersDDL), fail: gone, failAt: 1}
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 6, DriverName: "sqlite"})
	rows := make([]order, 5)
	res, err := h.Insert(t.Context(), db, "orders", rows)
	var partial *sqlxhook.PartialError
	if !errors.As(err, &partial) || !errors.Is(err, gone) || partial.Done != 2 || rows[4].ID != 50 || !slices.Equal(res.IDs, []int64{10, 20, 30, 40, 50}) {
		t.Errorf("%+v, %v, %v", res, err, rows)
	}
}

func TestOneRowIsSentWholeEvenAboveTheLimit(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 2})
	db := &speaks{driver: "mysql"}
	if _, err := h.Insert(t.Context(), db, "orders", make([]order, 2)); err != nil || len(db.queries) != 2 {
		t.Errorf("%v, %q", err, db.queries)
	}
}

func TestEveryHandleOfSqlxWorks(t *testing.T) {
	db := open(t, ordersDDL)
	h, _ := newHook(t, sqlxhook.Config{DriverName: "sqlite"})
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = h.Insert(t.Context(), conn, "orders", &order{}); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	tx := db.MustBegin()
	if _, err := h.Insert(t.Context(), tx, "orders", &order{}); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(t.Context(), db, "orders", &order{}); err != nil {
		t.Error(err)
	}
	if n := len(stored(t, db)); n != 3 {
		t.Errorf("%d rows", n)
	}
}
