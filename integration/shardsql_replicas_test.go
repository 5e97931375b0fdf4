// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A subquery is executed first, as a statement of its own. A copy lags behind the rows that the query locks.
func TestNoPartOfAQueryThatLocksRowsIsReadFromACopy(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, db string) *sql.DB{
		"MariaDB":    func(t *testing.T, db string) *sql.DB { return server.ShareMariaDB(t).Open(t, db) },
		"MySQL":      func(t *testing.T, db string) *sql.DB { return server.ShareMySQL(t).Open(t, db) },
		"PostgreSQL": func(t *testing.T, db string) *sql.DB { return server.SharePostgres(t).Open(t, db) },
	} {
		t.Run(name, func(t *testing.T) {
			origin, behind := open(t, "copied"), open(t, "behind")
			for _, db := range []*sql.DB{origin, behind} {
				for _, table := range []string{"orders_0", "orders_1"} {
					database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, total BIGINT NOT NULL)")
				}
				database.Exec(t, db, "INSERT INTO orders_0 VALUES (2, 2, 10)")
			}
			database.Exec(t, origin, "INSERT INTO orders_1 VALUES (1, 1, 20)")
			m, err := sharding.Spread([]string{"a"}, 2, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"a": origin}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: origin, Replicas: map[string][]*sql.DB{"a": {behind}}})
			t.Cleanup(func() { _ = routed.Close() })
			for query, want := range map[string]int64{
				"SELECT id FROM orders WHERE total = (SELECT MAX(total) FROM orders)":                                                            2,
				"SELECT id FROM orders WHERE total = (SELECT MAX(total) FROM orders) FOR UPDATE":                                                 1,
				"SELECT id FROM orders WHERE user_id = 1 AND total > (SELECT AVG(total) FROM orders) FOR UPDATE":                                 1,
				"SELECT id FROM orders WHERE user_id IN (1, 2) AND total = (SELECT total FROM orders WHERE user_id = 1 FOR UPDATE)":              1,
				"SELECT id FROM orders WHERE total >= (SELECT MAX(total) FROM orders WHERE total >= (SELECT AVG(total) FROM orders)) FOR UPDATE": 1,
			} {
				var id int64
				if err := routed.QueryRowContext(t.Context(), query).Scan(&id); err != nil || id != want {
					t.Errorf("%s: %d (%v), want %d", query, id, err, want)
				}
			}
		})
	}
}
