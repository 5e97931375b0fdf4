// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// forms are queries of the shop whose numbers have another form if they are computed by other rules than those of the database.
// Any database answers those of "", and PostgreSQL answers neither those of MySQL nor those of MariaDB.
var forms = map[string][]string{
	"": {
		"SELECT status, COALESCE(SUM(id), 1e2), NULLIF(COUNT(*), 1e2) FROM orders GROUP BY status ORDER BY status",
		"SELECT NULLIF(COUNT(*), 2.5e-1) / 7, 60 - 100 / NULLIF(COUNT(*), 1e2) FROM orders",
		"SELECT status, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY status) AS more, LEAD(MAX(user_id), 2) OVER (ORDER BY status) AS behind FROM orders GROUP BY status ORDER BY status",
	},
	"MySQL": {
		"SELECT status, COALESCE(NULLIF(COUNT(*), 2.5e-1), 60) FROM orders GROUP BY status ORDER BY status",
	},
	"PostgreSQL": {
		"SELECT COALESCE(MAX(user_id), 1e2) / 7, COUNT(*) / CAST(2 AS numeric), CEIL(-2.5) - COUNT(*) FROM orders",
		"SELECT status, LAG(COUNT(*) + 1) OVER (ORDER BY status) / 4 AS x FROM orders GROUP BY status ORDER BY status",
		"SELECT CAST(SUM(id) * 1e2 AS DECIMAL(12,1)) FROM orders WHERE id < 9",
		"SELECT AVG(CASE WHEN id >= 0 THEN '-0'::float8 END), SUM(CASE WHEN id >= 0 THEN '-0'::float8 END) FROM orders",
		"SELECT SUM(CASE WHEN status = 'paid' THEN 1500000000 END) / 7, SUM(DISTINCT id % 3 + 2147483600) / 7, SUM(CASE WHEN status = 'paid' THEN 0000000001 ELSE 2147483648 END) / 7 FROM orders",
		"SELECT status, SUM(MAX(id::int) - 2147483648) OVER (ORDER BY MIN(id)) / 7 AS x FROM orders GROUP BY status ORDER BY x",
		"SELECT status, MAX(qty) * 2000000000 - LAG(MAX(qty) * 2000000000) OVER (ORDER BY status) AS d FROM orders JOIN items ON items.user_id = orders.user_id AND items.order_id = orders.id WHERE qty < 2 GROUP BY status ORDER BY status",
	},
}

// A number that the merge computes has the type, the digits and the sign that the database gives it, whatever its shards have.
func TestAComputedNumberHasTheFormThatOneTableGivesIt(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := shops(t, open)
			for kind, queries := range forms {
				if !strings.HasPrefix(strings.Replace(name, "MariaDB", "MySQL", 1), kind) {
					continue
				}
				for _, query := range queries {
					want, err := readAnswer(t.Context(), whole, query)
					if err != nil {
						t.Fatalf("%s: %v", query, err)
					}
					if got, err := readAnswer(t.Context(), routed, query); err != nil || got != want {
						t.Errorf("%s: %s, %v\nwant %s", query, got, err, want)
					}
				}
			}
		})
	}
}

// The shards' own numbers fit into these types, and those of all rows do not.
func TestANumberOfPostgreSQLThatDoesNotFitIntoItsTypeIsAnError(t *testing.T) {
	routed, whole := shops(t, server.SharePostgres(t).Open)
	for _, of := range []string{
		"COUNT(*)::int * 100000000", "1e0 * (COUNT(*)::int * 100000000)", "COUNT(*)::smallint * 1000::smallint",
		"MAX((user_id * 190000000)::int) - MIN((user_id * -190000000)::int)", "MAX((user_id * 1900)::smallint) - MIN((user_id * -1900)::smallint)",
		"MAX(user_id::int) + 2147483647", "MIN(-user_id::int) + -2147483648",
	} {
		for _, query := range []string{"SELECT " + of + " FROM orders", "SELECT COUNT(*) FROM orders HAVING " + of + " > 0"} {
			for _, db := range []*sql.DB{whole, routed} {
				if answer, err := readAnswer(t.Context(), db, query); err == nil || !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "overflow") {
					t.Errorf("%s: %s, %v", query, answer, err)
				}
			}
		}
	}
}

// stocks is one table, and a routed one with the same rows in two databases, of unsigned numbers that are smaller than the counts of
// their rows.
func stocks(t *testing.T, open func(database string) *sql.DB) (routed, whole *sql.DB) {
	t.Helper()
	const columns = " (id BIGINT PRIMARY KEY, big BIGINT UNSIGNED, few INT UNSIGNED)"
	whole = open("stock_whole")
	dbs := sharding.DBs{"a": open("stock_a"), "b": open("stock_b")}
	spread, err := sharding.Spread([]string{"a", "b"}, 4, "stock_%d")
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, whole, "DROP TABLE IF EXISTS stock")
	database.Exec(t, whole, "CREATE TABLE stock"+columns)
	for _, at := range spread.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "stock", Key: "id", Rule: sharding.Mod(4), Map: spread})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	for id := range 12 {
		for _, db := range []*sql.DB{whole, routed} {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO stock (id, big, few) VALUES (%d, %d, %d)", id, id%3, id%2))
		}
	}
	return routed, whole
}

// MySQL and MariaDB compute with unsigned numbers what must not be negative, unless the sql_mode has NO_UNSIGNED_SUBTRACTION.
func TestADifferenceOfUnsignedNumbersBelowZeroIsTheErrorOfOneTable(t *testing.T) {
	refuses := []string{
		"SELECT MAX(few) - COUNT(*) FROM stock WHERE id >= ?", "SELECT COUNT(*) FROM stock WHERE id >= ? HAVING MIN(big) - COUNT(*) < 0",
		"SELECT few, few - COUNT(*) FROM stock WHERE id >= ? GROUP BY few ORDER BY few", "SELECT 3 - COUNT(*) + MAX(big) - COUNT(*) AS x FROM stock WHERE id >= ?",
	}
	alike := []string{
		"SELECT MAX(big) - MIN(big), MAX(few) + COUNT(*), SUM(big) - 100, COALESCE(MAX(few), 0) - COUNT(*) FROM stock WHERE id >= ?",
		"SELECT few, COUNT(*) - few, MIN(big) * 1.5 - 9 FROM stock WHERE id >= ? GROUP BY few ORDER BY few",
	}
	for name, m := range map[string]interface {
		Open(tb testing.TB, database string) *sql.DB
		DSN(database string) string
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		for params, refused := range map[string]bool{"": true, "interpolateParams=true": true, "sql_mode=%27NO_UNSIGNED_SUBTRACTION%27": false} {
			t.Run(name+"/"+params, func(t *testing.T) {
				routed, whole := stocks(t, func(database string) *sql.DB {
					m.Open(t, database)
					return opened(t, "mysql", m.DSN(database)+"?"+params)
				})
				for _, query := range append(refuses, alike...) {
					want, failed := readAnswer(t.Context(), whole, query, 0)
					got, err := readAnswer(t.Context(), routed, query, 0)
					if (failed != nil) != (err != nil) || got != want || refused && slices.Contains(refuses, query) != (err != nil) {
						t.Errorf("%s: %s, %v\nwant %s, %v", query, got, err, want, failed)
					}
				}
			})
		}
	}
}
