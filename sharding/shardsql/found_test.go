// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"fmt"
	"reflect"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Each of these once returned another result than one table. Now the result is equal, or the query
// is refused.
func TestQueriesThatOnceHadOtherResultsAreEqualOrRefused(t *testing.T) {
	w := newTwin(t, 200)
	for _, query := range []string{
		"SELECT count(*) FROM (SELECT a.user_id AS x, b.user_id AS y FROM orders a, orders b) d",
		"SELECT count(*) FROM (SELECT a.user_id AS x, b.user_id AS y FROM orders a JOIN orders b ON b.id = a.id + 1) d",
		"SELECT d.y FROM (SELECT a.user_id AS x, b.user_id AS y FROM orders a JOIN orders b ON b.id = a.id + 1) d WHERE d.x = 5 ORDER BY d.y",
		"WITH d AS (SELECT a.user_id AS x, b.user_id AS y FROM orders a LEFT JOIN orders b ON b.id = a.id + 1) SELECT d.y FROM d WHERE d.x = 5 ORDER BY d.y",
		"SELECT count(*) FROM (SELECT a.*, b.user_id AS y FROM orders a JOIN orders b ON b.id = a.id + 1) d WHERE d.user_id = 5",
		"SELECT count(*) FROM (SELECT b.user_id AS y, a.* FROM orders a JOIN orders b ON b.id = a.id + 1) d WHERE d.user_id = 5",
		"SELECT id FROM orders WHERE user_id = 5 AND id NOT IN (SELECT i FROM (SELECT a.user_id AS x, b.user_id AS y, a.id AS i FROM orders a JOIN orders b ON b.id = a.id + 1) d WHERE d.x = 5) ORDER BY id",
		"SELECT count() FROM orders",
		"SELECT n FROM (SELECT count() n FROM orders) d",
		"SELECT count(*) FROM (SELECT user_id, count() n FROM orders) d",
		"SELECT (SELECT max(o.id)) FROM orders o",
		"SELECT (SELECT count(o.id) FROM orders p WHERE p.user_id = o.user_id) FROM orders o",
		"SELECT d.n FROM (SELECT user_id, group_concat(id) n FROM orders) d WHERE d.user_id = 1",
		"SELECT d.n FROM (SELECT user_id, (SELECT max(o.id)) n FROM orders o) d WHERE d.user_id = 16",
		"SELECT count(DISTINCT +word) FROM orders",
		"SELECT count(*) FROM (SELECT DISTINCT +word FROM orders) d",
		"SELECT lower(+word), count(*) FROM orders GROUP BY +word ORDER BY 1",
		"SELECT lower(word) FROM orders WHERE word > '' AND user_id IN (1, 18) ORDER BY +word LIMIT 1",
	} {
		w.sameOrRefused(t, query)
	}
}

// sameOrRefused fails if the rows of a query are other ones than those of one table.
func (w *twin) sameOrRefused(t *testing.T, query string) {
	t.Helper()
	want, err := texts(w.one, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if got, err := texts(w.routed, query); err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %.100v, one table has %.100v", query, got, want)
	}
}

func texts(db *sql.DB, query string) (all []string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v any
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		places := make([]any, len(columns))
		for i := range places {
			places[i] = new(any)
		}
		places[0] = &v
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(v))
	}
	return all, rows.Err()
}

// SQLite has three more names for its primary key.
func TestThePrimaryKeyIsNotWrittenByAnotherName(t *testing.T) {
	w := newTwin(t, 100)
	for _, query := range []string{
		"INSERT OR REPLACE INTO orders (rowid, user_id) VALUES (7, 5)",
		"INSERT OR IGNORE INTO orders (oid, user_id) VALUES (7, 1)",
		"INSERT INTO orders (rowid, user_id) VALUES (7, 2) ON CONFLICT DO UPDATE SET paid = 77",
		"INSERT INTO orders (id, user_id) VALUES (7, 4) ON CONFLICT (rowid) DO UPDATE SET paid = 77",
		"INSERT INTO orders (id, user_id) VALUES (7, 4) ON CONFLICT (id) DO UPDATE SET _rowid_ = 8",
		"UPDATE orders SET rowid = 7 WHERE user_id = 14",
	} {
		if _, err := w.routed.Exec(query); err == nil {
			t.Errorf("%s is accepted", query)
		}
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders WHERE id = 7"); n != 1 {
		t.Errorf("%d rows have the id", n)
	}
}

