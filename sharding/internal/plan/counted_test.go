// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// The shards get the inner query alone, so no database looks at the outer one.
func TestCombinedRowsAreCountedOnlyWhereOneTableWouldCountThem(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		dialect, text string
		name          string // of the result's column, "" if the query is refused
	}{
		{"mysql", "SELECT COUNT(*) FROM (SELECT paid FROM orders GROUP BY paid) AS t", "COUNT(*)"},
		{"mysql", "SELECT count( * ) FROM (SELECT paid FROM orders GROUP BY paid) AS t", "count( * )"},
		{"mysql", "SELECT COUNT(*) AS CamelCase FROM (SELECT paid FROM orders GROUP BY paid) AS t", "CamelCase"},
		{"postgres", "SELECT COUNT(*) AS CamelCase FROM (SELECT paid FROM orders GROUP BY paid) AS t", ""},
		{"postgres", `SELECT COUNT(*) AS n FROM (SELECT paid FROM orders GROUP BY paid) AS t`, "n"},
		{"mysql", "SELECT (COUNT(*)) FROM (SELECT paid FROM orders GROUP BY paid) AS t", ""},
		{"mysql", "SELECT COUNT(*) AS ' lit' FROM (SELECT paid FROM orders GROUP BY paid) AS t", ""},
		{"mysql", "SELECT COUNT (*) FROM (SELECT paid FROM orders GROUP BY paid) AS t", ""},
		{"postgres", "SELECT COUNT (*) FROM (SELECT paid FROM orders GROUP BY paid) AS t", "count"},
		{"mysql", "SELECT COUNT(*) FROM (SELECT paid FROM orders GROUP BY paid)", ""},
		{"sqlite", "SELECT COUNT(*) FROM (SELECT paid FROM orders GROUP BY paid)", "COUNT(*)"},
		{"mysql", "SELECT COUNT(*) FROM (SELECT paid, Paid FROM orders GROUP BY paid) AS t", ""},
		{"mysql", "SELECT COUNT(*) FROM (SELECT COUNT(*), COUNT(*) FROM orders GROUP BY paid) AS t", ""},
		{"mysql", "SELECT COUNT(*) FROM (SELECT COUNT(*) AS a, SUM(id) AS A FROM orders GROUP BY paid) AS t", ""},
		{"mysql", "SELECT COUNT(*) FROM (SELECT *, id FROM orders LIMIT 3) AS t", ""},
		{"mysql", "SELECT COUNT(*) FROM (SELECT * FROM orders LIMIT 3) AS t", "COUNT(*)"},
		{"mysql", "SELECT COUNT(*) FROM (SELECT * FROM orders o JOIN items i ON i.user_id = o.user_id LIMIT 3) AS t", ""},
		{"postgres", "SELECT COUNT(*) FROM (SELECT paid, paid FROM orders GROUP BY paid) AS t", "count"},
		{"mysql", "WITH t AS (SELECT paid FROM orders GROUP BY paid) SELECT COUNT(*) FROM t", "COUNT(*)"},
		{"mysql", "WITH t AS (SELECT paid FROM orders GROUP BY paid) SELECT COUNT(*) FROM T", ""},
		{"mysql", "WITH t AS (SELECT paid, paid FROM orders GROUP BY paid) SELECT COUNT(*) FROM t", ""},
		{"sqlite", "WITH orders AS (SELECT paid FROM orders GROUP BY paid) SELECT COUNT(*) FROM orders", ""},
	} {
		to, err := w.plan(c.dialect, c.text).Bind(nil, sharding.Hint{})
		switch {
		case c.name == "" && (!errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrRawTable)):
			t.Errorf("%s, %s: %v, %v; want a refusal", c.dialect, c.text, to, err)
		case c.name != "" && (err != nil || to.Shards.Counted != c.name):
			t.Errorf("%s, %s: %v, %v; want the column %s", c.dialect, c.text, to, err, c.name)
		}
	}
}

