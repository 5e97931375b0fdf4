// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// subqueried are queries with subqueries of rows of all shards, or of the home database. Each ? is 3.
var subqueried = []string{
	"SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders)",
	"SELECT id FROM orders WHERE user_id = ? AND total > (SELECT AVG(total) FROM orders WHERE qty > ?) AND qty < ? + 90",
	"SELECT id FROM orders WHERE total = (SELECT MAX(total) FROM orders)",
	"SELECT id FROM orders WHERE price >= (SELECT AVG(price) FROM orders)",
	"SELECT id FROM orders WHERE price = (SELECT MAX(price) FROM orders)",
	"SELECT id FROM orders WHERE big = (SELECT MAX(big) FROM orders)",
	"SELECT id FROM orders WHERE big BETWEEN (SELECT MIN(big) FROM orders) AND (SELECT MAX(big) FROM orders WHERE id < 20)",
	"SELECT id, big - (SELECT MIN(big) FROM orders) AS more FROM orders",
	"SELECT id, total * (SELECT COUNT(*) FROM orders) AS more, total / (SELECT SUM(qty) FROM orders) AS part FROM orders",
	"SELECT (SELECT COUNT(*) FROM orders) * 10000000000 AS n, (SELECT MAX(total) FROM orders WHERE qty = ?) AS m FROM users WHERE id = ?",
	"SELECT (SELECT COUNT(*) FROM orders) AS n",
	"SELECT COALESCE((SELECT MAX(total) FROM orders WHERE id < 0), 7) AS n",
	"SELECT id FROM orders WHERE qty = (SELECT qty FROM orders WHERE id < 0)",
	"SELECT id FROM orders WHERE user_id IN (SELECT id FROM users WHERE vip = 1)",
	"SELECT id FROM orders WHERE user_id = (SELECT id FROM users WHERE name = 'user 4')",
	"SELECT COUNT(*) AS n FROM orders WHERE user_id NOT IN (SELECT id FROM users WHERE vip = 1)",
	"SELECT COUNT(*) AS n FROM orders WHERE NOT user_id IN (SELECT id FROM users WHERE vip = 1) AND NOT qty = (SELECT MAX(qty) FROM orders)", // as gorm's Not
	"SELECT id FROM orders WHERE user_id IN (SELECT id FROM users WHERE vip = 9)",
	"SELECT id FROM orders WHERE user_id NOT IN (SELECT id FROM users WHERE vip = 9)",
	"SELECT id FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 50)",
	"SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders WHERE qty > ?)",
	"SELECT id FROM users WHERE id NOT IN (SELECT qty FROM orders)",
	"SELECT id FROM orders WHERE id IN (SELECT MAX(id) FROM orders GROUP BY qty)",
	"SELECT id FROM orders WHERE total IN (SELECT MAX(total) FROM orders GROUP BY user_id)",
	"SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders WHERE user_id IN (SELECT id FROM users WHERE vip = 1))",
	"SELECT user_id, SUM(total) AS t FROM orders GROUP BY user_id HAVING SUM(total) > (SELECT AVG(total) FROM orders)",
	"WITH users AS (SELECT 5 AS id) SELECT o.id FROM orders o WHERE o.user_id IN (SELECT id FROM users)", // not the table users
	"SELECT qty, COUNT(*) * 100 / (SELECT COUNT(*) FROM orders) AS part FROM orders GROUP BY qty",
	"SELECT CASE WHEN total > (SELECT AVG(total) FROM orders) THEN 1 ELSE 0 END AS above, id FROM orders",
	"SELECT id FROM orders WHERE user_id = ? UNION ALL SELECT id FROM orders WHERE id > (SELECT MAX(user_id) FROM orders) + ?",
	"SELECT d.id FROM (SELECT id, qty FROM orders WHERE total > (SELECT AVG(total) FROM orders)) AS d WHERE d.qty < ?",
	"SELECT (SELECT SUM(qty) FROM orders) - big AS n FROM orders",
	"SELECT id FROM orders WHERE big = (SELECT MAX(price) + 9007199254740992 FROM orders WHERE id = 0)", // as floats
	"SELECT id FROM orders WHERE total < (SELECT MAX(price) FROM orders)",
	// MySQL compares more digits of an average than it shows: 2.6667 is greater.
	"SELECT id FROM orders WHERE near > (SELECT AVG(id) FROM orders WHERE id IN (1, ?, 4))",
	"SELECT id FROM orders WHERE -near < (SELECT AVG(-id) FROM orders WHERE id IN (1, ?, 4))",
	"SELECT id FROM orders WHERE near > (SELECT AVG(near) FROM orders WHERE id < 0)",
	"SELECT a.id FROM orders a JOIN orders b ON a.user_id = b.user_id AND b.id = (SELECT MAX(id) FROM orders)",
	"SELECT SUM(CASE WHEN total > (SELECT MIN(total) + 20 FROM orders) THEN 1 ELSE 0 END) AS n FROM orders",
	"SELECT id FROM orders WHERE part = (SELECT MIN(total) FROM orders WHERE total < 1)",
	"SELECT id FROM users WHERE spent IN (SELECT id FROM orders WHERE id < 20)",
	"SELECT id, spent IN (SELECT qty FROM orders WHERE id = 11) AS found FROM users",
	"SELECT id FROM users WHERE spent NOT IN (SELECT qty FROM orders)",
	"SELECT id FROM users WHERE id + 1 IN (SELECT qty FROM orders)",
	"SELECT id, COALESCE(part, (SELECT MAX(id) FROM orders)) AS x, COALESCE(part, (SELECT MAX(qty) FROM orders)) AS y FROM users",
	"SELECT part FROM users UNION ALL SELECT (SELECT MAX(id) FROM orders) AS x FROM users WHERE id = 2",
	"SELECT id, part FROM users WHERE id < (SELECT COUNT(*) FROM orders WHERE qty > ?)", // a FLOAT of a table at home, prepared
}

