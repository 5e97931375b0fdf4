// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestSubqueriesThatMayBeExecutedFirstAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders)":                                                 "compared scalar (SELECT AVG(total) FROM orders)",
		"SELECT id FROM orders WHERE user_id IN (SELECT id FROM users) AND total + (SELECT 1) < 5":                            "compared list (SELECT id FROM users) scalar (SELECT 1)",
		"SELECT id FROM orders WHERE id BETWEEN (SELECT 1) AND (SELECT 2)":                                                    "compared scalar (SELECT 1) compared scalar (SELECT 2)",
		"SELECT COALESCE((SELECT 1), 0) AS n, (SELECT 2) AS m, (SELECT 3) FROM orders":                                        "scalar (SELECT 1) scalar (SELECT 2)",
		"SELECT id FROM orders HAVING COUNT(*) > (SELECT 1) ORDER BY (SELECT 2)":                                              "compared scalar (SELECT 1)",
		"SELECT id FROM orders GROUP BY (SELECT 1)":                                                                           "",
		"SELECT id FROM orders WHERE total > ANY (SELECT total FROM orders) OR EXISTS (SELECT 1) OR (id, 1) IN (SELECT 1, 1)": "compared list (SELECT 1, 1)",
		"SELECT d.id FROM (SELECT id FROM orders WHERE id > (SELECT 1)) AS d JOIN users u ON u.id = (SELECT 2)":               "compared scalar (SELECT 1) compared scalar (SELECT 2)",
		"SELECT 1 UNION SELECT id FROM orders WHERE id > (SELECT 1)":                                                          "compared scalar (SELECT 1)",
		"WITH w AS (SELECT 1) SELECT id FROM orders WHERE id > (SELECT 1)":                                                    "",
		"SELECT id FROM orders WHERE id > (SELECT 1) AND id = :id":                                                            "",
		"SELECT id FROM orders WHERE ? > (SELECT 1) AND id + ? IN (SELECT 2)":                                                 "scalar (SELECT 1) list (SELECT 2)",
		"SELECT id FROM orders WHERE id > ANY ((SELECT 1)) OR id IN (((SELECT 2)))":                                           "compared list (((SELECT 2)))",
		"SELECT id FROM orders WHERE id IN ((SELECT 1) LIMIT 2)":                                                              "",
		"SELECT ROUND(total, (SELECT 1)) AS r, ROUND((SELECT 2)) AS s FROM orders":                                            "scalar (SELECT 2)",
		"UPDATE orders SET total = (SELECT 1) WHERE user_id = 5":                                                              "",
	} {
		var all []string
		for _, s := range plan.Subqueries(listed(t, text, sqlparse.MySQL)) {
			if s.Compared {
				all = append(all, "compared")
			}
			all = append(all, map[bool]string{true: "list", false: "scalar"}[s.List], s.Of(text))
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s:\n%s\nwant %s", text, got, want)
		}
	}
}

func TestTheArgumentsOfASubqueryAreTakenFromThoseOfTheQuery(t *testing.T) {
	for _, c := range []struct {
		family                     sqlparse.Family
		text, executed, substitute string
	}{
		{
			sqlparse.MySQL, "SELECT id FROM orders WHERE qty = ? AND total > (SELECT AVG(total) FROM orders WHERE qty < ?) AND id > ?",
			"SELECT AVG(total) FROM orders WHERE qty < ? [1]", "SELECT id FROM orders WHERE qty = ? AND total > (7.5) AND id > ? [0 2]",
		},
		{
			sqlparse.PostgreSQL, "SELECT id FROM orders WHERE qty = $3 AND total > (SELECT AVG(total) FROM orders WHERE qty < $2 OR qty > $3) AND id > $1",
			"SELECT AVG(total) FROM orders WHERE qty < $1 OR qty > $2 [1 2]", "SELECT id FROM orders WHERE qty = $2 AND total > (7.5) AND id > $1 [0 2]",
		},
		{
			sqlparse.SQLite, "SELECT id FROM orders WHERE total > (SELECT AVG(total) FROM orders WHERE qty < ?2) AND id > ?1",
			"SELECT AVG(total) FROM orders WHERE qty < ?1 [1]", "SELECT id FROM orders WHERE total > (7.5) AND id > ?1 [0]",
		},
	} {
		p := listed(t, c.text, c.family)
		all := plan.Subqueries(p)
		if len(all) != 1 {
			t.Fatalf("%s: %d subqueries", c.text, len(all))
		}
		text, args := plan.Executed(p, all[0])
		if got := fmt.Sprint(text, " ", args); got != c.executed {
			t.Errorf("%s:\n%s\nwant %s", c.text, got, c.executed)
		}
		text, args = plan.Substituted(p, all, []plan.Result{{Text: "7.5"}})
		if got := fmt.Sprint(text, " ", args); got != c.substitute {
			t.Errorf("%s:\n%s\nwant %s", c.text, got, c.substitute)
		}
	}
}

func TestTheValuesOfASubqueryFollowTheArgumentsOfItsQuery(t *testing.T) {
	for _, c := range []struct {
		family     sqlparse.Family
		text, want string
	}{
		{sqlparse.MySQL, "SELECT id FROM orders WHERE a = ? AND b IN (SELECT b FROM orders WHERE c = ?) AND d = ?", "SELECT id FROM orders WHERE a = ? AND b IN (?, NULL, ?) AND d = ? [0 3 4 2]"},
		{sqlparse.PostgreSQL, "SELECT id FROM orders WHERE a = $3 AND b IN (SELECT b FROM orders WHERE c = $2) AND d = $1", "SELECT id FROM orders WHERE a = $2 AND b IN ($3, NULL, $4) AND d = $1 [0 2 3 4]"},
		{sqlparse.PostgreSQL, "SELECT id FROM orders WHERE b IN (SELECT b FROM orders)", "SELECT id FROM orders WHERE b IN ($1, NULL, $2) [0 1]"},
		{sqlparse.SQLite, "SELECT id FROM orders WHERE a = ?1 AND b IN (SELECT b FROM orders WHERE c = ?1)", "SELECT id FROM orders WHERE a = ?1 AND b IN (?2, NULL, ?3) [0 1 2]"},
	} {
		p := listed(t, c.text, c.family)
		text, args := plan.Substituted(p, plan.Subqueries(p), []plan.Result{{Text: "?, NULL, ?", Values: 2}})
		if got := fmt.Sprint(text, " ", args); got != c.want {
			t.Errorf("%s:\n%s\nwant %s", c.text, got, c.want)
		}
	}
}
