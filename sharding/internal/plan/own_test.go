// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Slot 1 of orders is on b, and a has copies of its rows.
func TestWhileSlotsMoveTheTextOfAShardLeavesOutTheRowsOfOthers(t *testing.T) {
	m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	own := func(m sharding.Map) *sharding.Snapshot {
		r, err := sharding.New(sharding.DBs{"a": closed(t), "b": closed(t)}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		return r.Snapshot()
	}
	of := func(s *sharding.Snapshot, text string) (*plan.Route, error) {
		st := sqlparse.Parse(text, sqlparse.Dialect{Family: sqlparse.MySQL})
		return plan.Of(st, s, analysis.Options{Quote: func(name string) string { return "`" + name + "`" }}).Bind(nil, sharding.Hint{All: true})
	}
	const slot = ".`user_id` & 3) NOT IN (1)"
	for text, want := range map[string]string{
		"SELECT id FROM orders":                                                 "SELECT id FROM `orders_0` AS orders WHERE (orders" + slot,
		"SELECT id FROM orders o WHERE paid = 1 OR id = 3":                      "SELECT id FROM `orders_0` o WHERE (o" + slot + " AND (paid = 1 OR id = 3)",
		"SELECT DISTINCT user_id FROM orders LIMIT 3":                           "SELECT DISTINCT user_id FROM `orders_0` AS orders WHERE (orders" + slot + " LIMIT 3",
		"SELECT id FROM orders WHERE user_id IN (0, 1, 2)":                      "SELECT id FROM `orders_0` AS orders WHERE (orders" + slot + " AND (user_id IN (0, 1, 2))",
		"SELECT a.id FROM orders a, orders b WHERE a.user_id = b.user_id":       "SELECT a.id FROM `orders_0` a, `orders_0` b WHERE (a" + slot + " AND ((b" + slot + " AND (a.user_id = b.user_id))",
		"SELECT a.id FROM orders a LEFT JOIN orders b ON a.user_id = b.user_id": "SELECT a.id FROM `orders_0` a LEFT JOIN `orders_0` b ON (b" + slot + " AND (a.user_id = b.user_id) WHERE (a" + slot,
		"SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders WHERE orders.user_id = o.user_id)": "SELECT id FROM `orders_0` o WHERE (o" + slot +
			" AND (EXISTS (SELECT 1 FROM `orders_0` AS orders WHERE (orders" + slot + " AND (orders.user_id = o.user_id)))",
	} {
		to, err := of(own(m.Sharing(1)), text)
		if err != nil || to.Kind != plan.Scatter {
			t.Errorf("%s: %+v, %v", text, to, err)
			continue
		}
		if got := to.Shards.Targets[0].Text; got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
	}
	for text, want := range map[string]string{ // they concern no row of the slot
		"SELECT id FROM orders WHERE user_id IN (0, 3)":               "SELECT id FROM `orders_0` AS orders WHERE user_id IN (0, 3)",
		"SELECT id FROM orders WHERE user_id IN (0, 3) FOR UPDATE":    "SELECT id FROM `orders_0` AS orders WHERE user_id IN (0, 3) FOR UPDATE",
		"UPDATE orders SET paid = 1 WHERE user_id = 2 OR user_id = 7": "UPDATE `orders_0` AS orders SET paid = 1 WHERE user_id = 2 OR user_id = 7",
	} {
		to, err := of(own(m.Sharing(1)), text)
		if err != nil || len(to.Targets()) != 2 {
			t.Errorf("%s: %+v, %v", text, to, err)
			continue
		}
		var got string
		if to.Kind == plan.Scatter {
			got = to.Shards.Targets[0].Text
		} else {
			got = to.Writes.Parts[0].Text
		}
		if got != want {
			t.Errorf("%s is\n%s, want\n%s", text, got, want)
		}
	}
	for _, text := range []string{"UPDATE orders SET paid = 1 WHERE user_id IN (0, 1)", "SELECT id FROM orders WHERE user_id IN (0, 1) FOR UPDATE", "SELECT id FROM orders FOR UPDATE", "SELECT a.id FROM orders a LEFT JOIN orders b USING (user_id)", "UPDATE orders SET paid = 1"} {
		if _, err := of(own(m.Sharing(1)), text); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := of(own(m.Holding(1)), "SELECT id FROM orders"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Error(err)
	}
}

// A slot that is held may have rows elsewhere already that others have changed since, also if one target has all slots by this map.
func TestAStatementForAllShardsIsRefusedWhileSlotsAreHeldIfOneTargetHasAllOfThem(t *testing.T) {
	at := sharding.Target{DB: "a", Table: "orders_0"}
	m, err := sharding.MapOf(at, at)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(m sharding.Map, text string) error {
		r, err := sharding.New(sharding.DBs{"a": closed(t)}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: m, Lookups: []sharding.Lookup{{Column: "code", Table: "orders_by_code"}}})
		if err != nil {
			t.Fatal(err)
		}
		st := sqlparse.Parse(text, sqlparse.Dialect{Family: sqlparse.MySQL})
		_, err = plan.Of(st, r.Snapshot(), analysis.Options{Quote: func(name string) string { return "`" + name + "`" }}).Bind(nil, sharding.Hint{All: true})
		return err
	}
	for _, text := range []string{"SELECT SUM(paid) FROM orders", "SELECT paid FROM orders WHERE id = 5", "SELECT paid FROM orders WHERE code = 'x'", "UPDATE orders SET paid = 1", "DELETE FROM orders WHERE id = 5"} {
		if err := bound(m.Holding(1).Sharing(1), text); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", text, err)
		}
		if err := bound(m.Sharing(1), text); err != nil {
			t.Errorf("%s while rows are copied: %v", text, err)
		}
		if err := bound(m.While(func() bool { return false }), text); !errors.Is(err, sharding.ErrStaleMap) {
			t.Errorf("%s after the end of the lease: %v", text, err)
		}
	}
}