// related are queries of rows in the order of a subquery that depends on each. They have no other order, so the
// places of rows are compared by LIMIT.
var related = []string{
	"SELECT id, (SELECT COUNT(*) FROM orders i WHERE i.user_id = o.user_id AND i.qty < o.qty AND i.qty > ?) AS n FROM orders o ORDER BY n DESC, id LIMIT 9 OFFSET 4",
	"SELECT id FROM orders o ORDER BY (SELECT SUM(total) FROM orders i WHERE i.user_id = o.user_id AND i.id <> o.id) DESC, id LIMIT 11",
	"SELECT id FROM orders o WHERE id <> ? ORDER BY COALESCE((SELECT SUM(qty) FROM orders i WHERE i.user_id = o.user_id AND i.id < o.id), ?), id DESC LIMIT 13",
	"SELECT DISTINCT user_id, (SELECT COUNT(i.qty) FROM orders i WHERE i.user_id = o.user_id AND i.id > ?) AS n FROM orders o",
	"SELECT o.user_id, (SELECT COUNT(*) FROM orders i WHERE i.user_id = o.user_id AND i.id > o.id) AS n FROM orders o JOIN orders p ON p.user_id = o.user_id ORDER BY n, o.id LIMIT 20",
}

// relatedTexts are queries in the order of a column of a row that each row determines.
var relatedTexts = []string{
	"SELECT id, (SELECT note FROM orders i WHERE i.user_id = o.user_id AND i.id > o.id ORDER BY i.id LIMIT 1) AS next FROM orders o WHERE id < 32 ORDER BY next LIMIT 7",
	"SELECT id FROM orders o ORDER BY (SELECT MAX(price) FROM orders i WHERE i.user_id = o.user_id AND i.id <> o.id) DESC, id LIMIT 7",
}

// divided are queries with an average or a quotient of decimals that has more digits than its text.
var divided = []string{
	"SELECT id, (SELECT AVG(qty) FROM orders) / 7 AS n FROM users",
	"SELECT id FROM orders WHERE total > (SELECT AVG(total) * 2 FROM orders)",
	"SELECT id FROM orders WHERE total IN (SELECT SUM(total) / 3 FROM orders)",
}

// aliased are queries whose order has aliases in expressions, which PostgreSQL does not know.
var aliased = []string{
	"SELECT id, qty AS q, (SELECT MAX(i.total) FROM orders i WHERE i.user_id = o.user_id AND i.id < o.id) AS most FROM orders o ORDER BY most IS NULL, most DESC, q IS NOT NULL, q * 2, id LIMIT 17",
	"SELECT id, CONCAT(note, 'x') AS t, id % 3 AS k FROM orders ORDER BY FIELD(k, 2, 0, 1), t > 'n3', -k, id LIMIT 17 OFFSET 5",
}

