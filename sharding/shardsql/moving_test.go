// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// movingItems has items of users in two slots: slot 0 is on a. Slot 1 has moved from a to b, and a still has the items as they
// were, which b has no more, those of order 5 with the amounts 1 and 2. Order 6, of slot 0, has an item with the amount 3.
func movingItems(t *testing.T) *sql.DB {
	t.Helper()
	open := files(t)
	dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "items_0"}, sharding.Target{DB: "b", Table: "items_1"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: m.Sharing(1),
		Parents: []sharding.Parent{{Column: "order_id", Table: "items"}}, Lookups: []sharding.Lookup{{Column: "code", Table: "items_by_code"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"a": "items_0", "b": "items_1"} {
		exec(t, dbs[name], "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, amount BIGINT NOT NULL, code TEXT)")
		exec(t, dbs[name], "CREATE INDEX "+table+"_by_code ON "+table+" (code)")
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: dbs["a"], Table: "items", Column: "code"}); err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	exec(t, dbs["a"], "INSERT INTO items_0 VALUES (1, 1, 5, 1, 'five'), (2, 1, 5, 2, 'five')")
	exec(t, routed, "INSERT INTO items (id, user_id, order_id, amount, code) VALUES (3, 2, 6, 3, 'six')")
	exec(t, routed, "INSERT INTO items (id, user_id, order_id, amount, code) VALUES (4, 1, 7, 4, 'seven')")
	return routed
}

func TestAReadNeverReturnsWhatAMovedSlotHasLeftBehind(t *testing.T) {
	routed := movingItems(t)
	for where, want := range map[string]int64{
		"order_id = 5": 0, "order_id IN (5, 6)": 3, "order_id IN (5, 7)": 4, "order_id = 6": 3, "order_id = 8": 0, "id = 1": 0, "id IN (1, 3)": 3,
		"code = 'five'": 0, "code IN ('five', 'six')": 3, "code IN ('five', 'seven')": 4, "code = 'six'": 3, "code = 'seven'": 4,
	} {
		text := "SELECT COALESCE(SUM(amount), 0) FROM items WHERE " + where
		for _, first := range []string{"", "SELECT COUNT(*) FROM items WHERE user_id = 2", "SELECT COUNT(*) FROM items WHERE user_id = 1"} {
			got, err := inTransaction(t, routed, first, text)
			if (err != nil || got != want) && (first == "" || !errors.Is(err, sharding.ErrCrossDatabase)) {
				t.Errorf("%s after %q: %d, %v; want %d", text, first, got, err, want)
			}
		}
		if got := one[int64](t, routed, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// inTransaction returns the result of a query in a transaction, after that of another one, if there is one.
func inTransaction(t *testing.T, db *sql.DB, first, text string) (got int64, err error) {
	t.Helper()
	tx, err := db.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if first != "" {
		one[int64](t, tx, first)
	}
	err = tx.QueryRow(text).Scan(&got)
	if failed := tx.Rollback(); failed != nil {
		t.Fatal(failed)
	}
	return got, err
}

func TestAQueryOfAllShardsReadsTheOwnRowsOfEachWhileSlotsMove(t *testing.T) {
	routed := movingItems(t)
	for text, want := range map[string]int64{
		"SELECT COUNT(*) FROM items":                                                             2,
		"SELECT SUM(i.amount) FROM items AS i":                                                   7,
		"SELECT amount FROM items WHERE id = 4":                                                  4,
		"SELECT COUNT(*) FROM items WHERE id IN (1, 2, 3)":                                       1,
		"SELECT COUNT(*) FROM items a LEFT JOIN items b ON b.user_id = a.user_id":                2,
		"SELECT COUNT(*) FROM items a WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = a.id)":    0,
		"WITH t AS (SELECT user_id FROM items) SELECT COUNT(DISTINCT user_id) FROM t":            2,
		"SELECT COUNT(*) FROM items JOIN (SELECT user_id FROM items) AS o USING (user_id)":       2,
		"SELECT id FROM items UNION ALL SELECT items.id FROM items WHERE id > 9 ORDER BY 1 DESC": 4,
	} {
		if got := one[int64](t, routed, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{
		"SELECT COUNT(*) FROM items a LEFT JOIN items b USING (user_id)", // ON has no place for a condition
		"UPDATE items SET amount = 0",
	} {
		if _, err := routed.ExecContext(sharding.AllShards(t.Context()), text); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// SQLite names a column by the text of its expression.
func TestColumnsHaveTheNamesOfOneTableWhileSlotsMove(t *testing.T) {
	routed := movingItems(t)
	for text, want := range map[string]string{
		"SELECT EXISTS (SELECT 1 FROM items)":                                                                    "EXISTS (SELECT 1 FROM items)",
		"SELECT id, (SELECT COUNT(*) FROM items b WHERE b.user_id = items.user_id) FROM items":                   "(SELECT COUNT(*) FROM items b WHERE b.user_id = items.user_id)",
		"SELECT * FROM (SELECT EXISTS (SELECT 1 FROM items b WHERE b.user_id = a.user_id) FROM items AS a) AS t": "EXISTS (SELECT 1 FROM items b WHERE b.user_id = a.user_id)",
	} {
		rows, err := routed.QueryContext(sharding.AllShards(t.Context()), text)
		if err != nil {
			t.Fatal(err)
		}
		names, err := rows.Columns()
		if err := errors.Join(err, rows.Close()); err != nil || names[len(names)-1] != want {
			t.Errorf("%s has the columns %q, %v", text, names, err)
		}
	}
}

// The first part has begun before slot 0 moves to the other table, and the second part begins when its rows have been deleted
// where they were.
func TestAQueryBeginsAgainIfSlotsMoveWhileItsPartsBegin(t *testing.T) {
	var onQuery func(query string)
	db := sql.OpenDB(asking{filepath.Join(t.TempDir(), "a.db") + "?_pragma=journal_mode(wal)&_pragma=busy_timeout(9000)", func(_ context.Context, query string) error {
		if onQuery != nil && strings.Contains(query, "COUNT") {
			onQuery(query)
		}
		return nil
	}})
	t.Cleanup(func() { _ = db.Close() })
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "items_0"}, sharding.Target{DB: "a", Table: "items_1"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, db, "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	exec(t, db, "INSERT INTO items_0 VALUES (1, 0), (2, 0)")
	exec(t, db, "INSERT INTO items_1 VALUES (3, 1)")
	var moved atomic.Bool
	onQuery = func(query string) {
		if !strings.Contains(query, "items_0") || !moved.CompareAndSwap(false, true) {
			return
		}
		to, err := sharding.MapOf(sharding.Target{DB: "a", Table: "items_1"}, sharding.Target{DB: "a", Table: "items_1"})
		if err != nil {
			t.Error(err)
		}
		exec(t, db, "INSERT INTO items_1 SELECT * FROM items_0")
		exec(t, db, "DELETE FROM items_0")
		if err := router.Swap(map[string]sharding.Map{"items": to.At(1)}); err != nil {
			t.Error(err)
		}
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
	t.Cleanup(func() { _ = routed.Close() })
	if n := one[int](t, routed, "SELECT COUNT(*) FROM items"); n != 3 || !moved.Load() {
		t.Errorf("%d items are counted, and have moved: %v", n, moved.Load())
	}
}