// A column of MySQL may be called so, and Plan knows no columns.
func TestAColumnOfMySQLMayBeCalledAsThePrimaryKeyOfSQLiteIs(t *testing.T) {
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "orders_0"})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:none?mode=memory")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	for dialect, kind := range map[string]shardsql.Kind{"mysql": shardsql.One, "sqlite": shardsql.Refused} {
		e, err := shardsql.Plan(router, dialect, "UPDATE orders SET oid = 1 WHERE user_id = 5")
		if err != nil || e.Kind != kind {
			t.Errorf("%s: %v, %v", dialect, e, err)
		}
	}
}

// All tables of shards are in the database that also has the table of the users.
func TestTablesOfTheHomeDatabaseAreJoinedWithSeveralShardsInIt(t *testing.T) {
	m, err := sharding.Spread([]string{"a"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	w := newTwinIn(t, m, 60)
	for _, db := range []*sql.DB{w.dbs["a"], w.one} {
		exec(t, db, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, vip INTEGER)")
		exec(t, db, "INSERT INTO users VALUES (0, 'x', 1), (1, 'a', 1), (2, 'b', 0), (5, 'c', 1), (40, 'd', 1), (3, 'A', 0), (4, 'a', 2)")
		exec(t, db, "CREATE VIEW titles AS SELECT id, name || '!' AS title, vip + 1 AS n FROM users")
	}
	for _, query := range []string{
		"SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id WHERE u.vip = 1 ORDER BY o.id",
		"SELECT o.id, u.name FROM orders o LEFT JOIN users u ON u.id = o.user_id ORDER BY o.id LIMIT 9",
		"SELECT COUNT(*), SUM(o.paid) FROM users u JOIN orders o ON u.id = o.user_id",
		"SELECT o.user_id, COUNT(u.name) FROM orders o JOIN users u ON u.id = o.user_id GROUP BY o.user_id ORDER BY o.user_id",
		"SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users WHERE vip = 1) OR paid = 2",
		"SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = o.user_id AND u.vip = 1) ORDER BY id",
		"SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id ORDER BY u.name DESC, o.id LIMIT 7",
		"SELECT o.id, u.title FROM orders o JOIN titles u ON u.id = o.user_id ORDER BY u.title, o.id DESC",
		"SELECT DISTINCT u.name FROM users u JOIN orders o ON o.user_id = u.id ORDER BY u.name",
		"SELECT u.name, COUNT(*) AS n, MAX(u.vip) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.name ORDER BY n DESC, u.name",
		"SELECT t.title, t.n, COUNT(*) FROM titles t JOIN orders o ON o.user_id = t.id GROUP BY t.title, t.n ORDER BY t.title, t.n",
	} {
		w.same(t, query)
	}
	for _, query := range []string{
		"SELECT u.id, o.id FROM users u LEFT JOIN orders o ON u.id = o.user_id",
		"SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE u.id = o.user_id)",
		"SELECT id FROM users u WHERE id NOT IN (SELECT user_id FROM orders o WHERE o.paid = u.vip)",
		"SELECT id, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) FROM users u",
		"SELECT id FROM users UNION ALL SELECT id FROM orders",
		"SELECT n FROM (SELECT COUNT(*) AS n FROM users) d, orders o WHERE o.paid = n",
		"SELECT COUNT(*) FROM users u WHERE u.vip = (SELECT MAX(paid) FROM orders o WHERE o.user_id = u.id)",
	} {
		w.sameOrRefused(t, query)
	}
}
