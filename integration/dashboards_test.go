// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// The queries of a shop's dashboards are answered over several shards as one table answers them. A query behind the line
// "-- refused" in its file is refused.
func TestDashboardsOfAShopShowWhatOneTableShows(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := shops(t, open)
			own := "mysql.sql"
			if name == "PostgreSQL" {
				own = "postgres.sql"
			}
			for _, file := range []string{"any.sql", own} {
				show(t, routed, whole, filepath.Join("testdata", "dashboards", file))
			}
		})
	}
}

// The merge computes HAVING, but PostgreSQL says which types its functions and operators take.
func TestAConditionOfGroupsThatPostgreSQLRefusesIsRefused(t *testing.T) {
	routed, whole := shops(t, server.SharePostgres(t).Open)
	for _, condition := range []string{"ROUND(AVG(total::double precision), 2) > 3", "(MAX(id) < 30) > 1", "COUNT(*) > 3 AND (COUNT(*) > 4) = 1"} {
		for _, db := range []*sql.DB{routed, whole} {
			_, err := selects.Query{Text: "SELECT status, COUNT(*) FROM orders GROUP BY status HAVING " + condition}.Answer(t.Context(), db, nil)
			if err == nil || !strings.Contains(err.Error(), "42883") {
				t.Errorf("%s: %v", condition, err)
			}
		}
	}
}

// MariaDB sorts a group by a column that differs among its rows. It takes the value of one of them, and each shard does so.
func TestGroupsOfMariaDBAreSortedByAColumnThatIsNotOfTheGroup(t *testing.T) {
	routed, whole := shops(t, server.ShareMariaDB(t).Open)
	for _, db := range []*sql.DB{routed, whole} { // the first items of these orders are not the least ones
		database.Exec(t, db, "INSERT INTO items (id, user_id, order_id, sku, qty) SELECT id + 100, user_id, order_id, 'A', -qty FROM items WHERE user_id = 3")
		database.Exec(t, db, "INSERT INTO items (id, user_id, order_id, sku, qty) SELECT id + 200, user_id, order_id, 'B', -qty FROM items WHERE user_id = 6")
	}
	const of = " FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id GROUP BY o.id ORDER BY "
	for _, query := range []string{
		"SELECT o.id, COUNT(*) AS n" + of + "i.sku, o.id", "SELECT o.id, i.sku" + of + "i.sku DESC, o.id LIMIT 15", "SELECT o.id, LOWER(i.sku) AS l" + of + "LOWER(i.sku) DESC, o.id",
		"SELECT o.id, COUNT(*) AS n" + of + "i.qty + 1, o.id", "SELECT user_id, COUNT(*) AS n FROM items GROUP BY user_id ORDER BY sku DESC, user_id",
	} {
		q := selects.Query{Text: query}
		want, err := q.Answer(t.Context(), whole, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := q.Answer(t.Context(), routed, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v\nwant %q", query, got, err, want)
		}
	}
}

// MariaDB's MIN of what is no date may be 0000-00-00, by which a shard would distinguish groups of NULL.
func TestATextThatIsNoDateIsNoneOfTheDatesThatAreCounted(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := shops(t, open)
			for _, of := range []string{"CAST(status AS DATE)", "CAST(status AS DATETIME)", "CAST(status AS TIME)", "CAST(id + 20240100 AS DATE)"} {
				q := selects.Query{Text: "SELECT COUNT(DISTINCT " + of + ") FROM orders"}
				want, err := q.Answer(t.Context(), whole, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := q.Answer(t.Context(), routed, nil); !slices.Equal(got, want) && (name != "MariaDB" || !errors.Is(err, sharding.ErrUnmergeable)) {
					t.Errorf("%s: %q, %v, want %q", q.Text, got, err, want)
				}
			}
		})
	}
}

// No shard has the column of a count of combined rows, and PostgreSQL's do not compute a quotient that the merge computes.
func TestACombinedColumnIsDescribedLikeThatOfOneTable(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := shops(t, open)
			queries := []string{"SELECT COUNT(*) FROM (SELECT status FROM orders GROUP BY status) AS t", "WITH t AS (SELECT DISTINCT coupon FROM orders) SELECT count(*) AS n FROM t"}
			if name == "PostgreSQL" {
				queries = append(queries, "SELECT CAST(SUM(total) / 7 AS DECIMAL(20,2)) AS d FROM orders")
			}
			for _, query := range queries {
				if got, want := answerOf(t, routed, query), answerOf(t, whole, query); got != want {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
			}
		})
	}
}

