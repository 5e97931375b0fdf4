// SPDX-License-Identifier: Apache-2.0

package combine_test

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"; nothing is opened

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
)

var (
	mysql    = analysis.Options{Quote: dialect.MySQL{}.Quote, Reads: sqlparse.Dialect{Family: sqlparse.MySQL}, Merge: merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: 4, Most: 30, Rounds: true}}}
	maria    = analysis.Options{Quote: dialect.MySQL{}.Quote, Reads: sqlparse.Dialect{Family: sqlparse.MariaDB}, Merge: merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: 4, Most: 38}}}
	postgres = analysis.Options{Quote: dialect.Postgres{}.Quote, Reads: sqlparse.Dialect{Family: sqlparse.PostgreSQL}, Merge: merge.Dialect{Engine: merge.PostgreSQL}}
	sqlite   = analysis.Options{Quote: dialect.SQLite{}.Quote, Reads: sqlparse.Dialect{Family: sqlparse.SQLite}, Merge: merge.Dialect{Engine: merge.SQLite}}
)

func kind(k merge.Kind) catalog.Column { return catalog.Column{Value: catalog.OfKind(k)} }

// whole is a column that leads to slots, or a number beside it.
var whole = catalog.Column{Holds: catalog.Integers, Value: catalog.OfKind(merge.Integer)}

// schema describes two tables whose ids do not lead to shards, with columns of all sorts. Those with a name, a nick and a place
// are texts of MySQL, those with a label are texts of PostgreSQL, and those with a word are texts of SQLite.
var schema = catalog.Schema{
	"orders": {
		Columns: map[string]catalog.Column{
			"id": whole, "user_id": whole, "paid": whole, "total": kind(merge.Decimal), "rate": kind(merge.Float), "at": kind(merge.Time), "took": kind(merge.Duration),
			"small": {Value: catalog.Value{Type: merge.Type{Kind: merge.Float}, As: catalog.Double}},
			"big":   {Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}, Wide: true}},
			"name":  {Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00 ", Prefix: 1024}, As: catalog.Weight, Collation: "a"}},
			"nick":  {Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00 ", Prefix: 1024}, As: catalog.Weight, Collation: "b"}},
			"state": {Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}, Least: catalog.Value{Type: merge.Type{Kind: merge.Bytes}, As: catalog.Weight}},
			"bits":  {Value: catalog.Value{Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}},
			"label": {Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: "its collation is not C"}},
			"title": {Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: "its collation is not C", Behind: "COLLATE public.de"}},
			"motto": {Value: catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: "its collation is not C", Behind: "COLLATE public.sv"}},
			"word":  {Value: catalog.Value{Type: merge.Type{Kind: merge.Stored, Collation: merge.NoCase}}},
			"json":  {Unsorted: "it is JSON"}, "other": {},
		},
		Unique: [][]string{{"id"}}, Primary: true,
	},
	"tags":      {Columns: map[string]catalog.Column{"tag": whole, "user_id": whole}, Unique: [][]string{{"tag"}}},
	"items":     {Columns: map[string]catalog.Column{"id": whole, "user_id": whole, "order_id": whole, "price": whole}, Unique: [][]string{{"id"}}, Primary: true},
	"countries": {Columns: map[string]catalog.Column{"code": whole, "name": {}}, Unique: [][]string{{"code"}}, Primary: true},
}

func analyzed(t *testing.T, o analysis.Options, text string) *analysis.Analysis {
	t.Helper()
	o.Schema = schema
	return analysis.Of(sqlparse.Parse(text, o.Reads), testshards.ByUser(t, "countries", "orders", "items", "logs", "tags"), o)
}

// bound returns how the results of a query are combined for some arguments.
func bound(t *testing.T, o analysis.Options, text string, args ...any) (*combine.Shards, error) {
	t.Helper()
	c, _, refused := combine.Of(analyzed(t, o, text))
	if refused != nil {
		return nil, refused
	}
	s, _, _, err := c.Bind(args)
	return s, err
}

