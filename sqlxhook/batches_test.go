// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

func users(ids ...int64) []line {
	rows := make([]line, len(ids))
	for i, id := range ids {
		rows[i].UserID = id
	}
	return rows
}

func TestABatchForOneDatabaseIsOneTransactionOverItsTables(t *testing.T) {
	m := newMarket(t)
	rows := users(8, 2, 4, 6)
	res, err := m.Insert(t.Context(), m.db, "lines", rows)
	if err != nil || !slices.Equal(res.IDs, []int64{1, 2, 3, 4}) || res.RowsAffected != 4 || rows[3].ID != 4 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.in(t, "lines"); got != "[1 3] [] [2 4] []" {
		t.Error(got)
	}
	again := users(8, 4, 2)
	again[2].ID = 2 // is there
	if _, err := m.NamedExec(t.Context(), m.db, "INSERT INTO lines (id, user_id) VALUES (:id, :user_id)", again); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
		t.Error(err)
	}
	if got := m.in(t, "lines"); got != "[1 3] [] [2 4] []" {
		t.Errorf("after a failure: %s", got)
	}
	if res, err = m.Insert(t.Context(), m.db, "lines", &line{UserID: 3}); err != nil || len(res.IDs) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.in(t, "lines"); got != "[1 3] [] [2 4] [7]" {
		t.Errorf("one row: %s", got)
	}
}

func TestABatchForSeveralDatabasesIsRefusedBeforeAnythingIsSent(t *testing.T) {
	m := newMarket(t)
	rows := users(8, 1)
	_, err := m.Insert(t.Context(), m.db, "lines", rows)
	var route *sharding.RouteError
	if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) || !strings.Contains(err.Error(), "BestEffort") || rows[0].ID != 0 {
		t.Errorf("%v, %v", err, rows)
	}
	many := make([]line, 20000) // of which the last statement is for another database
	many[19999].UserID = 1
	if _, err := m.Insert(t.Context(), m.db, "lines", many); !errors.Is(err, sharding.ErrCrossDatabase) || many[0].ID != 0 {
		t.Errorf("%v, %v", err, many[0])
	}
	if got := m.in(t, "lines"); got != "[] [] [] []" {
		t.Errorf("%.100s", got)
	}
}

func TestBestEffortInsertsIntoSeveralDatabases(t *testing.T) {
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	rows := users(5, 8, 2, 1, 7)
	res, err := m.Insert(t.Context(), m.db, "lines", rows)
	if err != nil || !slices.Equal(res.IDs, []int64{1, 2, 3, 4, 5}) || res.RowsAffected != 5 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := m.in(t, "lines"); got != "[2] [1 4] [3] [5]" {
		t.Error(got)
	}
	again := users(1, 8)
	again[0].ID = 4 // is there
	if _, err := m.Insert(t.Context(), m.db, "lines", again); err == nil || !strings.Contains(err.Error(), "UNIQUE") || again[1].ID == 0 {
		t.Errorf("%v, %v", err, again)
	}
	if got := m.in(t, "lines"); got != "[2] [1 4] [3] [5]" {
		t.Errorf("a statement that fails in one database undoes all: %s", got)
	}
	many := make([]line, 40000) // several statements
	for i := range many {
		many[i].UserID = int64(i)
	}
	if res, err := m.Insert(t.Context(), m.db, "lines", many); err != nil || res.RowsAffected != 40000 || res.IDs[39999] != many[39999].ID {
		t.Errorf("%d rows, %v", res.RowsAffected, err)
	}
	var n int
	if err := m.db.Get(&n, "SELECT COUNT(*) FROM lines"); err != nil || n != 40005 {
		t.Errorf("%d rows, %v", n, err)
	}
}

