// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
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
	refused := 0
	for text, want := range map[string]int64{
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id = 5":              0,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id IN (5, 6)":        3,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id IN (5, 7)":        4,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id = 6":              3,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id = 8":              0,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE id = 1":                    0,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE id IN (1, 3)":              3,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE code = 'five'":             0,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE code IN ('five', 'six')":   3,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE code IN ('five', 'seven')": 4,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE code = 'six'":              3,
		"SELECT COALESCE(SUM(amount), 0) FROM items WHERE code = 'seven'":            4,
	} {
		for _, first := range []string{"", "SELECT COUNT(*) FROM items WHERE user_id = 2", "SELECT COUNT(*) FROM items WHERE user_id = 1"} {
			tx, err := routed.BeginTx(within(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			if first != "" {
				one[int64](t, tx, first)
			}
			var got int64
			switch err := tx.QueryRow(text).Scan(&got); {
			case errors.Is(err, sharding.ErrSlotMoving):
				refused++
			case first != "" && errors.Is(err, sharding.ErrCrossDatabase):
			case err != nil || got != want:
				t.Errorf("%s after %q: %d, %v; want %d", text, first, got, err, want)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		var got int64
		if err := routed.QueryRow(text).Scan(&got); err != nil && !errors.Is(err, sharding.ErrSlotMoving) || err == nil && got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	if refused == 0 || refused > 18 { // in transactions, those for one of the rows left behind
		t.Errorf("%d statements of transactions are refused", refused)
	}
}

// The ids of items carry no slot. A query for all shards would be refused.
func TestAReadByAnIDGoesToItsShardWhileSlotsMove(t *testing.T) {
	routed := movingItems(t)
	for id, want := range map[int64]int64{3: 3, 4: 4} {
		if got := one[int64](t, routed, "SELECT amount FROM items WHERE id = ?", id); got != want {
			t.Errorf("item %d has the amount %d, want %d", id, got, want)
		}
		if got := one[int64](t, routed, "SELECT SUM(amount) FROM items WHERE id = ? AND amount > 0 ORDER BY 1 LIMIT 1", id); got != want {
			t.Errorf("item %d has the amount %d, want %d", id, got, want)
		}
	}
	if n := one[int64](t, routed, "SELECT COUNT(*) FROM items WHERE id = 99"); n != 0 {
		t.Errorf("%d items have an id that none has", n)
	}
	var n int
	for _, text := range []string{"SELECT COUNT(*) FROM items", "SELECT COUNT(*) FROM items WHERE id = 1"} { // 1 is what the slot has left behind
		if err := routed.QueryRow(text).Scan(&n); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