func TestAQueryGetsTheCombinationOfItsKind(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM orders":                                                                           "",
		"SELECT * FROM orders ORDER BY id":                                                               "rows are merged in their order",
		"SELECT * FROM orders LIMIT 2 OFFSET 3":                                                          "2 rows after the first 3",
		"SELECT DISTINCT paid FROM orders":                                                               "each row is returned once",
		"SELECT DISTINCT user_id FROM orders":                                                            "", // no two shards have one
		"SELECT paid FROM orders UNION SELECT price FROM items":                                          "each row is returned once",
		"SELECT paid FROM orders UNION ALL SELECT price FROM items":                                      "",
		"SELECT DISTINCT COUNT(DISTINCT paid) FROM orders":                                               "groups are combined", // one row
		"SELECT paid, COUNT(*) FROM orders GROUP BY paid":                                                "groups are combined",
		"SELECT user_id, COUNT(*) FROM orders GROUP BY user_id":                                          "",                    // nor a group of it
		"SELECT id, SUM(paid) FROM orders GROUP BY id":                                                   "groups are combined", // an id may be on two shards, if nothing needs that it is not
		"SELECT id, GROUP_CONCAT(name) FROM orders GROUP BY id":                                          "",
		"SELECT MAX(id) FROM orders HAVING COUNT(*) > 1":                                                 "groups are combined; HAVING is applied to them",
		"SELECT paid, SUM(COUNT(*)) OVER () FROM orders GROUP BY paid":                                   "groups are combined; window functions are computed over them",
		"SELECT paid FROM orders GROUP BY paid ORDER BY COUNT(*)":                                        "groups are combined; they are sorted",
		"SELECT id, COUNT(*) OVER () FROM orders LIMIT 1":                                                "counts of all rows are added up; 1 rows after the first 0",
		"SELECT id, RANK() OVER (ORDER BY paid) FROM orders ORDER BY paid":                               "rows are merged in their order; window functions are computed in this order",
		"SELECT COUNT(*) FROM (SELECT DISTINCT paid FROM orders) AS t":                                   "each row is returned once; they are counted",
		"SELECT COUNT(*) FROM (SELECT DISTINCT user_id FROM orders) AS t":                                "groups are combined", // each shard counts its own
		"SELECT EXISTS (SELECT 1 FROM orders WHERE paid > 1)":                                            "groups are combined",
		"SELECT id FROM orders FOR UPDATE":                                                               "shards are queried one after another",
		"SELECT o.id FROM orders o JOIN items i ON i.user_id = o.user_id":                                "",
		"SELECT o.id FROM orders o JOIN countries c ON c.code = o.paid":                                  "",
		"SELECT COUNT(*) FROM orders UNION ALL SELECT COUNT(*) FROM items":                               "groups are combined",
		"SELECT COUNT(DISTINCT user_id) FROM orders UNION ALL SELECT COUNT(DISTINCT user_id) FROM items": "groups are combined",
	} {
		s, err := bound(t, mysql, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := s.String(); got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func TestLimitsMayBeUnsigned(t *testing.T) {
	for _, c := range []struct {
		text string
		args []any
		want string
	}{
		{"SELECT id FROM orders LIMIT ?", []any{uint64(5)}, "5 rows after the first 0"},
		{"SELECT id FROM orders LIMIT ? OFFSET ?", []any{uint(5), uint32(2)}, "5 rows after the first 2"},
		{"SELECT id FROM orders LIMIT 3, 18446744073709551615", nil, "9223372036854775807 rows after the first 3"}, // MySQL's manual writes it for all rows
		{"SELECT id FROM orders LIMIT ?", []any{uint64(math.MaxUint64)}, "9223372036854775807 rows after the first 0"},
		{"SELECT paid, COUNT(*) FROM orders GROUP BY paid HAVING COUNT(*) > ?", []any{uint64(5)}, "groups are combined; HAVING is applied to them"},
		{"SELECT id FROM orders ORDER BY paid + ?", []any{uint64(5)}, "rows are merged in their order"},
	} {
		s, err := bound(t, mysql, c.text, c.args...)
		if err != nil {
			t.Errorf("%s with %v: %v", c.text, c.args, err)
		} else if got := s.String(); got != c.want {
			t.Errorf("%s with %v: %q, not %q", c.text, c.args, got, c.want)
		}
	}
	if _, err := bound(t, postgres, "SELECT id FROM orders LIMIT 18446744073709551615"); err == nil {
		t.Error("PostgreSQL does not accept such a LIMIT")
	}
}

func TestWhatShardsCannotAnswerTogetherIsRefusedWithItsReason(t *testing.T) {
	for _, refused := range []struct {
		options   analysis.Options
		text, why string
	}{
		{mysql, "SELECT paid, COUNT(*) FROM orders GROUP BY paid WITH ROLLUP", "ROLLUP, CUBE and GROUPING SETS are not combined"},
		{mysql, "SELECT SUM(paid) OVER w FROM orders WINDOW w AS (PARTITION BY user_id)", "a WINDOW is not combined"},
		{mysql, "SELECT SQL_CALC_FOUND_ROWS id FROM orders", "SQL_CALC_FOUND_ROWS is not combined"},
		{postgres, "SELECT * FROM orders, my_rows(1)", "a table function is not combined"},
		{postgres, "SELECT id FROM orders ORDER BY id FETCH FIRST 2 ROWS WITH TIES", "WITH TIES is not combined"},
		{postgres, "SELECT id FROM orders LIMIT 1 + 1", "LIMIT and OFFSET must be numbers or parameters"},
		{sqlite, "SELECT id FROM orders LIMIT :n", "named parameters are not combined with LIMIT"},
		{sqlite, "SELECT paid FROM orders GROUP BY paid HAVING COUNT(*) > :n", "named parameters are not combined with HAVING"},
		{mysql, "SELECT id FROM orders INTERSECT SELECT id FROM items", "INTERSECT, EXCEPT, several SELECTs in parentheses, and UNION ALL after UNION"},
		{mysql, "SELECT id FROM orders UNION SELECT id FROM items UNION ALL SELECT 1 FROM items", "UNION ALL after UNION"},
		{mysql, "WITH RECURSIVE t AS (SELECT id FROM orders) SELECT * FROM t", "a recursive WITH"},
		{mysql, "WITH t AS (SELECT * FROM orders) SELECT * FROM t, t AS u", "a CTE that is read twice"},
		{mysql, "SELECT * FROM orders o JOIN items i ON i.order_id = o.id", "joined rows of orders and items may be on different shards"},
		{mysql, "SELECT * FROM orders WHERE id IN (SELECT order_id FROM items)", "a subquery reads items"},
		{mysql, "SELECT * FROM countries c LEFT JOIN orders o ON o.paid = c.code", "make the outer join an inner join"},
		{mysql, "SELECT * FROM (SELECT paid FROM orders GROUP BY paid) AS t", "a subquery or CTE in FROM needs rows of several shards"},
		{mysql, "SELECT * FROM orders WHERE paid > ALL (SELECT price FROM items)", "compare with rows of all shards"},
		{mysql, "SELECT *, (SELECT name FROM countries ORDER BY name LIMIT 1) FROM orders", "order by a unique key of the table whose columns are NOT NULL"},
		{mysql, "SELECT EXISTS (SELECT 1 FROM orders LIMIT 1 OFFSET 1)", "OFFSET in EXISTS"},
		{mysql, "SELECT EXISTS (SELECT 1 FROM orders) LIMIT 0", "a subquery reads orders"},
		{mysql, "SELECT id FROM orders LIMIT 1 FOR UPDATE", "each shard would lock"},
		{mysql, "SELECT *, COUNT(*) FROM orders GROUP BY paid", "GROUP BY needs a select list without *"},
		{mysql, "SELECT DISTINCT paid, COUNT(*) FROM orders GROUP BY paid", "DISTINCT of groups"},
		{mysql, "SELECT paid, total FROM orders GROUP BY paid", "total is neither an aggregate nor in GROUP BY"},
		{mysql, "SELECT paid FROM orders GROUP BY paid ORDER BY total", "total is neither selected nor an aggregate"},
		{mysql, "SELECT MAX(paid) AS id, id FROM orders GROUP BY id", "id is a column and the alias of something else"},
		{mysql, "SELECT id FROM orders ORDER BY 9", "take the number of a selected column"},
		{mysql, "SELECT DISTINCT paid FROM orders ORDER BY id", "ordered by selected columns only"},
		{mysql, "SELECT name FROM orders UNION SELECT nick FROM orders", "compare in several ways"},
		{mysql, "SELECT state FROM orders UNION SELECT state FROM orders", "compared by its text in a UNION"},
		{mysql, "SELECT id, paid FROM orders UNION SELECT id FROM items", "equal numbers of columns"},
		{mysql, "SELECT 'a' AS x FROM orders UNION ALL SELECT 'b' FROM items ORDER BY x", "the collation of a connection"},
		{mysql, "SELECT DISTINCT name FROM orders UNION ALL SELECT DISTINCT name FROM orders ORDER BY name", "DISTINCT and groups in a UNION"},
		{mysql, "SELECT GROUP_CONCAT(name) FROM orders", "needs all rows of a group"},
		{mysql, "SELECT ANY_VALUE(paid) FROM orders", "without GROUP BY and another aggregate ANY_VALUE returns the value of each row"},
		{mysql, "SELECT COUNT(*) FROM (SELECT ANY_VALUE(paid) FROM orders) AS t", "without GROUP BY and another aggregate ANY_VALUE"},
		{mysql, "SELECT id FROM orders ORDER BY ANY_VALUE(paid)", "without GROUP BY and another aggregate ANY_VALUE"},
		{mysql, "SELECT STDDEV(paid) FROM orders GROUP BY paid", "needs all rows of a group"},
		{mysql, "SELECT SUM(name) FROM orders", "only numbers can be added; name is none"},
		{mysql, "SELECT SUM(DISTINCT rate) FROM orders", "the sum of DISTINCT floats"},
		{mysql, "SELECT MIN(state) FROM orders ORDER BY MIN(state)", "sort by the position of a member"},
		{mysql, "SELECT MIN(bits) FROM orders", "it is not known how values of bits are compared"},
		{mysql, "SELECT COUNT(DISTINCT json) FROM orders", "because it is JSON"},
		{mysql, "SELECT COUNT(DISTINCT paid + ?) FROM orders", "has parameters, and is compared"},
		{mysql, "SELECT LOWER(MAX(name)), COUNT(*) / 0.5 + AVG(paid) FROM orders", "write SUM(x) / COUNT(x)"},
		{mysql, "SELECT COALESCE(AVG(total), 1e2) FROM orders", "write SUM(x) / COUNT(x)"}, // a float of digits that AVG does not show
		{maria, "SELECT paid FROM orders GROUP BY paid HAVING AVG(total) > 1", "with how many digits MariaDB compares"},
		{maria, "SELECT ROUND(SUM(rate), 2) / 7 FROM orders", "a rounded float in a quotient"},
		{maria, "SELECT total * 2, COUNT(*) FROM orders GROUP BY total * 2", "MariaDB may treat NULL as 0"},
		{maria, "SELECT COUNT(DISTINCT CAST(name AS DATE)) FROM orders", "what is no date in CAST(name AS DATE)"},
		{maria, "SELECT id FROM orders ORDER BY total / 3", "sort by ROUND(…)"},
		{mysql, "SELECT COALESCE(SUM(total), ?) / 2 FROM orders", "which is divided or divides"},
		{mysql, "SELECT ROUND(SUM(total), 31) FROM orders", "ROUND is combined only with 0 to 30 digits"},
		{mysql, "SELECT ROUND(SUM(total), ?) FROM orders", "ROUND is combined only with 0 to 30 digits"},
		{mysql, "SELECT ROUND(SUM(total), 1, 2) FROM orders", "only numbers are computed from aggregates"},
		{mysql, "SELECT COALESCE(MAX(small), 'x') FROM orders", "only numbers are computed from aggregates"},
		{mysql, "SELECT SUM(paid) % 2 FROM orders", "only + - * /"},
		{mysql, "SELECT CASE paid WHEN SUM(id) THEN 1 END FROM orders GROUP BY paid", "only + - * /"},
		{mysql, "SELECT paid FROM orders GROUP BY paid ORDER BY ABS(SUM(COUNT(*)) OVER ())", "only + - * /"},
		{mysql, "SELECT paid, ABS(ROW_NUMBER() OVER (ORDER BY paid)) FROM orders GROUP BY paid", "only + - * /"},
		{mysql, "SELECT paid FROM orders GROUP BY paid HAVING MAX(name) = 'a'", "only numbers are computed from aggregates"},
		{mysql, "SELECT 1 FROM orders HAVING 1 > 0", "HAVING without GROUP BY and aggregates"},
		{mysql, "SELECT paid, SUM(rate) OVER () FROM orders GROUP BY paid, rate", "only a sum of whole numbers and decimals"},
		{mysql, "SELECT paid, SUM(COUNT(*)) OVER (ORDER BY paid ROWS 1 PRECEDING) FROM orders GROUP BY paid", "without NULLS FIRST, NULLS LAST and a frame"},
		{mysql, "SELECT id, SUM(rate) OVER (ORDER BY id) FROM orders ORDER BY id", "a running sum of floats"},
		{mysql, "SELECT tag, SUM(user_id) OVER (ORDER BY tag) FROM tags ORDER BY tag", "in the order in which these are returned"}, // two rows may have NULL
		{mysql, "SELECT id, ROW_NUMBER() OVER (ORDER BY paid) FROM orders ORDER BY paid, id", "in the order in which these are returned"},
		{mysql, "SELECT *, COUNT(*) OVER (), o.* FROM orders o", "between two *"},
		{mysql, "SELECT COUNT(*) OVER () AS n FROM orders ORDER BY n + 1", "from a count of all rows"},
		{mysql, "SELECT *, RANK() OVER (ORDER BY paid) FROM orders ORDER BY 2", "take the number of a selected column"},
		{mysql, "SELECT COUNT(*) FROM (SELECT paid, paid FROM orders LIMIT 2) AS t", "another name for each column"},
		{mysql, "SELECT COUNT(*) FROM (SELECT * FROM logs LIMIT 2) AS t", "another name for each column"}, // it may have any
		{mysql, "SELECT SUM(paid) FROM orders UNION ALL SELECT MAX(price) FROM items", "have the same aggregate in each SELECT"},
		{mysql, "SELECT MIN(paid) FROM orders UNION ALL SELECT MAX(price) FROM items", "have the same aggregate in each SELECT"},
		{mysql, "SELECT COUNT(*) FROM orders UNION ALL SELECT MAX(price) FROM items", "have the same aggregate in each SELECT"},
		{mysql, "SELECT name, COUNT(*) FROM orders UNION ALL SELECT nick, COUNT(*) FROM orders ORDER BY 1", "neither an aggregate nor in GROUP BY"},
		{mysql, "SELECT 'a', COUNT(*) FROM orders UNION ALL SELECT 'b', COUNT(*) FROM items ORDER BY 1", "selected numbers and times only"},
		{postgres, "SELECT DISTINCT $1 FROM orders", "it is not known how values of $1 are compared"},
		{postgres, "SELECT SUM(small) FROM orders", "rounded at each addition"},
		{postgres, "SELECT FLOOR(SUM(paid)) FROM orders", "only + - * /"},
		{postgres, "SELECT ROUND(MAX(paid)) FROM orders", "only + - * /"},
		{postgres, "SELECT ROUND(7) - COUNT(*) FROM orders", "it is not known how values of 7 are compared"},              // a float
		{postgres, "SELECT SUM(paid) / ROUND(7 * 100) FROM orders", "it is not known how values of 7 * 100 are compared"}, // a float
		{postgres, "SELECT ROUND(NULLIF(MIN(paid), NULL)) FROM orders", "only + - * /"},                                   // a float
		{mysql, "SELECT CAST(SUM(paid) * 1e2 AS DECIMAL(9, 1)) FROM orders", "only + - * /"},
		{maria, "SELECT CAST(COALESCE(SUM(paid), 1e2) + 1 AS DECIMAL(9, 1)) FROM orders", "only + - * /"},
		{mysql, "SELECT CAST(COUNT(*) * 2.5e-1 AS SIGNED) FROM orders", "only + - * /"},
		{sqlite, "SELECT 1 FROM orders HAVING COUNT(*) > 0", "HAVING without GROUP BY and aggregates"}, // SQLite refuses it, too
		{postgres, "SELECT CASE WHEN SUM(paid) > 1 THEN 'a' ELSE 'b' END AS size FROM orders GROUP BY user_id + 1 ORDER BY size", "order by numbers"},
		{mysql, "SELECT user_id + 1 FROM orders GROUP BY user_id + 1 ORDER BY CASE WHEN SUM(paid) > 1 THEN 'a' ELSE 'b' END", "order by numbers"},
		{mysql, "SELECT CASE WHEN SUM(paid) > 1 THEN 'a' ELSE 'b' END AS size FROM orders GROUP BY user_id + 1 HAVING size = 'a'", "only + - * /"},
		{mysql, "SELECT CASE WHEN SUM(paid) > 1 THEN 'a' ELSE 1 END FROM orders GROUP BY user_id + 1", "only + - * /"},
		{postgres, "SELECT SUM(rate)::float(24) FROM orders", "only + - * /"},
		{postgres, "SELECT paid, COUNT(*) AS n FROM orders GROUP BY paid HAVING n > 1", "accepts no alias"},
		{postgres, "SELECT COALESCE(MAX(paid), ARRAY[]) FROM orders", "it is not known how values of ARRAY[] are compared"},
		{sqlite, "SELECT MAX(word) FROM orders GROUP BY paid ORDER BY MAX(word)", "SQLite sorts it by bytes"},
	} {
		_, err := bound(t, refused.options, refused.text)
		var reason *sharding.RouteError
		if !errors.As(err, &reason) || !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(reason.Hint, refused.why) {
			t.Errorf("%s is refused with %v, and not because %s", refused.text, err, refused.why)
		}
	}
}

// The first key of the order says how an expression compares.
func TestAnExpressionComparesAsTheDatabaseComparesIt(t *testing.T) {
	kinds := []string{"?", "integer", "decimal", "float", "bytes", "time", "duration", "stored"}
	for _, sorted := range []struct {
		options analysis.Options
		kind    string // "?" if it is not known
		exprs   string
	}{
		{mysql, "integer", "id;-paid;paid + 1;paid & 1;paid DIV 2;paid > 1;LENGTH(name);YEAR(at);WEEK(at);WEEK(at, 1);YEARWEEK(at, 1);EXTRACT(YEAR FROM at);" +
			"CRC32(name);state;IF(paid, 1, 2);NULLIF(paid, 1);NULLIF(paid, user_id);COALESCE(paid, 0);COALESCE(paid, NULL);ROUND(paid);CAST(name AS SIGNED);CONVERT(name, UNSIGNED INTEGER);CASE WHEN paid THEN 1 ELSE 2 END"},
		{mysql, "decimal", "total;total * 2;paid / 2;ROUND(total, 1);ABS(total);UNIX_TIMESTAMP(at);GREATEST(total, paid);CAST(name AS DECIMAL(9, 2));COALESCE(total, 0.5);NULLIF(total, 1)"},
		{mysql, "float", "rate;small;rate + paid;CAST(name AS DOUBLE);COALESCE(rate, paid)"},
		{mysql, "bytes", "name;LOWER(name);SUBSTR(name, 1, 2);LEFT(name, 2);HEX(name);MD5(name);DATE_FORMAT(at, '%Y-%m');DATE_FORMAT(at, '%M');DAYNAME(at);CONCAT(name, '-', paid);CONCAT(paid, '-');" +
			"CAST(at AS CHAR);CASE WHEN paid THEN 'a' ELSE 'b' END;IF(paid, name, 'x');NULLIF(name, 'x');IF(paid, name, nick)"},
		{mysql, "time", "at;DATE(at);LAST_DAY(at);DATE_ADD(at, INTERVAL 1 DAY);at + INTERVAL 1 DAY;FROM_UNIXTIME(paid);CAST(at AS DATE);COALESCE(at, at)"},
		{mysql, "duration", "took;TIME(at);CAST(at AS TIME(3))"},
		{mysql, "?", "MAX(name) OVER (PARTITION BY user_id);json;other;EXTRACT(YEAR FROM name);ROUND(name);ROUND(total, paid);ROUND();GREATEST(name, 'x');NULLIF(paid, total);CAST(name AS CHAR(3));CAST(name AS BINARY);CAST(took AS DATE);" +
			"LAG(paid, 1, 0.5) OVER (PARTITION BY user_id ORDER BY id);DATE_FORMAT(at, '%D');DATE_FORMAT(name, '%Y');COALESCE(paid, name);COALESCE(paid, 'x');COALESCE(state, state);IF(paid, 1e2, 2);CONCAT(name, json);CASE END;CASE paid WHEN 1 THEN json END;(SELECT 1, 2 FROM countries);INSERT(name, 1, 1, 'x');MONTH(name)"},
		{maria, "?", "NULLIF(paid, 1)"},
		{postgres, "integer", "id;paid # 1;paid << 1;paid::int;CAST(rate AS bigint);LENGTH(label)"},
		{postgres, "integer", "paid::text;to_char(at, 'Month');to_char(paid, '99');label COLLATE \"de-x-icu\";(label || 'a') COLLATE public.de;lower(title) COLLATE \"sv\""}, // their ranks
		{postgres, "decimal", "total;EXTRACT(YEAR FROM at);ROUND(total, 1);ROUND(paid, 1);paid * total;paid::numeric(9, 2);paid::decimal;NULLIF(total, 1)"},
		{postgres, "float", "rate;ROUND(rate);ROUND(paid);date_part('year', at);paid::float8;CAST(paid AS double precision)"},
		{postgres, "bytes", "label COLLATE \"C\";(label || 'a') COLLATE \"C\";paid::text COLLATE \"C\";label COLLATE pg_catalog.\"POSIX\";to_char(at, 'YYYY-MM');concat(label, 'a') COLLATE \"C\""},
		{postgres, "time", "at;date_trunc('month', at);at::date;at::timestamp(3);at + INTERVAL '1 day';at::date - 7;at::date + 1 - INTERVAL '1 day'"},
		{postgres, "?", "at::date - at::date;at::date - $1;at::date - 3000000000;label;label || 'a';paid COLLATE \"de\";(label COLLATE \"de\") || 'a';at::timestamp(3) with time zone;paid::public.money;GREATEST(total, 1);small * small;total # 1;concat(json);coalesce(at, $1);ROUND(paid, 2, 3)"},
		{sqlite, "stored", "id + 1;lower(name) COLLATE NOCASE;CAST(word AS TEXT);count(*) OVER (PARTITION BY user_id);paid / 2;word"},
		{sqlite, "?", "+word;(SELECT word FROM countries);lower(name) COLLATE other"},
	} {
		for expr := range strings.SplitSeq(sorted.exprs, ";") {
			got := "?"
			if s, err := bound(t, sorted.options, "SELECT user_id FROM orders ORDER BY "+expr, "x"); err == nil && len(s.Order) > 0 {
				got = kinds[s.Order[0].Type.Kind]
			}
			if got != sorted.kind {
				t.Errorf("%s compares as %s, not as %s", expr, got, sorted.kind)
			}
		}
	}
}

// The least text of a group is a text with the collation of its column, in which a database is asked for its order.
func TestTheLeastTextOfPostgreSQLKeepsItsCollation(t *testing.T) {
	const ofUsers = " FROM (SELECT user_id, MIN(title) AS m FROM orders GROUP BY user_id) AS t "
	for text, want := range map[string]string{
		"SELECT m" + ofUsers + "ORDER BY m":                                                  "[{shardid_1 COLLATE public.de}]",
		"SELECT m" + ofUsers + "ORDER BY CONCAT(m, 'x')":                                     "[{shardid_1 COLLATE public.de}]",
		"SELECT m" + ofUsers + "ORDER BY LOWER(m)":                                           "[{shardid_1 COLLATE public.de}]",
		"SELECT MAX(m::text)" + ofUsers:                                                      "[{shardid_1 COLLATE public.de}]",
		"SELECT m" + ofUsers + "ORDER BY m COLLATE \"C\"":                                    "[]",
		"SELECT m, COUNT(*)" + ofUsers + "GROUP BY m":                                        "[]",
		"SELECT COUNT(DISTINCT m)" + ofUsers:                                                 "[]",
		"SELECT user_id FROM orders GROUP BY user_id ORDER BY MIN(title) COLLATE \"C\"":      "[]",
		"SELECT MIN(title) FROM orders UNION ALL SELECT MIN(title) FROM orders WHERE id > 1": "[{shardid_2 COLLATE public.de}]",
	} {
		s, err := bound(t, postgres, text)
		if err != nil || fmt.Sprint(s.Asked) != want {
			t.Errorf("%s: %+v, %v, and not %s", text, s, err, want)
			continue
		}
		for _, key := range slices.Concat(s.Order, s.Distinct, cmp.Or(s.Group, &combine.Group{}).Keys) {
			if (key.Type.Kind == merge.Integer) != (want != "[]") {
				t.Errorf("%s compares as %v", text, key.Type.Kind)
			}
		}
	}
	if _, err := bound(t, postgres, "SELECT MIN(title) FROM orders UNION ALL SELECT MIN(motto) FROM orders"); err == nil {
		t.Error("one column of texts has two orders")
	}
}

func TestOnSQLiteAColumnHasItsCollationAndAnAggregateOfItHasNone(t *testing.T) {
	for text, want := range map[string]merge.Collation{
		"SELECT word FROM orders ORDER BY word":                                                       merge.NoCase,
		"SELECT word FROM orders ORDER BY word COLLATE rtrim":                                         merge.RTrim,
		"SELECT m FROM (SELECT user_id, MAX(word) AS m FROM orders GROUP BY user_id) AS t ORDER BY m": merge.Binary,
	} {
		s, err := bound(t, sqlite, text)
		if err != nil || s.Order[0].Type.Collation != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
}

// The functions of the columns of a combined group are what is done with those of the shards; a computed column takes any.
func TestAnAggregateIsCombinedOrComputedFromAggregates(t *testing.T) {
	for _, group := range []struct {
		options  analysis.Options
		computed bool
		exprs    string
	}{
		{mysql, false, "COUNT(*);SUM(paid);SUM(small);MIN(name);MAX(state);COUNT(DISTINCT name, paid);SUM(DISTINCT total);ANY_VALUE(json);COALESCE(MAX(name), 'none');DATE(MAX(at));CONVERT(MAX(at), DATE);TIMESTAMPDIFF(DAY, MAX(at), MAX(at));LOWER(MIN(name));1;NULL;?"},
		{mysql, true, "CASE WHEN SUM(paid) > ? THEN 'much' END;IF(COUNT(*) > 3, 'many', 'few');AVG(paid);SUM(paid) / COUNT(*);-SUM(paid);SUM(paid) - 1e1;ROUND(SUM(total), 2);ROUND(SUM(total));COALESCE(SUM(paid), 0);IFNULL(AVG(total), 0);NULLIF(SUM(paid), 0);IF(SUM(paid) BETWEEN 1 AND 2, 1, NULL);" +
			"CASE WHEN NOT (SUM(paid) > 1 AND MAX(id) <> 2) THEN 1 ELSE 0 END;CASE WHEN MAX(paid) NOT BETWEEN 1 AND 2 THEN 1 END;FLOOR(SUM(total));CAST(SUM(paid) AS SIGNED);CAST(AVG(paid) AS DECIMAL);CAST(SUM(total) AS DECIMAL(9, 1));ROUND(SUM(total), 1) / 3;MAX(paid) IS NULL"},
		{maria, true, "ROUND(SUM(rate), 2) + 1"},
		{postgres, false, "COUNT(*) FILTER (WHERE paid > 1);MAX(at)::date;EXTRACT(YEAR FROM MAX(at));bool_and(paid > 1);pg_catalog.count(*)"},
		{postgres, true, "AVG(paid) FILTER (WHERE paid > 1);SUM(paid)::numeric;SUM(total)::numeric;SUM(total) / 1e-2;SUM(paid)::float8;AVG(total)::numeric(9, 2);COALESCE(SUM(total), 0);COALESCE(SUM(total), 0.5);COALESCE(MAX(rate), 0);FLOOR(SUM(total));SUM(paid) * 5::int"},
		{sqlite, false, "COUNT(*);SUM(word);MAX(word)"},
		{sqlite, true, "iif(SUM(paid) > 9, 'much', NULL);AVG(paid);-SUM(paid);iif(SUM(paid) > 1.5, 1, 0)"},
	} {
		for expr := range strings.SplitSeq(group.exprs, ";") {
			s, err := bound(t, group.options, "SELECT "+expr+", COUNT(*) FROM orders", int64(1))
			switch {
			case err != nil:
				t.Errorf("%s: %v", expr, err)
			case (s.Group.Made[0] != nil) != group.computed:
				t.Errorf("%s is computed: %v", expr, !group.computed)
			}
		}
	}
}

func TestArgumentsThatDecideAResultMustBeKnownNumbers(t *testing.T) {
	const limited, having, chosen = "SELECT id FROM orders LIMIT ? OFFSET ?", "SELECT paid FROM orders GROUP BY paid HAVING SUM(paid) > ?", "SELECT id FROM orders ORDER BY COALESCE(paid, ?)"
	for _, of := range []struct {
		text string
		args []any
		want string // of the error
	}{
		{limited, []any{2, int64(1)}, ""},
		{limited, []any{-1, 0}, "integers from 0, not -1"},
		{limited, []any{1, "x"}, "integers from 0, not x"},
		{limited, []any{1}, "integers from 0"},
		{having, []any{1}, ""},
		{having, []any{1.5}, ""},
		{having, []any{nil}, ""},
		{having, []any{"1"}, "HAVING compares with a string; pass it as a number, or write the number into the text"},
		{having, []any{struct{}{}}, "unsupported type"},
		{chosen, []any{1}, ""},
		{chosen, []any{nil}, ""},
		{chosen, []any{1.5}, "pass a whole number"},
		{chosen, []any{struct{}{}}, "argument 1"},
	} {
		_, err := bound(t, mysql, of.text, of.args...)
		if (err == nil) != (of.want == "") || err != nil && !strings.Contains(err.Error(), of.want) {
			t.Errorf("%s with %v: %v", of.text, of.args, err)
		}
	}
	s, err := bound(t, sqlite, "SELECT id FROM orders LIMIT ? OFFSET ?", -1, -1)
	if err != nil || s.Count != -1 || s.Offset != 0 {
		t.Errorf("on SQLite, a negative LIMIT is none: %v, %v", s, err)
	}
}

func TestAShardReturnsAsManyRowsAsLimitAndOffsetTogether(t *testing.T) {
	for text, want := range map[string]int64{
		"SELECT id FROM orders LIMIT 2 OFFSET 3":                   5,
		"SELECT id FROM orders LIMIT 9223372036854775807 OFFSET 1": -1,
		"SELECT DISTINCT name FROM orders LIMIT 2":                 -1, // 'a' and 'a ' may be two rows of a shard
		"SELECT DISTINCT paid FROM orders LIMIT 2":                 2,
		"SELECT paid FROM orders GROUP BY paid LIMIT 2":            -1,
		"SELECT paid FROM orders WHERE id = 1":                     1,
		"SELECT paid FROM orders":                                  -1,
	} {
		s, err := bound(t, mysql, text)
		if err != nil || s.Most != want {
			t.Errorf("%s: a shard returns %v rows, not %d; %v", text, s, want, err)
		}
	}
}

// shard returns rows, each of which is a list of values.
type shard struct {
	columns string
	rows    [][]driver.Value
}

func (s *shard) Columns() []string { return strings.Fields(s.columns) }
func (s *shard) Close() error      { return nil }

func (s *shard) Next(dest []driver.Value) error {
	if len(s.rows) == 0 {
		return io.EOF
	}
	copy(dest, s.rows[0])
	s.rows = s.rows[1:]
	return nil
}

func TestRowsOfTwoShardsBecomeThoseOfOneTable(t *testing.T) {
	type rows = [][]driver.Value
	n := func(values ...int64) (row []driver.Value) {
		for _, v := range values {
			row = append(row, v)
		}
		return row
	}
	for _, of := range []struct {
		text        string
		left, right rows // with the hidden columns behind the selected ones
		want        string
	}{
		{"SELECT id FROM orders", rows{n(1), n(4)}, rows{n(2)}, "[[1] [4] [2]]"},
		{"SELECT id FROM orders ORDER BY id DESC LIMIT 2", rows{n(4, 4), n(1, 1)}, rows{n(3, 3)}, "[[4] [3]]"},
		{"SELECT DISTINCT paid FROM orders", rows{n(1, 1), n(2, 2)}, rows{n(2, 2)}, "[[1] [2]]"},
		{"SELECT COUNT(*) FROM (SELECT DISTINCT paid FROM orders) AS t", rows{n(1, 1), n(2, 2)}, rows{n(2, 2)}, "[[2]]"},
		{"SELECT COUNT(*) FROM orders", rows{n(2)}, rows{n(3)}, "[[5]]"},
		{"SELECT MAX(id) FROM orders HAVING COUNT(*) > 9", rows{n(7, 2)}, rows{n(9, 3)}, "[]"},
		{"SELECT MAX(id) FROM orders HAVING COUNT(*) NOT BETWEEN 1 AND 2", rows{n(7, 2)}, rows{n(9, 3)}, "[[9]]"},
		{"SELECT id, SUM(paid) OVER (ORDER BY id) FROM orders ORDER BY id", rows{n(1, 0, 10, 1), n(3, 0, 30, 3)}, rows{n(2, 0, 20, 2)}, "[[1 10] [2 30] [3 60]]"},
		{"SELECT paid, MAX(id) FROM orders GROUP BY paid ORDER BY paid DESC", rows{n(1, 5, 1), n(2, 6, 2)}, rows{n(1, 7, 1)}, "[[2 6] [1 7]]"},
		{"SELECT COUNT(*) FROM (SELECT paid FROM orders GROUP BY paid) AS t", rows{n(1, 1), n(2, 2)}, rows{n(1, 1)}, "[[2]]"},
		{"SELECT paid, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY paid", rows{n(1, 0, 1, 1, 0), n(2, 0, 2, 1, 0)}, rows{n(1, 0, 1, 1, 0)}, "[[1 2] [2 1]]"},
		{"SELECT id, COUNT(*) OVER () FROM orders", rows{n(1, 1)}, rows{n(2, 1)}, "[[1 2] [2 2]]"},
		{"SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM orders ORDER BY id", rows{n(1, 1, 1), n(3, 2, 3)}, rows{n(2, 1, 2)}, "[[1 1] [2 2] [3 3]]"},
	} {
		s, err := bound(t, postgres, of.text)
		if err != nil {
			t.Errorf("%s: %v", of.text, err)
			continue
		}
		columns := strings.Repeat("c ", len(of.left[0]))
		all := s.Rows(postgres.Merge, []merge.Rows{&shard{columns, of.left}, &shard{columns, of.right}}, merge.NewMemory(1<<20))
		got := rows{}
		for {
			row := make([]driver.Value, len(all.Columns()))
			if err = all.Next(row); err != nil {
				break
			}
			got = append(got, row)
		}
		if written := fmt.Sprint(got); written != of.want || !errors.Is(err, io.EOF) {
			t.Errorf("%s returns %s, not %s; %v", of.text, written, of.want, err)
		}
	}
}

// Run with -race.
func TestCombiningOnlyReadsTheAnalysis(t *testing.T) {
	b := analyzed(t, mysql, "SELECT id, GROUP_CONCAT(name), ROW_NUMBER() OVER (PARTITION BY id ORDER BY id) FROM orders GROUP BY id")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, _, refused := combine.Of(b); refused != nil {
				t.Error(refused)
			}
		})
	}
	all.Wait()
}

