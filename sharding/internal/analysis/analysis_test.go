// SPDX-License-Identifier: Apache-2.0

package analysis_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"; nothing is opened

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
)

var (
	mysql    = analysis.Options{Reads: sqlparse.Dialect{Family: sqlparse.MySQL}, Merge: merge.Dialect{Engine: merge.MySQL}}
	postgres = analysis.Options{Reads: sqlparse.Dialect{Family: sqlparse.PostgreSQL}, Merge: merge.Dialect{Engine: merge.PostgreSQL}}
	sqlite   = analysis.Options{Reads: sqlparse.Dialect{Family: sqlparse.SQLite}, Merge: merge.Dialect{Engine: merge.SQLite}}
)

var whole = catalog.Column{Holds: catalog.Integers}

// schema describes orders and items, whose ids lead to the slots of their users, visits, whose ids do not, and countries, of
// which every database has a copy. Nothing is known of the other tables.
var schema = catalog.Schema{
	"orders":    {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "paid": whole, "note": {Holds: catalog.Bytes}}, Unique: [][]string{{"id"}, {"note"}}, Primary: true},
	"items":     {Columns: map[string]catalog.Column{"order_id": whole, "user_id": whole, "sku": {}}},
	"people":    {Columns: map[string]catalog.Column{"id": whole, "email": {Holds: catalog.Bytes}, "name": {}}, Unique: [][]string{{"id"}}, Primary: true},
	"visits":    {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "page": {}}, Unique: [][]string{{"id"}}, Primary: true},
	"countries": {Columns: map[string]catalog.Column{"code": {}, "used": whole}},
}

