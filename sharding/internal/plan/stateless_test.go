// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestOnlyAQueryThatLeavesNoStateInItsSessionIsStateless(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]bool{
		"SELECT * FROM coupons WHERE code = ?":                                  true,
		"SELECT UPPER(code), COUNT(*) FROM coupons GROUP BY UPPER(code)":        true,
		"WITH c AS (SELECT code FROM coupons) SELECT * FROM c UNION SELECT 1":   true,
		"SELECT code FROM coupons WHERE code = 'a@x' OR code = 'into'":          true,
		"SELECT code AS `@a` FROM coupons -- into @a":                           true,
		"UPDATE coupons SET used = 1":                                           false,
		"INSERT INTO coupons (code) VALUES (?)":                                 false,
		"SELECT GET_LOCK('x', 1)":                                               false,
		"SELECT * FROM coupons WHERE code = (SELECT GET_LOCK('x', 1))":          false,
		"SELECT 1 UNION SELECT RELEASE_LOCK('x')":                               false,
		"SELECT @a := code FROM coupons":                                        false,
		"SELECT code FROM coupons ORDER BY (@n := @n + 1)":                      false,
		"SELECT code INTO @a FROM coupons":                                      false,
		"SELECT SQL_CALC_FOUND_ROWS * FROM coupons LIMIT 1":                     false,
		"SELECT FOUND_ROWS()":                                                   false,
		"SELECT LAST_INSERT_ID(used + 1) FROM coupons":                          false,
		"SELECT NEXTVAL(numbers)":                                               false,
		"SELECT /*!50000 GET_LOCK('x', 1), */ 1":                                false,
		"SELECT * FROM coupons WHERE code IN (SELECT SLEEP(used) FROM coupons)": false,
		"SET @a = 1":                           false,
		"CREATE TEMPORARY TABLE mine (id INT)": false,
		"CALL something()":                     false,
	} {
		p := plan.Of(sqlparse.Parse(text, dialects["mysql"]), w.router.Snapshot(), analysis.Options{Reads: dialects["mysql"], Quote: func(name string) string { return name }})
		if p.Stateless != want {
			t.Errorf("%s: stateless is %v", text, p.Stateless)
		}
	}
}

func TestAnOperatorOfPostgreSQLIsNoVariable(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]bool{
		"SELECT code FROM coupons WHERE tags @> ARRAY['a'] AND words @@ 'b'": true,
		"SELECT code INTO copied FROM coupons WHERE tags @> ARRAY['a']":      false,
	} {
		p := plan.Of(sqlparse.Parse(text, dialects["postgres"]), w.router.Snapshot(), analysis.Options{Reads: dialects["postgres"], Merge: merge.Dialect{Engine: merge.PostgreSQL}, Quote: func(name string) string { return name }})
		if p.Stateless != want {
			t.Errorf("%s: stateless is %v", text, p.Stateless)
		}
	}
}

func TestOnlyAQueryWithoutTablesAndUnknownFunctionsMayBeSentToAnyDatabase(t *testing.T) {
	w := newWorld(t)
	type answer struct{ anywhere, nowhere bool }
	never, always, begun := answer{}, answer{true, true}, answer{true, false}
	for _, c := range []struct {
		dialect, text string
		want          answer
	}{
		{"mysql", "SELECT 1", always},
		{"mysql", "SELECT NOW(), UUID(), ? + 1", always},
		{"mysql", "WITH n AS (SELECT 1 AS i) SELECT i FROM n", always},
		{"mysql", "SELECT code FROM coupons", never},
		{"mysql", "SELECT (SELECT COUNT(*) FROM coupons)", never},
		{"mysql", "SELECT DATABASE()", never},
		{"mysql", "SELECT CURRENT_USER", never},
		{"mysql", "SELECT @x", never},
		{"mysql", "SELECT @@version", never},
		{"mysql", "SELECT LAST_INSERT_ID()", never},
		{"mysql", "SELECT GET_LOCK('x', 1)", never},
		{"mysql", "SELECT own_function(1)", never},
		{"mysql", "SET @x = 1", never},
		{"sqlite", "SELECT CURRENT_TIMESTAMP", always},
		{"sqlite", "SELECT changes()", never},
		{"postgres", "SELECT 1", always},
		{"postgres", "SELECT NOW()", begun}, // of the transaction
		{"postgres", "SELECT current_user", never},
		{"postgres", "SELECT current_setting('TimeZone')", never},
		{"postgres", "SELECT nextval('numbers')", never},
		{"postgres", "SELECT 'coupons'::regclass", never},
	} {
		to, err := w.plan(c.dialect, c.text).Bind([]any{int64(1)}, sharding.Hint{})
		if got := (answer{to.Anywhere, to.Nowhere}); err != nil || to.Kind != plan.Home || got != c.want {
			t.Errorf("%s: %s: %+v, %v", c.dialect, c.text, got, err)
		}
	}
}