func TestABroadcastTableThatTheHomeDatabaseLacksIsNamed(t *testing.T) {
	o := mysql
	o.Schema = map[string]catalog.Table{"orders": schema["orders"]}
	b := analysis.Of(sqlparse.Parse("SELECT o.id FROM orders o CROSS JOIN countries c ORDER BY c.code", o.Reads), testshards.ByUser(t, "countries", "orders"), o)
	_, untyped, refused := combine.Of(b)
	if !untyped || refused == nil || !strings.Contains(refused.Error(), "it is not known how values of c.code are compared, because the columns of the broadcast table countries are not known; create it in the home database, too") {
		t.Errorf("%v, %v", untyped, refused)
	}
}

func TestOnlyTheTypeOfAColumnMayBeMissing(t *testing.T) {
	for text, want := range map[string]bool{"SELECT DISTINCT other FROM orders": true, "SELECT DISTINCT other + 1 FROM orders": true, "SELECT DISTINCT LOWER(json) FROM orders": false, "SELECT paid FROM orders GROUP BY paid WITH ROLLUP": false} {
		if _, untyped, refused := combine.Of(analyzed(t, mysql, text)); untyped != want || refused == nil {
			t.Errorf("%s lacks only a type: %v; %v", text, untyped, refused)
		}
	}
}