func snapshot(t *testing.T) *sharding.Snapshot {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	table := func(name, key string, also ...sharding.Alt) sharding.Table {
		m, err := sharding.Spread([]string{"a"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: key, Rule: sharding.Mod(4), Map: m, Also: also}
	}
	people, accounts := table("people", "id"), table("accounts", "id")
	accounts.Rule = sharding.Ranges(100, 200, 300)
	people.Lookups = []sharding.Lookup{{Column: "email", Table: "people_by_email", Unique: true}}
	router, err := sharding.New(sharding.DBs{"a": db},
		table("orders", "user_id", sharding.Alt{Column: "id", Rule: sharding.Mod(4)}),
		table("items", "user_id", sharding.Alt{Column: "order_id", Rule: sharding.Mod(4)}),
		people, accounts, table("logs", "user_id"), table("visits", "user_id"), sharding.Broadcast("countries"))
	if err != nil {
		t.Fatal(err)
	}
	return router.Snapshot()
}

// of returns what a text says.
func of(t *testing.T, o analysis.Options, text string) *analysis.Analysis {
	t.Helper()
	o.Schema = schema
	return analysis.Of(sqlparse.Parse(text, o.Reads), snapshot(t), o)
}

func TestAStatementNamesItsTables(t *testing.T) {
	roles := map[analysis.Role]string{analysis.Home: "home", analysis.Broadcast: "broadcast", analysis.Sharded: "sharded"}
	for text, want := range map[string]string{
		"SELECT * FROM Orders o JOIN countries JOIN settings":                   "o sharded, countries broadcast, settings home",
		"SELECT (SELECT 1 FROM items) FROM (SELECT * FROM orders) t":            "orders sharded, items sharded",
		"SELECT 1 UNION SELECT 2 FROM orders UNION (SELECT 3 FROM logs)":        "orders sharded, logs sharded",
		"WITH t AS (SELECT * FROM orders) SELECT * FROM t":                      "orders sharded",
		"WITH orders AS (SELECT * FROM items) SELECT * FROM orders":             "items sharded", // the CTE hides the table
		"WITH orders AS (SELECT * FROM orders) SELECT * FROM orders":            "orders sharded",
		"WITH RECURSIVE orders AS (SELECT 1 FROM orders) SELECT * FROM orders":  "", // it reads itself
		"WITH orders AS (SELECT 1) DELETE FROM orders WHERE id = 1":             "orders sharded written",
		"INSERT INTO orders (user_id) SELECT user_id FROM items":                "orders sharded written, items sharded",
		"UPDATE orders o JOIN items i ON i.order_id = o.id SET o.paid = 1":      "o sharded written, i sharded",
		"UPDATE orders o JOIN settings s SET paid = 1, value = 2":               "o sharded written, s home written", // settings may have either
		"UPDATE orders o JOIN countries c SET used = 1":                         "o sharded, c broadcast written",
		"DELETE i FROM orders o JOIN items i ON i.order_id = o.id":              "o sharded, i sharded written",
		"SELECT * FROM orders WHERE id IN (SELECT order_id FROM items LIMIT 1)": "orders sharded, items sharded",
	} {
		var names []string
		for _, r := range of(t, mysql, text).Refs {
			name := r.Name + " " + roles[r.Role]
			if r.Written {
				name += " written"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%s names %q, not %q", text, got, want)
		}
	}
}

// first returns the slots of the first sharded table of a statement, for the arguments 1, 2 and 3.
func first(t *testing.T, b *analysis.Analysis) string {
	t.Helper()
	i := slices.IndexFunc(b.Refs, func(r *analysis.Reference) bool { return r.Role == analysis.Sharded })
	s := b.Refs[i].Slots([]any{int64(1), int64(2), int64(3)})
	switch {
	case s.All:
		return "all"
	case s.Empty():
		return "none"
	}
	return strings.Trim(fmt.Sprint(s.List()), "[]")
}

func TestConditionsSayWhichSlotsHaveTheRows(t *testing.T) {
	for where, want := range map[string]string{
		"user_id = 5":                         "1",
		"USER_ID = 5":                         "1",
		"orders.user_id = 5":                  "1",
		"5 = user_id":                         "1",
		"id = 6":                              "2",
		"user_id = ?":                         "1",
		"user_id IN (1, 2, 5)":                "1 2",
		"user_id = '5'":                       "1",
		"(user_id, paid) IN ((1, 7), (2, 8))": "1 2",
		"(paid, user_id) = (7, 3)":            "3",
		"user_id = 1 AND paid > 2":            "1",
		"user_id = 1 AND user_id = 2":         "none",
		"user_id = NULL":                      "none",
		"user_id = 1 OR user_id = 2":          "1 2",
		"user_id = 1 OR paid = 2":             "all",
		"NOT user_id = 1":                     "all",
		"user_id NOT IN (1)":                  "all",
		"user_id > 1":                         "all", // slots are remainders
		"user_id = paid":                      "all",
		"user_id = 1 + 1":                     "all",
		"paid = 1":                            "all",
		"other.user_id = 1":                   "all",
	} {
		if got := first(t, of(t, mysql, "SELECT * FROM orders WHERE "+where)); got != want {
			t.Errorf("%s leads to %s, not %s", where, got, want)
		}
	}
}

func TestARangeLeadsToItsSlotsIfTheRuleKeepsTheOrder(t *testing.T) {
	for where, want := range map[string]string{ // slots begin at 100, 200 and 300
		"id BETWEEN 100 AND 250": "1 2", "id BETWEEN ABS(7) AND 50": "all", "id BETWEEN 150 AND ABS(7)": "all", "id NOT BETWEEN 100 AND 250": "all", "id < 100": "0", "id <= 100": "0 1",
		"id > 299": "2 3", "id >= 300": "3", "100 > id": "0", "300 <= id": "3", "id > 150 AND id < 250": "1 2", "id < used": "all",
	} {
		if got := first(t, of(t, mysql, "SELECT * FROM accounts WHERE "+where)); got != want {
			t.Errorf("%s leads to %s, not %s", where, got, want)
		}
	}
}

func TestAnArrayOfPostgreSQLHasTheValuesOfAnArgument(t *testing.T) {
	for where, want := range map[string]bool{
		"user_id = ANY ($1)": true, "user_id = ANY ($1::bigint[])": true,
		"user_id = ANY ($1::numeric(3)[])": false, "user_id = ANY (ARRAY[1])": false, "user_id = ALL ($1)": false, "user_id <> ANY ($1)": false,
	} {
		if proved := of(t, postgres, "SELECT * FROM orders WHERE "+where).Refs[0].Proof != nil; proved != want {
			t.Errorf("%s proves something: %v", where, proved)
		}
	}
}

func TestWhatIsKnownOfOneTableIsKnownOfThoseJoinedByEqualColumns(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM orders o JOIN items i ON i.user_id = o.user_id WHERE i.user_id = 5":                           "1",
		"SELECT * FROM orders o JOIN items i USING (user_id) WHERE i.user_id = 5":                                    "1",
		"SELECT * FROM orders o JOIN items i ON i.order_id = o.id WHERE i.user_id = 5":                               "1", // an id has its user's slot
		"SELECT * FROM orders o, items i WHERE i.user_id = o.user_id AND i.user_id = 5":                              "1",
		"SELECT * FROM orders o JOIN items i ON i.paid = o.user_id WHERE i.user_id = 5":                              "all",
		"SELECT * FROM orders o LEFT JOIN items i ON i.user_id = o.user_id WHERE o.user_id = 5":                      "1",
		"SELECT * FROM orders o LEFT JOIN items i ON o.user_id = 5":                                                  "all", // orders without items remain
		"SELECT * FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND o.user_id = 5":                        "all",
		"SELECT * FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND o.user_id = 5 WHERE i.sku > 'a'":      "1", // then they do not
		"SELECT * FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND o.user_id = 5 WHERE i.sku IS NULL":    "all",
		"SELECT * FROM orders o LEFT JOIN items i ON i.user_id = o.user_id AND o.user_id = 5 WHERE i.sku > ALL (?)":  "all",
		"SELECT * FROM orders o RIGHT JOIN items i ON i.user_id = o.user_id WHERE i.user_id = 5":                     "1",
		"SELECT * FROM orders WHERE user_id IN (SELECT user_id FROM items WHERE user_id = 5)":                        "1",
		"SELECT * FROM orders WHERE user_id IN (SELECT user_id FROM items WHERE user_id = 5 LIMIT 1)":                "1",
		"SELECT * FROM orders WHERE id = (SELECT id FROM orders WHERE user_id = 5 ORDER BY paid LIMIT 1)":            "1",
		"SELECT * FROM orders WHERE id = (SELECT id + 1 FROM orders WHERE user_id = 5)":                              "all",
		"SELECT * FROM orders WHERE id > (SELECT id FROM orders WHERE user_id = 5 LIMIT 1)":                          "all",
		"SELECT * FROM orders WHERE id NOT IN (SELECT id FROM orders WHERE user_id = 5 LIMIT 1)":                     "all",
		"SELECT * FROM orders WHERE id = (SELECT id FROM orders WHERE user_id = 5 LIMIT 1) OR paid = 1":              "all",
		"SELECT * FROM orders WHERE id = (SELECT i.order_id FROM items i LEFT JOIN orders o ON o.user_id = 5)":       "all",
		"SELECT * FROM orders WHERE user_id NOT IN (SELECT user_id FROM items WHERE user_id = 5)":                    "all",
		"SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.user_id = o.user_id AND i.user_id = 5)":  "1",
		"SELECT * FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.user_id = o.user_id AND user_id=5)":  "all",
		"SELECT * FROM orders o WHERE EXISTS (SELECT COUNT(*) FROM items i WHERE i.user_id=o.user_id AND user_id=5)": "all", // a row even of none
	} {
		if got := first(t, of(t, mysql, text)); got != want {
			t.Errorf("%s leads to %s, not %s", text, got, want)
		}
	}
}

func TestConditionsPassIntoDerivedTablesWhoseRowsDependOnOneValue(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT * FROM orders":                                                       "1",
		"SELECT user_id FROM orders":                                                 "1",
		"SELECT id AS user_id FROM orders":                                           "1",
		"SELECT user_id, COUNT(*) FROM orders GROUP BY user_id":                      "1",
		"SELECT DISTINCT user_id FROM orders":                                        "1",
		"SELECT user_id, ROW_NUMBER() OVER (PARTITION BY user_id) FROM orders":       "1",
		"SELECT user_id, ROW_NUMBER() OVER (PARTITION BY paid) FROM orders":          "all",
		"SELECT MAX(user_id) AS user_id FROM orders":                                 "all",
		"SELECT paid, user_id FROM orders GROUP BY paid":                             "all",
		"SELECT user_id FROM orders LIMIT 1":                                         "all",
		"SELECT user_id, @n := @n + 1 FROM orders":                                   "all",
		"SELECT paid AS user_id, user_id AS paid FROM orders":                        "all",
		"SELECT user_id, paid AS user_id FROM orders":                                "all", // either may be meant
		"SELECT user_id FROM orders UNION ALL SELECT user_id FROM orders":            "all",
		"SELECT user_id, COUNT(*) FROM orders GROUP BY user_id WITH ROLLUP":          "all",
		"SELECT t.user_id FROM (SELECT user_id FROM orders GROUP BY user_id) AS t":   "1",
		"SELECT o.user_id FROM countries c LEFT JOIN orders o ON o.paid = c.used":    "1",
		"SELECT o.* FROM orders o JOIN countries c ON c.used = o.paid GROUP BY o.id": "all",
	} {
		for _, text := range []string{"SELECT * FROM (" + query + ") AS d WHERE d.user_id = 5", "WITH d AS (" + query + ") SELECT * FROM d WHERE user_id = 5"} {
			if got := first(t, of(t, mysql, text)); got != want {
				t.Errorf("%s leads to %s, not %s", text, got, want)
			}
		}
	}
	if got := first(t, of(t, mysql, "WITH d AS (SELECT * FROM orders) SELECT * FROM d, d AS e WHERE d.user_id = 5")); got != "all" {
		t.Errorf("the other reader of a CTE needs all slots, and not %s", got)
	}
}

