// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
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