// converted are queries whose numbers MySQL and MariaDB would convert to the type of a column beside them.
var converted = []string{
	"SELECT id FROM orders WHERE made = (SELECT MAX(vip) FROM users)",
	"SELECT id FROM orders WHERE made > (SELECT MAX(vip) FROM users)",
	"SELECT id FROM orders WHERE at > (SELECT MAX(vip) + 240100 FROM users)",
	"SELECT id FROM orders WHERE at BETWEEN (SELECT MIN(vip) + 240101 FROM users) AND (SELECT MAX(vip) + 240101 FROM users)",
	"SELECT id FROM years WHERE user_id = (SELECT MIN(user_id) + 2 FROM orders)", // named like the sharding key
	"SELECT id FROM years WHERE user_id > (SELECT MIN(user_id) + 2 FROM orders)",
	"SELECT user_id, CASE WHEN made = (SELECT MAX(vip) FROM users) THEN COUNT(*) ELSE 0 END AS n FROM orders GROUP BY user_id, made",
	"SELECT SUM(CASE WHEN made = (SELECT MAX(vip) FROM users) THEN 1 ELSE 0 END) AS n FROM orders",
	"SELECT MAX(made) AS m, MAX(made) = (SELECT MAX(vip) FROM users) AS x FROM orders GROUP BY user_id",
}

// unlisted are queries with a list of numbers that MySQL and MariaDB would convert, or compare as floats.
var unlisted = []string{
	"SELECT id FROM orders WHERE COALESCE(at, NULL) IN (SELECT vip + 20240100 FROM users)",
	"SELECT id FROM orders WHERE CASE WHEN id > 0 THEN at END IN (SELECT vip + 20240100 FROM users)",
	"SELECT id FROM orders WHERE made IN (SELECT vip FROM users)",
	"SELECT id FROM years WHERE user_id IN (SELECT user_id FROM orders)",
	"SELECT id FROM orders WHERE price IN (SELECT big FROM orders)",
	"SELECT id FROM orders WHERE price + 9e15 IN (SELECT big FROM orders)",
	"SELECT user_id FROM orders GROUP BY user_id HAVING MAX(user_id) IN (SELECT price FROM orders)",
	"SELECT id FROM orders WHERE id IN (SELECT price FROM orders)",
	"SELECT id, part FROM users WHERE name NOT IN (SELECT note FROM orders)", // arguments would have it prepared
}

// listed are queries of PostgreSQL. It takes a list of literals for reals beside a real, but not a subquery.
var listed = []string{
	"SELECT id FROM orders WHERE part IN (SELECT total - 0.27 FROM orders)",
	"SELECT user_id FROM orders GROUP BY user_id HAVING MAX(part) IN (SELECT total - 0.27 FROM orders)",
	"SELECT id FROM orders WHERE price IN (SELECT big FROM orders)",
	"SELECT id FROM orders WHERE id IN (SELECT price FROM orders)",
	"SELECT id, part FROM users WHERE name NOT IN (SELECT note FROM orders)",
}

func TestSubqueriesOfRowsOfOtherDatabasesAreExecutedFirst(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) { subqueriesAreExecutedFirst(t, open, name == "PostgreSQL") })
	}
}