func TestANameDenotesTheInnermostColumn(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = user_id AND p.id = 5)":             "1",
		"SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM people p, settings WHERE p.id = user_id AND p.id = 5)":   "all", // settings may have one
		"SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM items i WHERE i.user_id = user_id AND i.user_id = 5)":    "all", // items has one
		"SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM items i WHERE i.user_id=orders.user_id AND user_id = 5)": "1",
		"SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM items o WHERE o.user_id = o.user_id AND user_id = 5)":  "all", // o is items there
		"SELECT * FROM orders o, items i WHERE user_id = 5":                                                        "all", // the database refuses it
		"SELECT * FROM orders o, settings s WHERE user_id = 5":                                                     "1",   // it would refuse a second one
		"SELECT * FROM orders o JOIN LATERAL (SELECT 1 FROM items i WHERE i.user_id = o.user_id) t":                "all",
		"SELECT paid AS user_id FROM orders WHERE user_id = 5":                                                     "1",
	} {
		if got := first(t, of(t, mysql, text)); got != want {
			t.Errorf("%s leads to %s, not %s", text, got, want)
		}
	}
}

func TestAQualifierOutsideOfFromIsFoundSoThatItCanBeRenamed(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT id FROM orders": 0,
		"SELECT orders.id, orders.* FROM orders WHERE orders.paid = 1":                      3,
		"SELECT id FROM orders ORDER BY orders.id LIMIT 1":                                  1,
		"SELECT id FROM orders FOR UPDATE OF orders":                                        1,
		"SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM items WHERE o.paid)":           1,
		"SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM countries o WHERE o.paid = 1)": 1, // countries has no paid
		"UPDATE orders SET orders.paid = orders.paid + 1":                                   2,
	} {
		if got := len(of(t, mysql, text).Refs[0].Columns); got != want {
			t.Errorf("%s has %d qualifiers, not %d", text, got, want)
		}
	}
}

