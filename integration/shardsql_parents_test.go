// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// orderTwins are orders of users and their items over two databases, and the same tables in one. The items refer to orders by ids
// of this type, which lead to no shard.
func orderTwins(t *testing.T, open namedDatabase, idType string) (routed, whole *sql.DB) {
	t.Helper()
	kind, _, _ := strings.Cut(strings.ToLower(idType), "(")
	dbs, whole := sharding.DBs{"a": open(t, "parents_a_"+kind), "b": open(t, "parents_b_"+kind)}, open(t, "parents_whole_"+kind)
	var tables []sharding.Table
	for name, columns := range map[string]string{
		"orders": " (id " + idType + " NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, total BIGINT NOT NULL)",
		"items":  " (number BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, order_id " + idType + ", amount BIGINT NOT NULL, UNIQUE (order_id, amount))",
	} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
		}
		database.Exec(t, whole, "CREATE TABLE "+name+columns)
		table := sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: m, Group: "shop"}
		if name == "items" {
			table.Parents = []sharding.Parent{{Column: "order_id", Table: "orders"}}
		}
		tables = append(tables, table)
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	for _, on := range []*sql.DB{routed, whole} {
		for order := range 12 {
			id := fmt.Sprintf("'%08d-0000-4000-8000-000000000000'", order)
			if idType == "BIGINT" {
				id = strconv.Itoa(order)
			}
			database.Exec(t, on, fmt.Sprintf("INSERT INTO orders (id, user_id, total) VALUES (%s, %d, 0)", id, order*7%5))
			for i := range order % 4 {
				database.Exec(t, on, fmt.Sprintf("INSERT INTO items (number, user_id, order_id, amount) VALUES (%d, %d, %s, %d)", 10*order+i, order*7%5, id, i))
			}
			database.Exec(t, on, fmt.Sprintf("INSERT INTO items (number, user_id, order_id, amount) VALUES (%d, %[1]d, NULL, 1)", 1000+order))
		}
	}
	return routed, whole
}

// rowTexts returns the rows of a query as texts, in order.
func rowTexts(t *testing.T, on interface {
	Query(text string, args ...any) (*sql.Rows, error)
}, text string, args ...any) (all []string) {
	t.Helper()
	rows, err := on.Query(text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(values))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func TestRowsAreJoinedWithTheirParentsOnServers(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		idTypes := []string{"BIGINT", "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin"}
		if name == "PostgreSQL" {
			idTypes = []string{"BIGINT", "UUID", "TEXT"}
		}
		for _, idType := range idTypes {
			t.Run(name+", "+idType, func(t *testing.T) {
				routed, whole := orderTwins(t, open, idType)
				first := rowTexts(t, whole, "SELECT MIN(CAST(id AS CHAR(36))) FROM orders WHERE user_id = 4")[0]
				id := strings.Fields(strings.Trim(first, "[{}]"))[0]
				if idType != "BIGINT" {
					id = "'" + id + "'"
				}
				for _, text := range []string{
					"SELECT o.id, i.number FROM orders o JOIN items i ON i.order_id = o.id WHERE o.user_id = 4",
					"SELECT o.id, i.number FROM orders o LEFT JOIN items i ON i.order_id = o.id",
					"SELECT o.total, COUNT(*), SUM(i.amount) FROM orders o JOIN items i ON i.order_id = o.id GROUP BY o.total",
					"SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.amount > 0)",
					"SELECT COUNT(DISTINCT order_id) FROM items",
					"UPDATE orders SET total = (SELECT COALESCE(SUM(amount), 0) FROM items WHERE items.order_id = orders.id) WHERE user_id = 4",
					"UPDATE items SET amount = amount + 100 WHERE order_id = " + id,
					"UPDATE items SET amount = amount + 100 WHERE user_id = 4 AND amount > 1",
					"DELETE FROM items WHERE order_id IN (SELECT id FROM orders WHERE user_id = 2)",
					"DELETE FROM items WHERE order_id = " + id + " AND amount > 101",
				} {
					if strings.HasPrefix(text, "SELECT") {
						if here, there := rowTexts(t, routed, text), rowTexts(t, whole, text); !slices.Equal(here, there) {
							t.Errorf("%s: %q, one table has %q", text, here, there)
						}
						continue
					}
					database.Exec(t, routed, text)
					database.Exec(t, whole, text)
					for _, left := range []string{"SELECT * FROM orders", "SELECT * FROM items"} {
						if here, there := rowTexts(t, routed, left), rowTexts(t, whole, left); !slices.Equal(here, there) {
							t.Errorf("%s: %q, one table has %q", text, here, there)
						}
					}
				}
			})
		}
	}
}

// A transaction of MySQL or MariaDB that has read before sees the new items only in a read that locks them.
func TestATransactionWritesNewerRowsOfAParent(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := orderTwins(t, open, "BIGINT")
			for _, on := range []*sql.DB{routed, whole} {
				database.Exec(t, on, "INSERT INTO items (number, user_id, order_id, amount) VALUES (600, 5, 3, 50)") // of another user of the slot
				tx, err := on.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				rowTexts(t, tx, "SELECT * FROM items WHERE user_id = 1")
				for number := range 3 {
					database.Exec(t, on, fmt.Sprintf("INSERT INTO items (number, user_id, order_id, amount) VALUES (%d, 3, 4, %[1]d)", 500+number))
				}
				result, err := tx.Exec("UPDATE items SET amount = amount + 10 WHERE order_id IN (4, 3)") // of two shards of the database
				if err != nil {
					t.Fatal(err)
				}
				if n, err := result.RowsAffected(); err != nil || n != 7 {
					t.Errorf("%d rows are affected, %v", n, err)
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			if here, there := rowTexts(t, routed, "SELECT * FROM items"), rowTexts(t, whole, "SELECT * FROM items"); !slices.Equal(here, there) {
				t.Errorf("%q, one table has %q", here, there)
			}
		})
	}
}
