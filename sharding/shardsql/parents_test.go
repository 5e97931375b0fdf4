// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// families are tables over two databases, and one database with the same rows.
type families struct{ routed, plain *sql.DB }

// openFamilies creates the tables: each definition has a %s for the name.
func openFamilies(t testing.TB, definitions map[string]string, tables ...sharding.Table) families {
	t.Helper()
	open := files(t)
	plain, dbs := open("plain.db"), sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	for i, table := range tables {
		m, err := sharding.Spread([]string{"a", "b"}, 4, table.Name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		tables[i].Rule, tables[i].Map = sharding.Mod(4), m
		exec(t, plain, fmt.Sprintf(definitions[table.Name], table.Name))
		for _, at := range m.Targets() {
			exec(t, dbs[at.DB], fmt.Sprintf(definitions[table.Name], at.Table))
		}
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return families{routed, plain}
}

// exec executes a statement on both, which must affect the same number of rows.
func (f families) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	here, err := exec(t, f.routed, text, args...).RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	if there, err := exec(t, f.plain, text, args...).RowsAffected(); err != nil || here != there {
		t.Errorf("%s: %d rows, one table has %d, %v", text, here, there, err)
	}
}

// compare compares the rows of a query, in order if it sorts them.
func (f families) compare(t testing.TB, text string, args ...any) {
	t.Helper()
	here, err := answer(within(t), f.routed, text, args...)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	there, err := answer(within(t), f.plain, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !strings.Contains(text, "ORDER BY") {
		slices.Sort(here)
		slices.Sort(there)
	}
	if !slices.Equal(here, there) {
		t.Errorf("%s: %q, one table has %q", text, here, there)
	}
}

func TestNULLsOfAColumnThatLeadsToTheShardAreOneValue(t *testing.T) {
	f := openFamilies(t, map[string]string{"notes": "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT)"},
		sharding.Table{Name: "notes", Key: "user_id", Also: []sharding.Alt{{Column: "order_id", Rule: sharding.Mod(4)}}})
	for id := range 12 {
		var order any
		if id%3 == 0 {
			order = id
		}
		f.exec(t, "INSERT INTO notes (id, user_id, order_id) VALUES (?, ?, ?)", id, id, order)
	}
	for _, text := range []string{
		"SELECT DISTINCT order_id FROM notes",
		"SELECT DISTINCT order_id FROM notes ORDER BY order_id LIMIT 2",
		"SELECT order_id FROM notes WHERE id < 6 UNION SELECT order_id FROM notes",
		"SELECT COUNT(*) FROM (SELECT DISTINCT order_id FROM notes) AS d",
		"SELECT order_id, COUNT(*) FROM notes GROUP BY order_id",
		"SELECT COUNT(DISTINCT order_id) FROM notes",
		"SELECT COUNT(*) FROM (SELECT order_id, COUNT(*) AS n FROM notes GROUP BY order_id) AS g",
	} {
		f.compare(t, text)
	}
}