func TestWhatCannotBeRoutedIsRefusedWithARemedy(t *testing.T) {
	for _, refused := range []struct {
		options analysis.Options
		text    string
		err     error
		hint    string
	}{
		{mysql, "LOAD DATA INFILE 'x' INTO TABLE orders", sharding.ErrRawTable, "grouped by Router.Target"},
		{mysql, "LOAD DATA INFILE 'x' INTO TABLE countries", sharding.ErrRawTable, "LOAD is not routed; run it on Router.DB for each of Router.Databases"},
		{mysql, "OPTIMIZE TABLE orders", sharding.ErrRawTable, "for each of Router.Targets"},
		{mysql, "CALL archive(orders)", sharding.ErrRawTable, "CALL is not routed"},
		{mysql, "DESCRIBE orders", sharding.ErrRawTable, "DESCRIBE is not routed; run it for each of Router.Targets"},
		{mysql, "SELECT id INTO OUTFILE 'x' FROM orders", sharding.ErrRawTable, `it cannot be parsed near "INTO"`},
		{mysql, "UPDATE orders SET paid = 1 WHERE user_id = 5; UPDATE orders SET paid = 2 WHERE user_id = 5;", sharding.ErrRawTable, "its text has several statements; send each by itself"},
		{mysql, "UPDATE countries SET name = 'a'; DELETE FROM countries", sharding.ErrRawTable, "its text has several statements; send each by itself"},
		{mysql, "TRUNCATE TABLE orders", sharding.ErrRawTable, "DELETE and sharding.AllShards"},
		{mysql, "ALTER TABLE orders ADD x INT", sharding.ErrRawTable, "on every target"},
		{mysql, "DROP TABLE countries", sharding.ErrRawTable, "in every database that has a copy"},
		{mysql, "SELECT * FROM other.orders", sharding.ErrCrossShard, "without a database"},
		{mysql, "DELETE x FROM orders o", sharding.ErrRawTable, "not among the tables in FROM"},
		{mysql, "WITH orders AS (SELECT 1), b AS (SELECT 2) SELECT * FROM b", sharding.ErrRawTable, "rename the CTE"},
		{mysql, "INSERT INTO orders VALUES (1)", sharding.ErrMissingKey, "name the columns"},
		{mysql, "INSERT INTO orders () VALUES ()", sharding.ErrMissingKey, "name the columns"},
		{mysql, "INSERT INTO orders (id) VALUES (1)", sharding.ErrMissingKey, "add the column user_id"},
		{sqlite, "INSERT INTO orders DEFAULT VALUES", sharding.ErrMissingKey, "DEFAULT VALUES"},
		{mysql, "INSERT INTO orders (user_id) SELECT used + 1 FROM countries", sharding.ErrMissingKey, "for user_id, or insert VALUES"},
		{sqlite, "INSERT INTO orders (rowid, user_id) VALUES (1, 1)", sharding.ErrCrossShard, "instead of rowid"},
		{mysql, "UPDATE orders SET user_id = paid", sharding.ErrKeyChange, "leave user_id out"},
		{mysql, "UPDATE orders SET (user_id) = (SELECT 1)", sharding.ErrRawTable, "parsed"},
		{mysql, "INSERT INTO orders (user_id, id) VALUES (1, 1) ON DUPLICATE KEY UPDATE user_id = 2", sharding.ErrKeyChange, "the conflict's SET"},
		{mysql, "INSERT INTO orders (user_id, id) VALUES (1, 1) ON DUPLICATE KEY UPDATE note = 'x'", sharding.ErrCrossShard, "leave note out"},
		{mysql, "INSERT INTO people (id) SELECT id FROM people WHERE id = 1", sharding.ErrLookup, "insert VALUES"},
		{mysql, "UPDATE people SET email = name WHERE id = 1", sharding.ErrLookup, "set email to a value"},
		{mysql, "UPDATE people SET id = 5 WHERE name = 'x'", sharding.ErrKeyChange, "the value that the condition names"},
	} {
		b := of(t, refused.options, refused.text)
		if r := b.Refused; r == nil || !errors.Is(r, refused.err) || !strings.Contains(r.Hint, refused.hint) {
			t.Errorf("%s is refused with %v", refused.text, r)
		}
	}
}

