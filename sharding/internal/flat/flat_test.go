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
	"orders":    {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "paid": whole}, Unique: [][]string{{"id"}}, Primary: true},
	"items":     {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "price": whole}, Unique: [][]string{{"id"}}, Primary: true},
	"countries": {Columns: map[string]catalog.Column{"code": whole}, Unique: [][]string{{"code"}}, Primary: true},
}

func analyzed(t *testing.T, family sqlparse.Family, text string) *analysis.Analysis {
	t.Helper()
	engine := map[sqlparse.Family]merge.Engine{sqlparse.MySQL: merge.MySQL, sqlparse.PostgreSQL: merge.PostgreSQL}[family]
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

func TestAQueryThatAnotherNameOrValueWouldChangeStaysAsItIs(t *testing.T) {
	groups := "(SELECT paid, COUNT(*) AS n, AVG(id) AS a, SUM(id) / COUNT(*) AS q FROM orders GROUP BY paid) AS t"
	for _, text := range []string{
		"SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid",
		"SELECT x.* FROM " + groups,
		"SELECT x.n FROM " + groups,
		"SELECT other FROM " + groups,
		"SELECT n AS id FROM " + groups,            // a column that may be grouped by
		"SELECT n AS paid FROM " + groups,          // another column of the derived table
		"SELECT n * 2 FROM " + groups,              // its name would be another one
		"SELECT a * 2 AS x FROM " + groups,         // the column has fewer digits
		"SELECT n FROM " + groups + " WHERE q > 1", // and this one
		"SELECT n FROM " + groups + " ORDER BY a",
		"SELECT n, a FROM " + groups + " ORDER BY 2",
		"SELECT n FROM " + groups + " ORDER BY 3",
		"SELECT n, ? AS x FROM " + groups,
		"SELECT n FROM " + groups + " WHERE n IN (SELECT price FROM items)",
		"SELECT DISTINCT n FROM " + groups,
		"SELECT MAX(n) FROM " + groups,
		"SELECT n FROM " + groups + " JOIN countries ON code = n",
		"SELECT n FROM " + groups + " FOR UPDATE",
		"SELECT n FROM " + strings.Replace(groups, ") AS t", " LIMIT 3) AS t", 1),
		"SELECT n FROM " + strings.Replace(groups, "SELECT", "SELECT DISTINCT", 1),
		"SELECT n FROM " + strings.Replace(groups, "AS a", "AS n", 1),
		"SELECT n FROM " + strings.Replace(groups, "COUNT(*) AS n", "COUNT(*) + ? AS n", 1),
		"SELECT id FROM (SELECT paid AS id, COUNT(*) AS n FROM orders GROUP BY id) AS t", // groups by the column
		"SELECT n FROM (SELECT COUNT(*) AS n FROM orders) AS t",
		"WITH t AS (SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid), u AS (SELECT 1) SELECT n FROM t",
	} {
		if got := flat.Of(analyzed(t, sqlparse.MySQL, text)); got != "" {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	quoted := `SELECT n FROM (SELECT paid, COUNT(*) AS "N" FROM orders GROUP BY paid) AS t`
	if got := flat.Of(analyzed(t, sqlparse.PostgreSQL, quoted)); got != "" {
		t.Errorf("%s becomes %s", quoted, got)
	}
}
