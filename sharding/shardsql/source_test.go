// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestOnlyRowsOfATableThatIsMigratedAreChanged(t *testing.T) {
	m := newMoving(t)
	for _, text := range []string{"DROP TABLE orders", "/* x */ alter table orders ADD COLUMN more", "ALTER TABLE orders RENAME TO lost", "TRUNCATE TABLE orders"} {
		if _, err := m.routed.Exec(text); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	exec(t, m.routed, "INSERT INTO orders (user_id, note) SELECT 1, 'kept'")
	exec(t, m.routed, "CREATE TABLE old (orders TEXT)")
	if _, err := m.routed.ExecContext(sharding.Unsharded(t.Context()), "ALTER TABLE old DROP COLUMN orders"); err == nil || errors.Is(err, sharding.ErrRawTable) { // which is the only one
		t.Error(err)
	}
}

func TestTheSourceServesNoShardThatTheContextNames(t *testing.T) {
	m := newMoving(t)
	for name, at := range map[string]struct {
		target sharding.Target
		want   error
	}{
		"a shard":    {sharding.Target{DB: "main", Table: "orders_0"}, sharding.ErrCrossShard},
		"the source": {sharding.Target{DB: "main", Table: "orders"}, nil},
	} {
		if _, err := m.routed.ExecContext(sharding.On(t.Context(), at.target), "UPDATE orders SET note = 'x'"); !errors.Is(err, at.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.routed.ExecContext(sharding.OnKey(t.Context(), "orders", 1), "UPDATE orders SET note = 'x'"); err != nil {
		t.Error(err)
	}
}

// The first statement of the text is executed before the second one finds its table closed.
func TestATextOfSeveralStatementsIsNotSentAgain(t *testing.T) {
	m := newMoving(t)
	exec(t, m.db, "CREATE TABLE logged (note TEXT)")
	exec(t, m.routed, "UPDATE orders SET note = 'early'")
	m.closes(t, sharding.OnShards)()
	_, err := m.routed.Exec("INSERT INTO logged VALUES ('once'); UPDATE orders SET note = 'late'")
	var refused *sharding.RouteError
	if err == nil || !strings.Contains(err.Error(), "no such table") || errors.As(err, &refused) {
		t.Error(err)
	}
	var n int
	if err := m.db.QueryRow("SELECT COUNT(*) FROM logged").Scan(&n); err != nil || n != 1 {
		t.Errorf("logged %d times, %v", n, err)
	}
}

// Two jobs move the tables of one group: their rows are not beside each other until both have switched.
func TestTablesOfAGroupOfWhichOneIsOnTheSourceAreNotJoined(t *testing.T) {
	open := files(t)
	db := open("source.db")
	exec(t, db, "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	exec(t, db, "INSERT INTO shardid_route VALUES ('orders', 'first', 1, 'shards'), ('items', 'second', 1, 'source')")
	var tables []sharding.Table
	for _, name := range []string{"orders", "items"} {
		m, err := sharding.Spread([]string{"main"}, 2, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: m, Group: "shop"})
		for _, table := range []string{name, name + "_0", name + "_1"} {
			exec(t, db, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, order_id INTEGER)")
			exec(t, db, "INSERT INTO "+table+" VALUES (1, 1, 1)")
		}
	}
	tables[1].Parents = []sharding.Parent{{Column: "order_id", Table: "orders"}}
	router, err := sharding.New(sharding.DBs{"main": db}, sharding.Tables(tables...), sharding.Migration{Source: "main", Tables: map[string]string{"orders": "id", "items": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
	t.Cleanup(func() { _ = routed.Close() })
	if n := one[int64](t, routed, "SELECT COUNT(*) FROM orders") + one[int64](t, routed, "SELECT COUNT(*) FROM items"); n != 3 {
		t.Errorf("%d rows", n)
	}
	for _, text := range []string{
		"SELECT COUNT(*) FROM orders o JOIN items i ON i.order_id = o.id",
		"SELECT COUNT(*) FROM items i JOIN orders o ON i.order_id = o.id WHERE o.user_id = 1",
		"UPDATE items SET id = 2 WHERE order_id IN (SELECT id FROM orders WHERE user_id = 1)",
		"DELETE FROM orders WHERE user_id = 1 AND NOT EXISTS (SELECT 1 FROM items WHERE order_id = orders.id)",
	} {
		for name, ctx := range map[string]context.Context{"": within(t), "on a target": sharding.On(within(t), sharding.Target{DB: "main", Table: "orders_1"}), "on a key": sharding.OnKey(within(t), "orders", 1)} {
			if _, err := routed.ExecContext(ctx, text); !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "move tables of one group in one job") {
				t.Errorf("%s %s: %v", text, name, err)
			}
		}
	}
}