func TestARefusalSaysWhatWasToBeDone(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM orders": "query", "REPLACE INTO orders (user_id) VALUES (1)": "insert", "UPDATE orders SET paid = 1": "update",
		"DELETE FROM orders": "delete", "DROP TABLE orders": "DROP of", "LOCK TABLES orders": "statement",
		"INSERT INTO countries (code) SELECT note FROM orders": "query", // of the table that is only read
	} {
		if got := of(t, mysql, text).Refusal("orders", sharding.ErrCrossShard, "").Op; got != want {
			t.Errorf("%s is a %s", text, got)
		}
	}
}

func TestAFunctionMayHaveAnotherValueInEachDatabase(t *testing.T) {
	for _, one := range []struct {
		options analysis.Options
		text    string
		want    string // of the reason
	}{
		{mysql, "SELECT LOWER(note), COUNT(*), 1 + 1 FROM orders", ""},
		{mysql, "SELECT NOW() FROM orders", "name the column"},
		{mysql, "SELECT RAND() FROM orders", "compute it first"},
		{mysql, "SELECT my_function(note) FROM orders", "may be an aggregate"},
		{mysql, "SELECT @x FROM orders", "a variable"},
		{postgres, "SELECT * FROM orders WHERE note @> 'x'", ""},
		{postgres, "SELECT age(a, b), age(a) FROM orders", "age"},
		{sqlite, "SELECT date(note), strftime('%s', note) FROM orders", ""},
		{sqlite, "SELECT date('now') FROM orders", "date"},
		{sqlite, "SELECT strftime('%s') FROM orders", "strftime"},
		{sqlite, "SELECT time('subsec') FROM orders", "time"},
		{mysql, "SELECT (SELECT MAX(o.paid) FROM countries) FROM orders o", "belongs to the outer query"},
		{mysql, "SELECT SUM(paid) OVER (ORDER BY id) FROM orders", "add PARTITION BY"},
		{mysql, "SELECT SUM(paid) OVER (PARTITION BY user_id) FROM orders", ""},
		{mysql, "SELECT SUM(paid) OVER (PARTITION BY user_id ROWS 1 PRECEDING) FROM orders", ""},
		{postgres, "SELECT SUM(paid ORDER BY id) OVER (PARTITION BY user_id) FROM orders", "add PARTITION BY"},
		{mysql, "SELECT SUM(paid) OVER w FROM orders WINDOW w AS (PARTITION BY user_id)", "add PARTITION BY"},
		{mysql, "SELECT GROUP_CONCAT(note) FROM orders GROUP BY paid", "needs all rows of a group"},
		{mysql, "SELECT GROUP_CONCAT(note) FROM orders GROUP BY user_id", ""},
		{mysql, "SELECT GROUP_CONCAT(c.code) FROM countries c LEFT JOIN orders o ON o.paid = c.used GROUP BY o.user_id", "needs all rows of a group"},
		{mysql, "SELECT GROUP_CONCAT(note) FROM orders GROUP BY user_id WITH ROLLUP", "needs all rows of a group"},
	} {
		b := of(t, one.options, one.text)
		if got := b.Differs(b.Windows); (got == "") != (one.want == "") || !strings.Contains(got, one.want) {
			t.Errorf("%s differs: %q", one.text, got)
		}
	}
}

