// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestExplainSaysWhereAStatementGoesAndSendsNothing(t *testing.T) {
	w := newTwin(t, 0)
	e, err := shardsql.Explain(t.Context(), w.routed, "INSERT INTO orders (id, user_id) VALUES (?, ?)", 1, 6)
	if err != nil || e.Kind != shardsql.One || e.Shards[0].Target != (sharding.Target{DB: "a", Table: "orders_2"}) || len(e.Shards[0].Args) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	e, err = shardsql.Explain(t.Context(), w.routed, "SELECT id FROM orders WHERE paid = ? ORDER BY note LIMIT ?", 1, 5)
	if err != nil || e.Kind != shardsql.Scatter || len(e.Shards) != 4 || len(e.Shards[0].Args) != 1 || e.Merge != "rows are merged in their order; 5 rows after the first 0" {
		t.Errorf("%+v, %v", e, err)
	}
	e, err = shardsql.Explain(sharding.OnKey(t.Context(), "orders", 7), w.routed, "DELETE FROM orders")
	if err != nil || e.Kind != shardsql.One || e.Shards[0].Target.Table != "orders_3" {
		t.Errorf("with a hint: %+v, %v", e, err)
	}
	e, err = shardsql.Explain(t.Context(), w.routed, "UPDATE orders SET user_id = 7 WHERE user_id = 6")
	if err != nil || e.Kind != shardsql.Refused || !errors.Is(e.Err, sharding.ErrKeyChange) {
		t.Errorf("%+v, %v", e, err)
	}
	e, err = shardsql.Explain(t.Context(), w.routed, "INSERT INTO orders (id, user_id) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", 1, 6)
	if err != nil || e.Kind != shardsql.One || len(e.Lookups) != 3 || e.Lookups[0].Target.Table != "orders_2" || len(e.Lookups[2].Args) != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	e, err = shardsql.Explain(t.Context(), w.routed, "SELECT 1")
	if err != nil || e.Kind != shardsql.Home {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := shardsql.Explain(t.Context(), w.one, "SELECT 1"); err == nil {
		t.Error("a database of another driver is explained")
	}
}

func TestPlanRefusesAQueryThatLocksRowsInTwoDatabasesAsItIsSent(t *testing.T) {
	s := newShop(t)
	e, err := shardsql.Plan(s.router, "mysql", "SELECT id FROM orders WHERE user_id IN (0, 1, 2, 3) FOR UPDATE")
	if err != nil || e.Kind != shardsql.Refused || !errors.Is(e.Err, sharding.ErrCrossDatabase) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestPlanNeedsNoDatabase(t *testing.T) {
	s := newShop(t)
	for _, db := range s.dbs {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for dialect, want := range map[string]string{
		"mysql":    "SELECT * FROM `orders_1` AS orders WHERE user_id = 5",
		"MariaDB":  "SELECT * FROM `orders_1` AS orders WHERE user_id = 5",
		"sqlite":   `SELECT * FROM "orders_1" AS orders WHERE user_id = 5`,
		"postgres": `SELECT * FROM "orders_1" AS orders WHERE user_id = 5`,
	} {
		e, err := shardsql.Plan(s.router, dialect, "SELECT * FROM orders WHERE user_id = 5")
		if err != nil || e.Kind != shardsql.One || e.Shards[0].Text != want {
			t.Errorf("%s: %+v, %v", dialect, e, err)
		}
	}
	if _, err := shardsql.Plan(s.router, "oracle", "SELECT 1"); err == nil {
		t.Error("a dialect that is none")
	}
}