// A random number is that of a row, whatever database it is in. Of 400 samples of 3 of 60 rows, each row is in 20 on
// average.
func TestARandomSampleIsDrawnFromTheRowsOfAllShards(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := shops(t, open)
			random := "RAND()"
			if name == "PostgreSQL" {
				random = "random()"
			}
			read := func(query string) []string {
				t.Helper()
				rows, err := selects.Query{Text: query}.Answer(t.Context(), routed, nil)
				if err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				return rows[1:] // behind the name of the column
			}
			drawn := map[string]int{}
			for range 400 {
				sample := read("SELECT id FROM orders ORDER BY " + random + " LIMIT 3")
				if len(sample) != 3 || len(slices.Compact(slices.Sorted(slices.Values(sample)))) != 3 {
					t.Fatalf("%q", sample)
				}
				for _, row := range sample {
					drawn[row]++
				}
			}
			for row, n := range drawn {
				if len(drawn) != 60 || n > 60 {
					t.Fatalf("%s is in %d samples, and %d rows are in any", row, n, len(drawn))
				}
			}
			all := read("SELECT * FROM orders ORDER BY " + random + " DESC")
			if again := read("SELECT * FROM orders ORDER BY " + random + " DESC"); len(all) != 60 || slices.Equal(all, again) {
				t.Errorf("%d rows, twice in the order %q", len(all), all)
			}
			if by := read("SELECT status FROM orders ORDER BY status, (" + random + ")"); len(by) != 60 || !slices.IsSorted(by) {
				t.Errorf("%q", by)
			}
		})
	}
}

func show(t *testing.T, routed, whole *sql.DB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	answered, refused, _ := strings.Cut(string(text), "-- refused\n")
	for query := range strings.Lines(answered) {
		q := selects.Query{Text: strings.TrimSpace(query), Open: !strings.Contains(query, " ORDER BY ")}
		want, err := q.Answer(t.Context(), whole, nil)
		if err != nil {
			t.Fatalf("%s: %v", q.Text, err)
		}
		if got, err := q.Answer(t.Context(), routed, nil); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v\nwant %q", q.Text, got, err, want)
		}
	}
	for query := range strings.Lines(refused) {
		q := selects.Query{Text: strings.TrimSpace(query)}
		if got, err := q.Answer(t.Context(), routed, nil); !errors.Is(err, sharding.ErrUnmergeable) {
			t.Errorf("%s: %q, %v; move it above the line", q.Text, got, err)
		}
	}
}

// shops returns a routed database with the orders and items of a shop, and one that has the same rows in one table each.
func shops(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	whole = open(t, "dashboard_whole")
	dbs := sharding.DBs{"a": open(t, "dashboard_a"), "b": open(t, "dashboard_b")}
	tables := map[string]string{
		"orders": " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, status VARCHAR(10), total DECIMAL(10,2), created_at TIMESTAMP NULL, coupon VARCHAR(10))",
		"items":  " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, sku VARCHAR(10), qty INT)",
	}
	var sharded []sharding.Option
	for name, columns := range tables {
		spread, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		database.Exec(t, whole, "CREATE TABLE "+name+columns)
		for _, at := range spread.Targets() {
			database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
		}
		sharded = append(sharded, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: spread, Group: "shop"})
	}
	router, err := sharding.New(dbs, sharded...)
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	for id := range 60 {
		coupon := fmt.Sprintf("'c%d'", id%5)
		if id%5 == 4 {
			coupon = "NULL"
		}
		for _, db := range []*sql.DB{whole, routed} {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders (id, user_id, status, total, created_at, coupon) VALUES (%d, %d, '%s', %d.%02d, '2024-01-%02d 0%d:00:00', %s)",
				id, id*7%11, []string{"paid", "open", "void"}[id%3], id*37%90, id, 1+id%6, id%9, coupon))
			if id%4 > 0 {
				database.Exec(t, db, fmt.Sprintf("INSERT INTO items (id, user_id, order_id, sku, qty) VALUES (%d, %d, %d, '%c', %d)", id, id*7%11, id, 'a'+id%4, id%5))
			}
		}
	}
	return routed, whole
}