func TestTheClockIsReadBySpansThatALiteralCanReplace(t *testing.T) {
	for _, one := range []struct {
		options analysis.Options
		text    string
		want    string // what is replaced
	}{
		{mysql, "SELECT NOW() AS a, CURRENT_DATE AS b, NOW(3) AS c, UNIX_TIMESTAMP() AS d FROM orders", "NOW(), CURRENT_DATE, NOW(3), UNIX_TIMESTAMP()"},
		{mysql, "SELECT NOW(n) AS a, UNIX_TIMESTAMP(n) AS b FROM orders", ""},
		{mysql, "SELECT id, NOW() FROM orders", ""}, // the column would have another name
		{postgres, "SELECT id FROM orders WHERE a < pg_catalog.now() AND b < other.now()", "pg_catalog.now()"},
		{sqlite, "SELECT id FROM orders WHERE a < datetime('NOW', 'utc') AND b < date(?)", "'NOW'"},
		{mysql, "INSERT INTO logs (user_id, at) VALUES (1, NOW()), (2, NOW())", "NOW(), NOW()"}, // the second row is like the first
	} {
		b := of(t, one.options, one.text)
		var spans []string
		for _, i := range b.EveryInstant(b.Statement) {
			spans = append(spans, i.Span.Of(one.text))
		}
		if got := strings.Join(spans, ", "); got != one.want {
			t.Errorf("%s reads the clock in %q, not %q", one.text, got, one.want)
		}
	}
}

func TestTheValuesOfAnArrayAreSearchedForUnlessItsCastChangesThem(t *testing.T) {
	for condition, want := range map[string]int{
		"id = ANY ($1)": 2, "$1 = ANY (id)": 0, "id = ANY ($1::bigint[])": 2, "id = ANY (CAST($1 AS int8[]))": 2, "id = ANY ($1::numeric[])": 0, "id = ALL ($1)": 0,
		"id <> ANY ($1)": 0, "id = ANY ($1::bigint[][])": 0, "id = ANY ($2)": 0,
	} {
		found := 0
		proof.EachOwned(of(t, postgres, "UPDATE visits SET page = 'x' WHERE "+condition).Refs[0].Proof, func(q *proof.Owned) {
			values, _ := q.Given([]any{[]int32{5, 6}})
			found += len(values)
		})
		if found != want {
			t.Errorf("%s: %d values", condition, found)
		}
	}
}

