// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestOnlyAQueryThatLeavesNoStateInItsSessionIsStateless(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]bool{
		"SELECT * FROM coupons WHERE code = ?":                                  true,
		"SELECT UPPER(code), COUNT(*) FROM coupons GROUP BY UPPER(code)":        true,
		"WITH c AS (SELECT code FROM coupons) SELECT * FROM c UNION SELECT 1":   true,
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
		p := plan.Of(sqlparse.Parse(text, dialects["mysql"]), w.router.Snapshot(), plan.Options{Quote: func(name string) string { return name }})
		if p.Stateless() != want {
			t.Errorf("%s: quiet %v", text, p.Stateless())
		}
	}
}