// MySQL and MariaDB give an average all of its digits, or only those that it shows, depending on how they group.
func TestAnAverageInAnExpressionIsCombinedOnlyIfItsDigitsAreKnown(t *testing.T) {
	w := newWorld(t)
	for text, answered := range map[string]bool{
		"SELECT paid, ROUND(AVG(id), 2), COUNT(DISTINCT user_id) FROM orders GROUP BY paid":                                true,
		"SELECT paid, ROUND(AVG(id), 2), COUNT(DISTINCT user_id) FROM orders GROUP BY paid ORDER BY paid":                  true,
		"SELECT ROUND(AVG(id), 2), COUNT(DISTINCT user_id) FROM orders":                                                    true,
		"SELECT paid, AVG(id), COUNT(DISTINCT user_id) AS c FROM orders GROUP BY paid ORDER BY c":                          true,
		"SELECT paid, ROUND(AVG(id), 2) AS x, COUNT(*) AS c FROM orders GROUP BY paid ORDER BY c":                          true,
		"SELECT paid, ROUND(AVG(id), 2) AS x, COUNT(DISTINCT user_id) AS c FROM orders GROUP BY paid ORDER BY c":           false,
		"SELECT paid, COUNT(*) FROM orders GROUP BY paid HAVING AVG(id) > 2.84618 ORDER BY COUNT(DISTINCT user_id)":        false,
		"SELECT paid, AVG(id) > 2.8 AS x, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY paid":                       false,
		"SELECT paid, AVG(id) AS x, RANK() OVER (ORDER BY COUNT(*)) FROM orders GROUP BY paid":                             true,
		"SELECT paid, COUNT(*) FROM orders GROUP BY paid HAVING COUNT(DISTINCT user_id) > 2 ORDER BY ROUND(AVG(id)), paid": false,
		"SELECT ROUND(IFNULL(AVG(id), 0), 3) FROM orders":                                                                  true,
		"SELECT COALESCE(AVG(id), 0.123456) FROM orders":                                                                   false,
		"SELECT COALESCE(ROUND(AVG(id), 2), 0.123456) FROM orders":                                                         true,
		"SELECT COALESCE(-(AVG(id)), 0.1) FROM orders":                                                                     false,
		"SELECT IFNULL(AVG(id), AVG(paid)) FROM orders":                                                                    false,
	} {
		if _, err := w.plan("mysql", text).Bind(nil, sharding.Hint{}); (err == nil) != answered {
			t.Errorf("%s: %v; is it answered? %v", text, err, answered)
		}
	}
}

// MariaDB gives a rounded float the digits that it shows, unless the statement is prepared.
func TestAFloatIsRoundedLastOnMariaDB(t *testing.T) {
	w := newWorld(t)
	for text, answered := range map[string]bool{
		"SELECT ROUND(SUM(CAST(price AS DOUBLE)), 2) FROM orders":                                 true,
		"SELECT ROUND(SUM(CAST(price AS DOUBLE)), 2) * 2 + COUNT(*) FROM orders":                  true,
		"SELECT ROUND(SUM(CAST(price AS DOUBLE)) / 7, 2) FROM orders":                             true,
		"SELECT ROUND(SUM(price), 2) / 7 FROM orders":                                             true,
		"SELECT ROUND(SUM(CAST(price AS DOUBLE)), 2) / 7 FROM orders":                             false,
		"SELECT IFNULL(CEIL(SUM(CAST(price AS DOUBLE))), 0) / COUNT(*) FROM orders":               false,
		"SELECT ROUND(SUM(CAST(price AS DOUBLE)), 2) - SUM(price) / 7 FROM orders":                false,
		"SELECT COALESCE(SUM(price) / 7, ROUND(SUM(CAST(price AS DOUBLE)), 2)) FROM orders":       false,
		"SELECT paid FROM orders GROUP BY paid HAVING FLOOR(SUM(CAST(price AS DOUBLE))) / 7 > 13": false,
	} {
		if _, err := w.plan("mysql", text).Bind(nil, sharding.Hint{}); (err == nil) != answered {
			t.Errorf("%s: %v; is it answered? %v", text, err, answered)
		}
	}
}