// A search beside the sharding key would find nothing that the key does not lead to.
func TestAConditionOnTheShardingKeyNeedsNoSearch(t *testing.T) {
	for text, want := range map[string]int{
		"UPDATE visits SET page = 1 WHERE id = 5":                                   1,
		"UPDATE visits SET page = 1 WHERE id = 5 AND user_id = 3":                   0,
		"UPDATE visits SET page = 1 WHERE user_id IN (3, 4) AND (id = 5 OR id = 6)": 2, // which are not sent, either
		"UPDATE visits SET page = 1 WHERE id = 5 AND user_id > 3":                   1,
		"UPDATE people SET name = 1 WHERE id = 5 AND email = 'a@x'":                 1, // a lookup table is no search
	} {
		searches := 0
		for _, r := range of(t, mysql, text).Refs {
			proof.EachOwned(r.Proof, func(*proof.Owned) { searches++ })
		}
		if searches != want {
			t.Errorf("%s: %d", text, searches)
		}
	}
}

func TestALockIsThatOfTheTablesThatItsClauseNames(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 FROM visits WHERE id = 5":                                                   "",
		"SELECT 1 FROM visits WHERE id = 5 FOR UPDATE":                                        "FOR UPDATE",
		"SELECT 1 FROM visits AS v WHERE id = 5 FOR SHARE OF v SKIP LOCKED":                   "FOR SHARE SKIP LOCKED",
		"SELECT 1 FROM visits v, countries c FOR UPDATE OF c NOWAIT":                          "",
		"SELECT 1 FROM visits v, countries c FOR UPDATE OF c FOR SHARE OF V NOWAIT":           "FOR SHARE NOWAIT",
		"SELECT 1 FROM visits LOCK IN SHARE MODE":                                             "LOCK IN SHARE MODE",
		"SELECT 1 FROM (SELECT id FROM visits WHERE id = 5 FOR UPDATE NOWAIT) AS t":           "FOR UPDATE NOWAIT",
		"SELECT 1 FROM countries WHERE EXISTS (SELECT 1 FROM visits) FOR UPDATE OF countries": "",
	} {
		for _, r := range of(t, mysql, text).Refs {
			if r.Name != "countries" && r.Name != "c" && r.Lock != want {
				t.Errorf("%s: %q", text, r.Lock)
			}
		}
	}
}

func TestUniqueIDsAreAnAssumptionOfACopy(t *testing.T) {
	b := of(t, mysql, "SELECT id, GROUP_CONCAT(page) FROM visits GROUP BY id")
	if why := b.WithUniqueIDs().Differs(b.Windows); why != "" {
		t.Errorf("the rows of an id are on one shard: %s", why)
	}
	if b.Differs(b.Windows) == "" {
		t.Error("an id may be on several shards")
	}
}

func TestAnUpdateSaysWhichRowsItNamesAndWhatItChanges(t *testing.T) {
	for text, want := range map[string]string{
		"UPDATE orders SET paid = 1":                                           "",
		"UPDATE orders SET user_id = 5 WHERE user_id = 1":                      "sets user_id",
		"UPDATE orders SET note = 'x' WHERE user_id = 1":                       "rekeys note",
		"UPDATE orders o JOIN items i ON i.user_id = o.user_id SET note = 'x'": "rekeys note",
		"UPDATE visits SET page = 1 WHERE id IN (1, 2) AND user_id = 1":        "names id",
		"UPDATE visits SET page = 1 WHERE (id, user_id) IN ((1, 1), (2, 2))":   "names id paired",
		"UPDATE visits SET page = 1 WHERE id IN (1, 2)":                        "", // of any user
		"UPDATE visits SET id = 3 WHERE id = 1":                                "rekeys id",
		"DELETE FROM people WHERE id = 1":                                      "loses email",
		"UPDATE people SET email = 'x' WHERE id = 1":                           "loses email to x",
		"UPDATE people SET email = EMAIL WHERE id = 1":                         "",
		"UPDATE people SET id = 5 WHERE id = 1":                                "sets id, moves",
	} {
		b := of(t, mysql, text)
		var all []string
		for _, s := range b.Assigned {
			all = append(all, "sets "+s.Column)
		}
		for _, r := range b.Rekeyed {
			all = append(all, "rekeys "+strings.Join(r.Columns, " "))
		}
		for _, c := range b.Changed {
			switch {
			case c.Lookup == nil:
				all = append(all, "moves")
			case c.To == nil:
				all = append(all, "loses "+c.Lookup.Column)
			default:
				all = append(all, fmt.Sprint("loses ", c.Lookup.Column, " to ", c.To.Literal))
			}
		}
		switch n := b.NamedRows; {
		case n == nil:
		case n.Paired:
			all = append(all, "names "+strings.Join(n.Columns, " ")+" paired")
		default:
			all = append(all, "names "+strings.Join(n.Columns, " "))
		}
		if got := strings.Join(all, ", "); got != want || b.Refused != nil {
			t.Errorf("%s: %q, not %q; %v", text, got, want, b.Refused)
		}
	}
}

