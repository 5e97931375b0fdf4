// SPDX-License-Identifier: Apache-2.0

package flat_test

import (
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"; nothing is opened

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/flat"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// whole is a column that leads to slots, or a number beside it.
var whole = catalog.Column{Holds: catalog.Integers, Value: catalog.OfKind(merge.Integer)}

var schema = catalog.Schema{
	"orders":    {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "paid": whole, "note": {}}, Unique: [][]string{{"id"}}, Primary: true},
	"items":     {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "price": whole}, Unique: [][]string{{"id"}}, Primary: true},
	"countries": {Columns: map[string]catalog.Column{"code": whole}, Unique: [][]string{{"code"}}, Primary: true},
}

func analyzed(t *testing.T, family sqlparse.Family, text string) *analysis.Analysis {
	t.Helper()
	engine := map[sqlparse.Family]merge.Engine{sqlparse.MySQL: merge.MySQL, sqlparse.PostgreSQL: merge.PostgreSQL, sqlparse.SQLite: merge.SQLite}[family]
	reads := sqlparse.Dialect{Family: family}
	o := analysis.Options{Schema: schema, Reads: reads, Merge: merge.Dialect{Engine: engine}}
	return analysis.Of(sqlparse.Parse(text, reads), testshards.ByUser(t, "countries", "orders", "items"), o)
}

func TestAQueryOfADerivedTableOfGroupsIsAQueryOfGroups(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t":                                                 "SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid",
		"SELECT t.n AS m FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t":                                          "SELECT COUNT(*) AS m FROM orders GROUP BY paid",
		"WITH t AS (SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) SELECT n FROM t AS x WHERE x.p > 1":                 "SELECT COUNT(*) AS n FROM orders GROUP BY (paid + 1) HAVING (paid + 1) > 1",
		"SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY 1 HAVING n > 2) AS t WHERE n < 5 OR paid = 7":               "SELECT COUNT(*) AS n FROM orders GROUP BY paid  HAVING (COUNT(*) > 2) AND (COUNT(*) < 5 OR paid = 7)",
		"SELECT paid, n - 1 AS less FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t ORDER BY less, n DESC":         "SELECT paid, COUNT(*) - 1 AS less FROM orders GROUP BY paid ORDER BY less, COUNT(*) DESC",
		"SELECT paid, SUM(n) OVER (ORDER BY t.paid) AS r FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t":          "SELECT paid, SUM(COUNT(*)) OVER (ORDER BY paid) AS r FROM orders GROUP BY paid",
		"SELECT paid FROM (SELECT paid, COUNT(*) AS n FROM orders WHERE id > ? GROUP BY paid) AS t WHERE n > ? LIMIT ?":             "SELECT paid FROM orders WHERE id > ? GROUP BY paid HAVING COUNT(*) > ? LIMIT ?",
		"SELECT paid, a FROM (SELECT paid, AVG(id) AS a FROM orders GROUP BY paid) AS t ORDER BY 1":                                 "SELECT paid, AVG(id) AS a FROM orders GROUP BY paid ORDER BY 1",
		"SELECT n FROM (SELECT paid, COUNT(*) AS n -- all\nFROM orders GROUP BY paid -- each\nHAVING n > 1) AS t -- t\nWHERE n < 5": "SELECT COUNT(*) AS n -- all\nFROM orders GROUP BY paid -- each\n HAVING (COUNT(*) > 1) AND (COUNT(*) < 5)",
	} {
		if got := flat.Of(analyzed(t, sqlparse.MySQL, text)); got != want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}

// groups has only columns that a query may leave out.
const groups = "(SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t"

// averages has columns of more digits than a table keeps.
const averages = "(SELECT paid, AVG(id) AS a FROM orders GROUP BY paid) AS t"

// computed is grouped by an expression, which MySQL recognises only as a whole.
const computed = "(SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) AS t"

func with(old, replacement string) string {
	return "SELECT n FROM " + strings.Replace(groups, old, replacement, 1)
}

