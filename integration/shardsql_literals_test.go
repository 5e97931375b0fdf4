// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testkit/shapes"
	"github.com/shardid/shardid/sharding"
)

// A program that builds its queries passes formats, units and limits of groups as arguments.
func TestGroupsAndOrdersAreComputedWithArguments(t *testing.T) {
	type query struct {
		text string
		args []any
	}
	anywhere := []query{
		{"SELECT CASE WHEN small > ? THEN 1 ELSE 0 END AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{1}},
		{"SELECT COUNT(DISTINCT CASE WHEN small > ? THEN user_id END) AS n FROM goods WHERE id > ?", []any{1, 3}},
		{"SELECT small + ? AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k DESC", []any{-3}},
		{"SELECT DISTINCT COALESCE(exact, ?) AS k FROM goods", []any{"none"}},
		{"SELECT k, n FROM (SELECT user_id AS k, COUNT(*) + ? AS n FROM goods GROUP BY user_id) AS t ORDER BY n, k", []any{5}},
		{"SELECT COUNT(*), small > ? FROM goods GROUP BY 2", []any{-1}},
		{"SELECT code FROM goods WHERE small < ? GROUP BY code HAVING COUNT(*) > ? ORDER BY COUNT(*) * ?, MIN(id) LIMIT ?", []any{100, 0, 2, 3}},
	}
	mysql := append([]query{
		{"SELECT DATE_FORMAT(made, ?) AS k, COUNT(*) FROM goods WHERE id > ? GROUP BY k HAVING COUNT(*) > ? ORDER BY k LIMIT ?", []any{"%Y-%m", 2, 1, 3}},
		{"SELECT DATE_FORMAT(made, ?), COUNT(*) FROM goods GROUP BY 1", []any{"%W %e"}},
		{"SELECT DATE(made + INTERVAL ? DAY) AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{-2}},
		{"SELECT small DIV ? AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{-10}},
		{"SELECT IF(small > ?, 'big', 'small') AS k, COUNT(*) FROM goods GROUP BY k", []any{1}},
		{"SELECT LEFT(word, ?) AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{1}},
		{"SELECT id FROM goods ORDER BY FIELD(user_id, ?, ?, ?), id", []any{5, 2, 7}},
		{"SELECT id, small * ? AS k FROM goods ORDER BY k IS NULL, k, id", []any{2}},
	}, anywhere...)
	postgres := append([]query{
		{"SELECT date_trunc($1, made) AS k, COUNT(*) FROM goods WHERE id > $2 GROUP BY date_trunc($1, made) ORDER BY date_trunc($1, made)", []any{"month", 2}},
		{"SELECT date_part($1, made) AS k, COUNT(*) FROM goods GROUP BY 1 ORDER BY 1", []any{"year"}},
		{"SELECT date_trunc('day', made AT TIME ZONE $1) AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{"Asia/Tokyo"}},
		{"SELECT EXTRACT(YEAR FROM made AT TIME ZONE $1) AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{"Asia/Tokyo"}},
		{"SELECT CASE WHEN small > $1 THEN 'small' WHEN small > -3 THEN 'Big' ELSE '-' END AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k DESC", []any{1}},
		{"SELECT id, CASE WHEN small > 1 THEN 'small' WHEN small > -3 THEN 'Big' END AS k FROM goods ORDER BY k, id LIMIT $1", []any{20}},
		{"SELECT MIN(CASE WHEN small > $1 THEN 'small' ELSE 'Big' END) AS k, user_id FROM goods GROUP BY user_id % $2, user_id ORDER BY k, user_id", []any{1, 3}},
		{"SELECT MAX(CASE WHEN small > $1 THEN 'small' ELSE 'Big' END) AS k, size FROM goods GROUP BY size ORDER BY k, MIN(id)", []any{1}},
		{"SELECT to_char(made, $1) AS k, COUNT(*) FROM goods GROUP BY k ORDER BY k", []any{"YYYY-MM"}},
		{"SELECT doc ->> $1 AS k, COUNT(*) FROM goods GROUP BY k", []any{"a"}},
		{"SELECT COUNT(*) FILTER (WHERE small > $1) AS k, word FROM goods GROUP BY word ORDER BY k, word", []any{1}},
		{"SELECT id FROM goods WHERE user_id < 3 ORDER BY array_position(ARRAY[$1, $2]::bigint[], user_id), id", []any{5, 2}},
		{"SELECT user_id, SUM(small) FROM goods GROUP BY user_id ORDER BY SUM(small) * ?, user_id", []any{-2}},
		{"SELECT user_id % 3, SUM(0 - small) * $1 AS s FROM goods GROUP BY 1 HAVING SUM(0 - small) * $2 < $3 ORDER BY 1", []any{uint64(24), uint64(2), 0}},
		{"SELECT COALESCE(size, $1) AS k, COUNT(*) FROM goods GROUP BY k", []any{"xl"}},
	}, anywhere...)
	eachShop(t, func(t *testing.T, shop *shapes.Shop, d shapes.Dialect) {
		of := mysql
		if d == shapes.PostgreSQL {
			of = postgres
		}
		var tally shapes.Tally
		for _, q := range of {
			if err := shop.Try(sharding.AllShards(t.Context()), shapes.Statement{Text: d.Numbered(q.text), Args: q.args, Query: true}, &tally); err != nil {
				t.Error(err)
			}
		}
		if tally.Answered != len(of) {
			t.Errorf("%+v", tally)
		}
	})
}

// A number in the text would be another value than the same number as an argument: beside a YEAR of MySQL it is no year, and
// PostgreSQL infers from the values beside a parameter that it is a text.
func TestArgumentsThatOthersDecideTheTypeOfDoNotBecomeLiterals(t *testing.T) {
	refused := map[shapes.Dialect][]string{
		shapes.MySQL:   {"SELECT since > ? AS k, COUNT(*) FROM goods GROUP BY k", "SELECT ? / money AS k, COUNT(*) FROM goods GROUP BY k", "SELECT ROUND(money, ?) AS k, COUNT(*) FROM goods GROUP BY k", "SELECT small + ? AS k, SUM(small) * ? AS s FROM goods GROUP BY k", "SELECT SUM(CASE WHEN since IN (3, ?) THEN 1 END), MAX(small > since) AS k FROM goods GROUP BY since = ?"},
		shapes.MariaDB: {"SELECT since BETWEEN 0 AND ? AS k, COUNT(*) FROM goods GROUP BY k"},
		shapes.PostgreSQL: {
			"SELECT id FROM goods ORDER BY CASE WHEN small > 1 THEN $1 ELSE NULL END, id", "SELECT doc ->> $1 AS k, COUNT(*) FROM goods GROUP BY k",
			"SELECT MIN(CASE small WHEN 1 THEN $1 ELSE 'b' END) FROM goods", "SELECT COUNT(DISTINCT COALESCE(NULL, $1)) FROM goods",
		},
	}
	eachShop(t, func(t *testing.T, shop *shapes.Shop, d shapes.Dialect) {
		for _, text := range refused[d] {
			var tally shapes.Tally
			args := []any{10, 1}[:max(1, strings.Count(text, "?"))]
			if err := shop.Try(sharding.AllShards(t.Context()), shapes.Statement{Text: text, Args: args, Query: true}, &tally); err != nil || tally.Refused != 1 {
				t.Errorf("%s: %+v, %v", text, tally, err)
			}
		}
	})
}

// MySQL and MariaDB name a column of a derived table by the text of its expression.
func TestColumnsOfDerivedTablesKeepTheirNames(t *testing.T) {
	eachShop(t, func(t *testing.T, shop *shapes.Shop, d shapes.Dialect) {
		for _, text := range []string{
			"SELECT * FROM (SELECT small + ?, COUNT(*) AS n FROM goods GROUP BY 1) AS t",
			"WITH t AS (SELECT small + ?, COUNT(*) AS n FROM goods GROUP BY 1) SELECT t.* FROM t",
			"SELECT * FROM (SELECT CASE WHEN small BETWEEN ? AND 10 THEN 'few' WHEN small < 100 THEN 'more' ELSE 'many' END, COUNT(*) AS n FROM goods GROUP BY 1) AS t",
		} {
			var names [2][]string
			for i, db := range []*sql.DB{shop.Routed, shop.Whole} {
				names[i] = namesOf(t, db, d.Numbered(text), 2)
			}
			if !slices.Equal(names[0], names[1]) {
				t.Errorf("%s: %q, where whole tables have %q", text, names[0], names[1])
			}
		}
	})
}

// namesOf returns the names of the columns of a query.
func namesOf(t *testing.T, db *sql.DB, text string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(sharding.AllShards(t.Context()), text, args...)
	if err != nil {
		t.Fatal(text, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(text, err)
	}
	return names
}