func TestARowLeadsToItsSlotOrSaysWhyNot(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO orders (user_id, id) VALUES (5, 9)":     "slot 1",
		"INSERT INTO orders (user_id, id) VALUES (5, 8)":     "id 8 leads to slot 0, user_id to slot 1",
		"INSERT INTO orders (user_id) VALUES (?)":            "slot 1",
		"INSERT INTO orders (user_id) VALUES (1 + 1)":        "user_id is neither a value nor a parameter",
		"INSERT INTO orders (user_id, id) VALUES (5)":        "the row has 1 values for 2 columns",
		"INSERT INTO orders (user_id, id) VALUES (5, 1 + 1)": "id is neither a value nor a parameter",
		"INSERT INTO orders (user_id, id) VALUES (5, NULL)":  "slot 1",
		"INSERT INTO orders (user_id) VALUES ('x')":          "key",
	} {
		b := of(t, mysql, text)
		slot, err := b.Insert.Slot(&b.Insert.Input.Rows[0], []any{int64(5)})
		got := fmt.Sprint("slot ", slot)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestAnUpsertDependsOnTheUniqueKeysThatLeadNowhere(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO orders (user_id, id, note) VALUES (1, 1, 'x')":                                      "",
		"INSERT INTO orders (user_id, id, note) VALUES (1, 1, 'x') ON CONFLICT DO NOTHING":               "note",
		"INSERT INTO orders (user_id, id, note) VALUES (1, 1, 'x') ON CONFLICT (id) DO NOTHING":          "", // its slot is that of the user
		"INSERT INTO orders (user_id, id, note) VALUES (1, 1, 'x') ON CONFLICT (note) DO NOTHING":        "note always",
		"INSERT INTO orders (user_id, id, note) VALUES (1, 1, 'x') ON CONFLICT (lower(note)) DO NOTHING": "note", // it may be any key
		"INSERT INTO visits (user_id, id) VALUES (1, 1) ON CONFLICT (id) DO NOTHING":                     "id",
		"INSERT INTO visits (user_id) VALUES (1) ON CONFLICT (id) DO NOTHING":                            "", // the database numbers it
	} {
		var all []string
		for _, s := range of(t, postgres, text).Insert.Seeks {
			name := strings.Join(s.Columns, " ")
			if s.Always {
				name += " always"
			}
			all = append(all, name)
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("%s depends on %q, not %q", text, got, want)
		}
	}
}

func TestARowLeavesAColumnToTheDatabase(t *testing.T) {
	for value, want := range map[string][2]bool{ // whether it does, and whether it does where zeros are numbered
		"NULL": {true, true}, "DEFAULT": {true, true}, "0": {false, true}, "'0'": {false, true},
		"'x'": {false, false}, "1": {false, false}, "1 - 1": {false, false},
	} {
		row := &of(t, mysql, "INSERT INTO orders (user_id) VALUES ("+value+")").Insert.Input.Rows[0]
		for i, zero := range []bool{false, true} {
			if got := analysis.Leaves(row, 0, nil, zero); got != want[i] {
				t.Errorf("%s is left to the database: %v, where zeros are: %v", value, got, zero)
			}
		}
		if analysis.Leaves(row, 1, nil, true) {
			t.Error("a row without the column is refused elsewhere")
		}
	}
}

func TestOnlyWhatEveryDatabaseConvertsToANumberIsOne(t *testing.T) {
	for _, one := range []struct {
		v    any
		want bool
	}{{int64(1), true}, {1.5, true}, {"1", true}, {[]byte("1e2"), true}, {"1_0", false}, {"0x1", false}, {"Inf", false}, {"NaN", false}, {"", false}, {nil, false}} {
		if _, is := analysis.NumberOf(one.v); is != one.want {
			t.Errorf("%v is a number: %v", one.v, is)
		}
	}
}