func subqueriesAreExecutedFirst(t *testing.T, open namedDatabase, postgres bool) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	double, big, times := "DOUBLE", "BIGINT UNSIGNED", ", made YEAR DEFAULT 2002, at DATE DEFAULT '2024-01-02', part FLOAT DEFAULT 0.1"
	queries := slices.Concat(subqueried, converted, related, relatedTexts, aliased)
	if postgres {
		double, big, times, queries = "DOUBLE PRECISION", "NUMERIC(20)", ", part REAL DEFAULT 0.1", slices.Concat(subqueried, listed, related, relatedTexts[1:])
	}
	columns := " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, qty INT, total DECIMAL(12,2), price " + double + ", big " + big + ", note VARCHAR(20), near DECIMAL(12,6)" + times + ")"
	whole, home, dbs := open(t, "sub_whole"), open(t, "sub_home"), sharding.DBs{"a": open(t, "sub_a"), "b": open(t, "sub_b")}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	for _, table := range []string{"orders", "users", "years"} {
		database.Exec(t, whole, "DROP TABLE IF EXISTS "+table)
		database.Exec(t, home, "DROP TABLE IF EXISTS "+table)
	}
	database.Exec(t, whole, "CREATE TABLE orders"+columns)
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	defer func() { _ = routed.Close() }()
	for _, db := range []database.Execer{whole, routed} {
		database.Exec(t, db, "CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR(20), vip INT, spent INT, part REAL)")
		for id := range 9 {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO users (id, name, vip, spent) VALUES (%d, 'user %[1]d', %d, %d)", id, id%3, id*3))
		}
		if !postgres {
			database.Exec(t, db, "ALTER TABLE users MODIFY part FLOAT")
			database.Exec(t, db, "CREATE TABLE years (id BIGINT PRIMARY KEY, user_id YEAR)")
			database.Exec(t, db, "INSERT INTO years VALUES (1, 2002), (2, 2003)")
		}
		database.Exec(t, db, "UPDATE users SET part = 0.1 WHERE id < 5")
		database.Exec(t, db, "UPDATE users SET part = 16777216 WHERE id = 6")
		for id := range 40 {
			qty := strconv.Itoa(id % 7)
			if id == 11 {
				qty = "NULL"
			}
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders (id, user_id, qty, total, price, big, note, near) VALUES (%d, %d, %s, %d.37, %d / 7.0, 9007199254740993 + %[1]d, 'n%[1]d', %[6]s)", id, id%8, qty, id*id%97, id, map[bool]string{true: "2.6667", false: "1"}[id == 2]))
		}
	}
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, text := range queries {
		var args []any
		for strings.Contains(text, "?") && postgres {
			args = append(args, 3)
			text = strings.Replace(text, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		for range strings.Count(text, "?") {
			args = append(args, 3)
		}
		q := selects.Query{Text: text, Args: args, Open: true}
		want, err := q.Answer(t.Context(), whole, nil)
		if err != nil {
			t.Errorf("%s: one table: %v", text, err)
			continue
		}
		for where, db := range map[string]selects.Database{"one statement": routed, "in a transaction": tx} {
			if got, err := q.Answer(t.Context(), db, nil); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %s:\n%v (%v)\none table: %v", text, where, got, err, want)
			}
		}
	}
	unanswered := slices.Concat(divided, unlisted)
	if postgres {
		unanswered = nil
		const mismatch = "SELECT id FROM orders WHERE note = (SELECT qty FROM orders WHERE id < 0)" // NULL is a number, too
		for _, db := range []*sql.DB{whole, routed} {
			if err := db.QueryRow(mismatch).Scan(new(int)); err == nil || !strings.Contains(err.Error(), "42883") {
				t.Errorf("a text is compared with an integer: %v", err)
			}
		}
	}
	for _, text := range append(unanswered, []string{
		"SELECT id FROM orders WHERE note = (SELECT LOWER(MAX(note)) FROM orders)",                                 // a text of no column
		"SELECT id FROM orders o WHERE total > (SELECT AVG(total) FROM orders i WHERE i.qty = o.qty)",              // depends on the row
		"SELECT u.id FROM users u WHERE vip < (SELECT COUNT(*) FROM orders WHERE qty = vip)",                       // as well
		"SELECT id FROM orders WHERE qty = (SELECT qty FROM orders)",                                               // several rows
		"SELECT user_id FROM orders GROUP BY user_id HAVING 5 > (SELECT COUNT(*) FROM users WHERE id < COUNT(*))",  // its own aggregate
		"SELECT id FROM orders WHERE id > ANY ((SELECT id FROM users WHERE id = 3))",                               // no scalar
		"SELECT id FROM orders ORDER BY (SELECT COUNT(*) FROM orders), id LIMIT 1",                                 // a number would be a column
		"SELECT qty FROM orders GROUP BY qty, (SELECT COUNT(*) FROM orders)",                                       // as well
		"SELECT id FROM orders WHERE (user_id, qty) IN (SELECT user_id, qty FROM orders WHERE total > 9 LIMIT 99)", // two columns
	}...) {
		for where, db := range map[string]selects.Database{"one statement": routed, "in a transaction": tx} {
			if _, err := (selects.Query{Text: text}).Answer(t.Context(), db, nil); !errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrCrossShard) {
				t.Errorf("%s, %s: %v", text, where, err)
			}
		}
		if err := tx.QueryRow("SELECT COUNT(*) FROM orders").Scan(new(int)); err != nil {
			t.Fatalf("after the refusal of %s the transaction cannot go on: %v", text, err)
		}
	}
}
