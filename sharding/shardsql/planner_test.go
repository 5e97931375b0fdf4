// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding/shardsql"
)

func TestAPlannerDecidesByTheColumnsOfOneDatabase(t *testing.T) {
	s := newShop(t)
	source := files(t)("source.db")
	exec(t, source, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, status TEXT NOT NULL, total INTEGER NOT NULL)")
	p, err := shardsql.NewPlanner(t.Context(), s.router, source)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]shardsql.Kind{
		"SELECT user_id, SUM(total) FROM orders GROUP BY user_id": shardsql.Scatter,
		"SELECT COUNT(DISTINCT status) FROM orders":               shardsql.Scatter,
		"SELECT id FROM orders ORDER BY status LIMIT 3":           shardsql.Scatter,
		"SELECT id FROM orders ORDER BY colour LIMIT 3":           shardsql.Refused, // there is no such column
		"UPDATE orders SET user_id = 8 WHERE user_id = 7":         shardsql.Refused,
		"SELECT 1": shardsql.Home,
	} {
		e, err := p.Plan(t.Context(), text)
		if err != nil || e.Kind != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	for text, unparsed := range map[string]bool{"SELEC 1": true, "SELECT * FROM order": true, "SELECT 1": false, "DELETE FROM coupons": false} {
		if e, err := p.Plan(t.Context(), text); err != nil || e.Kind != shardsql.Home || e.Unparsed != unparsed {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	exec(t, source, "CREATE TABLE coupons (code TEXT PRIMARY KEY)")
	if p, err = shardsql.NewPlanner(t.Context(), s.router, source); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Plan(t.Context(), "SELECT id FROM orders ORDER BY status LIMIT 3"); err != nil {
		t.Fatal(err)
	}
	if absent := p.Absent(); len(absent) != 0 {
		t.Errorf("absent: %v", absent)
	}
	if e, err := p.Plan(t.Context(), "SELECT id FROM ordrs WHERE user_id = 5"); err != nil || e.Kind != shardsql.Home || !slices.Equal(p.Absent(), []string{"ordrs"}) {
		t.Errorf("%+v, %v, %v", e, err, p.Absent())
	}
	exec(t, source, "DROP TABLE orders")
	if e, err := p.Plan(t.Context(), "SELECT id FROM orders ORDER BY status LIMIT 3"); err != nil || e.Kind != shardsql.Scatter {
		t.Errorf("it reads a table twice: %+v, %v", e, err)
	}
	again, err := shardsql.NewPlanner(t.Context(), s.router, source)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := again.Plan(t.Context(), "SELECT id FROM orders ORDER BY status LIMIT 3"); err != nil || e.Kind != shardsql.Undecided || !slices.Equal(again.Absent(), []string{"orders"}) {
		t.Errorf("%+v, %v", e, err)
	}
	shards, err := shardsql.NewPlanner(t.Context(), s.router, s.dbs["b"])
	if err != nil {
		t.Fatal(err)
	}
	if e, err := shards.Plan(t.Context(), "SELECT id FROM orders ORDER BY id LIMIT 3"); err != nil || e.Kind != shardsql.Scatter || len(shards.Absent()) != 0 {
		t.Errorf("by the columns of a shard: %+v, %v", e, err)
	}
}