func TestAQueryThatAnotherNameOrValueWouldChangeStaysAsItIs(t *testing.T) {
	if got := flat.Of(analyzed(t, sqlparse.MySQL, "SELECT n FROM "+groups)); got == "" {
		t.Fatal("none of the following is the reason")
	}
	for _, text := range []string{
		"SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid",
		"SELECT x.* FROM " + groups,
		"SELECT x.n FROM " + groups,
		"SELECT other FROM " + groups,
		"SELECT n AS id FROM " + groups,                        // a column that may be grouped by
		"SELECT n AS paid FROM " + groups,                      // another column of the derived table
		"SELECT n * 2 FROM " + groups,                          // its name would be another one
		"SELECT paid, a * 2 AS x FROM " + averages,             // the column has fewer digits
		"SELECT paid, a FROM " + averages + " WHERE a > 1",     // and this one
		"SELECT paid FROM " + averages,                         // a database may refuse the average
		"SELECT paid, a AS b FROM " + averages + " ORDER BY a", // as do those that it sorts by
		"SELECT paid, a FROM " + averages + " ORDER BY 2",
		"SELECT n FROM " + groups + " ORDER BY 3",
		"SELECT n AS m, paid AS m FROM " + groups + " ORDER BY m",
		"SELECT n, ? AS x FROM " + groups,
		"SELECT n FROM " + groups + " ORDER BY n + ?",
		"SELECT n FROM " + groups + " WHERE n IN (SELECT price FROM items)",
		"SELECT DISTINCT n FROM " + groups,
		"SELECT STRAIGHT_JOIN n FROM " + groups,
		"SELECT MAX(n) FROM " + groups,
		"SELECT n FROM " + groups + " GROUP BY n",
		"SELECT n FROM " + groups + " HAVING n > 1",
		"SELECT n FROM " + groups + " ORDER BY MAX(n)",
		"SELECT n FROM " + groups + " WHERE SUM(n) > 1",
		"SELECT n FROM " + groups + " WINDOW w AS (ORDER BY n)",
		"SELECT n FROM " + groups + " JOIN countries ON code = n",
		"SELECT n FROM " + groups + " FOR UPDATE",
		"SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid)", // an error, on MySQL
		"SELECT /*+ MAX_EXECUTION_TIME(9) */ n FROM " + groups,
		"SELECT n FROM " + groups + " WHERE n > 1 /*! AND n < 5 */",
		"EXPLAIN SELECT n FROM " + groups,
		"WITH t AS MATERIALIZED (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) SELECT n FROM t", // an error, too
		with(") AS t", " LIMIT 3) AS t"),
		with(") AS t", " ORDER BY n) AS t"),             // has an order that the other query has not
		with(") AS t", " ORDER BY id) AS t ORDER BY n"), // a column that is not in GROUP BY, which a database may refuse
		with(") AS t", " WITH ROLLUP) AS t"),
		with(") AS t", " WINDOW w AS (ORDER BY paid)) AS t"),
		with("SELECT", "SELECT DISTINCT"),
		with("SELECT", "SELECT SQL_NO_CACHE"),
		with("SELECT", "SELECT orders.*,"),
		with("paid,", "paid AS n,"),
		"SELECT r FROM (SELECT paid, RANK() OVER (ORDER BY paid) AS r FROM orders GROUP BY paid) AS t",
		with("paid,", "paid, 7 AS c,"), // a number of a column, in GROUP BY and ORDER BY
		with("paid,", "paid, COUNT(code) AS c,"),
		"SELECT c FROM (SELECT paid, 7 AS c, COUNT(*) AS n FROM orders GROUP BY paid) AS t",
		"SELECT RANK() OVER (ORDER BY p + 1) AS r FROM " + computed,
		"SELECT SUM(p) OVER (ORDER BY n) AS r FROM " + computed,
		"SELECT paid AS n FROM " + groups,
		"SELECT other FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid HAVING n > 1) AS t",
		"SELECT n FROM (SELECT user_id, user_id + 1 AS p, COUNT(*) AS n FROM orders GROUP BY 1, p) AS t WHERE p > 1",
		"SELECT n FROM (SELECT user_id + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p, user_id) AS t WHERE p > 1",
		with("paid,", "paid, MAX(note) AS c,"), // of no column of numbers
		with("paid,", "paid, COUNT(id, user_id) AS c,"),
		with("paid,", "paid, COUNT(*) / 2 AS c,"),
		with("paid,", "paid, COUNT(*) / 2 AS c,") + " ORDER BY c", // the column has fewer digits
		with("COUNT(*)", "COUNT(*) + ?"),
		with("COUNT(*)", "COUNT(id ORDER BY id)"),
		with("COUNT(*)", "COUNT(*) & 1"),
		"SELECT n & 1 AS x FROM " + groups,
		"SELECT n + other AS x FROM " + groups,
		"SELECT n + 1 AS paid FROM " + groups,
		"SELECT shop.t.n FROM " + groups,
		"SELECT shop.t.* FROM " + groups,
		"SELECT n, * FROM " + groups, // an error there
		"SELECT n FROM " + groups + " ORDER BY 0",
		"SELECT other, t.* FROM " + groups,
		"SELECT other, n FROM " + groups + " WHERE n > 1 ORDER BY n",
		"SELECT p + 1 AS q FROM (SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) AS t", // MySQL knows only a whole expression of GROUP BY
		"SELECT n FROM (SELECT user_id + 1 AS p, user_id, COUNT(*) AS n FROM orders GROUP BY p, user_id) AS t WHERE p > 1",
		with("GROUP BY paid", "GROUP BY 0"),
		with("GROUP BY paid", "GROUP BY 3"),
		"SELECT id FROM (SELECT paid AS id, COUNT(*) AS n FROM orders GROUP BY id) AS t", // groups by the column
		"SELECT n FROM (SELECT COUNT(*) AS n FROM orders) AS t",
		"WITH t AS (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid), u AS (SELECT 1) SELECT n FROM t",
	} {
		if got := flat.Of(analyzed(t, sqlparse.MySQL, text)); got != "" {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	for _, text := range []string{
		`SELECT N FROM (SELECT paid, COUNT(*) AS "N" FROM orders GROUP BY paid) AS t`,            // which has another name
		"SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid HAVING n > 1) AS t", // an alias
		"SELECT n FROM (SELECT DISTINCT ON (paid) paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t",
		"SELECT DISTINCT ON (n) n FROM " + groups,
	} {
		if got := flat.Of(analyzed(t, sqlparse.PostgreSQL, text)); got != "" {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestADatabaseThatAcceptsTheFormGetsTheFlatQuery(t *testing.T) {
	for text, c := range map[string]struct {
		family sqlparse.Family
		want   string
	}{
		"WITH t AS MATERIALIZED (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid) SELECT n FROM t": {sqlparse.PostgreSQL, "SELECT COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid)":                          {sqlparse.SQLite, "SELECT COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT n, t.* FROM " + groups:                                                                                   {sqlparse.MySQL, "SELECT COUNT(*) AS n, paid, COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT N FROM (SELECT paid, COUNT(*) AS N FROM orders GROUP BY paid) AS t":                                      {sqlparse.MySQL, "SELECT COUNT(*) AS N FROM orders GROUP BY paid"},
		"SELECT n, * FROM " + groups:                                                                                     {sqlparse.PostgreSQL, "SELECT COUNT(*) AS n, paid, COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT n FROM (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS t WHERE n > 1":                    {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY user_id HAVING COUNT(*) > 1"},
		"SELECT n FROM (SELECT user_id + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p, user_id) AS t WHERE p > 1":        {sqlparse.PostgreSQL, "SELECT COUNT(*) AS n FROM orders GROUP BY (user_id + 1), user_id HAVING (user_id + 1) > 1"},
		"SELECT n AS n FROM " + groups:                                                                                   {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT n FROM (SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) AS t":                                {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY (paid + 1)"},
		"SELECT n FROM (SELECT paid, COUNT(*) AS n FROM orders GROUP BY 1) AS t":                                         {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT n FROM (SELECT paid AS paid, COUNT(*) AS n FROM orders GROUP BY paid) AS t":                              {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY paid"},
		"SELECT paid + 1 AS q FROM " + groups:                                                                            {sqlparse.MySQL, "SELECT paid + 1 AS q FROM orders GROUP BY paid"},
		"SELECT p + 1 AS q FROM (SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) AS t":                       {sqlparse.PostgreSQL, "SELECT (paid + 1) + 1 AS q FROM orders GROUP BY (paid + 1)"},
		"SELECT p, RANK() OVER (ORDER BY p) AS r FROM (SELECT paid + 1 AS p, COUNT(*) AS n FROM orders GROUP BY p) AS t": {sqlparse.MySQL, "SELECT paid + 1 AS p, RANK() OVER (ORDER BY (paid + 1)) AS r FROM orders GROUP BY (paid + 1)"},
		"SELECT n AS m FROM " + groups + " ORDER BY m":                                                                   {sqlparse.MySQL, "SELECT COUNT(*) AS m FROM orders GROUP BY paid ORDER BY COUNT(*)"},
		with(") AS t", " ORDER BY n) AS t ORDER BY paid"):                                                                {sqlparse.MySQL, "SELECT COUNT(*) AS n FROM orders GROUP BY paid ORDER BY paid"},
	} {
		if got := flat.Of(analyzed(t, c.family, text)); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", text, got, c.want)
		}
	}
}