func TestRowsThatAnInsertReturnsAreInTheOrderOfTheArgument(t *testing.T) {
	m := newMarket(t, sharding.Transactions(sharding.BestEffort))
	rows := users(5, 8, 2, 1, 7)
	found, err := m.NamedQuery(t.Context(), m.db, "INSERT INTO lines (id, user_id) VALUES (:id, :user_id) RETURNING id, user_id", rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []line
	if err := sqlx.StructScan(found, &got); err != nil || !slices.Equal(got, rows) || rows[4].ID != 5 {
		t.Errorf("%v, %v, %v", got, rows, err)
	}
}

func TestACommitThatFailsAfterAnotherNamesTheCommittedDatabase(t *testing.T) {
	// A deferred constraint is checked by COMMIT.
	names := []string{"east", "west"}
	own := map[string]*sqlx.DB{}
	dbs := sharding.DBs{}
	for i, name := range names {
		own[name] = open(t, "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
			fmt.Sprintf("CREATE TABLE lines_%d (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)", i))
		own[name].SetMaxOpenConns(1)
		own[name].MustExec("PRAGMA foreign_keys = ON")
		dbs[name] = own[name].DB
	}
	own["east"].MustExec("INSERT INTO parents VALUES (2)")
	targets, err := sharding.Spread(names, 2, "lines_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "lines", Key: "user_id", Rule: sharding.Low(1), Map: targets}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	h, db := routed(t, router, own["east"].DB, keygen.Set{Named: map[string]keygen.Generator[int64]{"line": keygen.Counting(1, 1)}})
	rows := users(2, 3)
	_, err = h.Insert(t.Context(), db, "lines", rows)
	var partial *sharding.PartialCommitError
	if !errors.As(err, &partial) || !slices.Equal(partial.Committed, []string{"east"}) || partial.Failed["west"] == nil || rows[0].ID == 0 {
		t.Errorf("%v, %v", err, rows)
	}
	if _, err = h.Insert(t.Context(), db, "lines", users(5, 4)); err == nil || errors.As(err, &partial) {
		t.Errorf("the first to commit failed, so nothing stays: %v", err)
	}
	if e, w := idsIn(t, own["east"], "lines_0"), idsIn(t, own["west"], "lines_1"); len(e) != 1 || len(w) != 0 {
		t.Errorf("%v %v", e, w)
	}
}

func TestABroadcastTableIsWrittenEverywhere(t *testing.T) {
	type region struct {
		ID   int64  `db:"id"`
		Name string `db:"name"`
	}
	m := newMarket(t)
	if res, err := m.Insert(t.Context(), m.db, "regions", []region{{1, "a"}, {2, "b"}}); err != nil || res.RowsAffected != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := m.NamedExec(t.Context(), m.db, "UPDATE regions SET name = :name WHERE id = :id", region{2, "c"}); err != nil {
		t.Error(err)
	}
	for name, db := range m.own {
		var all []region
		if err := db.Select(&all, "SELECT * FROM regions ORDER BY id"); err != nil || !slices.Equal(all, []region{{1, "a"}, {2, "c"}}) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	many := make([]region, 20000) // two statements
	for i := range many {
		many[i] = region{int64(i + 10), "x"}
	}
	if res, err := m.Insert(t.Context(), m.db, "regions", many); err != nil || res.RowsAffected != 20000 {
		t.Errorf("%d rows, %v", res.RowsAffected, err)
	}
	for name, db := range m.own {
		var n int
		if err := db.Get(&n, "SELECT COUNT(*) FROM regions"); err != nil || n != 20002 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
	}
	if _, err := m.NamedExec(t.Context(), m.db, "INSERT INTO regions (name) VALUES (:name)", region{Name: "x"}); !errors.Is(err, sharding.ErrCopies) {
		t.Errorf("a number that each database would make for itself: %v", err)
	}
}

func TestRowsThatCannotBePlacedLoseTheirIDs(t *testing.T) {
	type visit struct {
		ID     int64 `db:"id" keygen:"line"`
		UserID any   `db:"user_id"`
	}
	m := newMarket(t)
	for _, rows := range [][]visit{{{UserID: 1}, {UserID: "x"}}, {{UserID: 1}, {}}} {
		_, err := m.Insert(t.Context(), m.db, "lines", rows)
		if !errors.Is(err, sharding.ErrKeyType) || rows[0].ID != 0 {
			t.Errorf("%v, %v", err, rows)
		}
	}
	if _, err := m.Insert(t.Context(), m.db, "lines", []map[string]any{{"id": 1}, {"id": 2}}); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("no key at all: %v", err)
	}
	if got := m.in(t, "lines"); got != "[] [] [] []" {
		t.Error(got)
	}
	five, zero := int64(5), users(0)
	pointers := []*struct {
		ID     int64  `db:"id" keygen:"line"`
		UserID *int64 `db:"user_id"`
	}{{UserID: &five}, {UserID: &five}}
	if _, err := m.Insert(t.Context(), m.db, "LINES", pointers); err != nil || pointers[1].ID == 0 {
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), m.db, "lines", zero); err != nil { // 0 is a key
		t.Error(err)
	}
	if _, err := m.Insert(t.Context(), m.db, "lines", []map[string]any{{"id": 100, "user_id": "9"}}); err != nil {
		t.Error(err)
	}
	if got := m.in(t, "lines"); !strings.HasSuffix(got, fmt.Sprintf("[%d %d 100] [] []", pointers[0].ID, pointers[1].ID)) {
		t.Error(got)
	}
}

func TestADeadlineDoesNotFallBetweenTwoCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		copies := testshards.NewCopies(t, open(t).Driver())
		h, db := routed(t, copies.Router, copies.Router.DB("db0"), keygen.Set{})
		ctx, cancel := context.WithCancel(t.Context())
		copies.AfterCommit = func() {
			cancel()
			synctest.Wait() // until everything that the end of the context begins has ended: a rollback of the other one, too
		}
		color := map[string]any{"name": "blue"}
		if _, err := h.NamedExec(ctx, db, "UPDATE colors SET name = :name", color); err != nil {
			t.Error(err)
		}
		if names := copies.Names(t); names != [2]string{"blue", "blue"} {
			t.Errorf("the copies are %v", names)
		}
		if _, err := h.NamedExec(ctx, db, "UPDATE colors SET name = 'late'", color); err == nil {
			t.Error("a write after the deadline")
		}
		if names := copies.Names(t); names != [2]string{"blue", "blue"} {
			t.Errorf("the copies are %v", names)
		}
	})
}