func TestASubqueryMayReturnANumberUnlessItIsKnownNotTo(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT paid FROM orders": true, "SELECT SUM(paid) FROM orders": true, "SELECT other FROM orders": true, "SELECT * FROM orders": true, "SELECT small FROM orders": true,
		"SELECT 1 UNION SELECT 2": true,
		"SELECT name FROM orders": false, "SELECT at FROM orders": false, "SELECT paid, id FROM orders": false, "SELECT MAX(name) FROM orders": false, "DELETE FROM orders": false,
	} {
		if got := combine.MayBeNumber(analyzed(t, mysql, text)); got != want {
			t.Errorf("%s may be a number: %v", text, got)
		}
	}
}

func TestANegatedExpressionIsTheOneBehindTheSign(t *testing.T) {
	for text, want := range map[string]string{"-paid": "paid", "- (paid + 1)": "(paid + 1)", "(-paid)": "paid", "+paid": "", "~paid": "", "paid - 1": "", "paid": ""} {
		text = "SELECT " + text + " FROM orders"
		e := combine.Negated(analyzed(t, mysql, text).Statement.Query.Parts[0].Select.Items[0].Expr, text)
		if (e == nil) != (want == "") || e != nil && e.Bytes().Of(text) != want {
			t.Errorf("%s negates %v", text, e)
		}
	}
}

func TestTheSourcesOfAJoinAreInTheOrderOfTheText(t *testing.T) {
	b := analyzed(t, mysql, "SELECT 1 FROM orders a JOIN (items b JOIN countries c) ON 1 = 1, (SELECT 1) d")
	var names []string
	for _, s := range combine.SourcesIn(b.Statement.Query.Parts[0].Select.From) {
		if names = append(names, s.Alias.Name); s.Table != nil {
			names[len(names)-1] = s.Table.Alias.Name
		}
	}
	if got := strings.Join(names, ""); got != "abcd" {
		t.Error(got)
	}
}
