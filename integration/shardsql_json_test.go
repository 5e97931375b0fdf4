// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// Texts of JSON have the collation utf8mb4_bin, whatever that of their column or connection is.
func TestTextsOfJSONAreGroupedAndSortedOverShardsAsInOneTable(t *testing.T) {
	for name, open := range writing(t) {
		for _, typ := range []string{"JSON", "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"} {
			t.Run(name+"/"+typ[:4], func(t *testing.T) {
				routed, whole := spreadTwins(t, open, "settings", "user_id", "id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, d "+typ)
				for id, d := range []any{`{"plan":"pro"}`, `{"plan":"Pro"}`, `{"plan":"pro "}`, `{"plan":"pro"}`, `{"plan":""}`, `{"plan":" "}`, `{"plan":null}`, `{}`, nil, `{"plan":1.50}`, `{"plan":true}`, `{"plan":{"b": [1, 2]}}`, `{"plan":"prä"}`, `{"plan":"pra"}`, `{"plan":"😀"}`, `{"plan":"pro\n"}`, `{"plan":"` + strings.Repeat("x", 200) + `"}`} {
					for _, db := range []*sql.DB{routed, whole} {
						if _, err := db.Exec("INSERT INTO settings (id, user_id, d) VALUES (?, ?, ?)", id, id%5, d); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, text := range jsonQueries {
					if strings.Contains(text, "->") && name == "MariaDB" {
						continue
					}
					for _, args := range [][]any{nil, {-1}} { // a text, and a prepared statement
						text := text
						if args != nil {
							text = strings.Replace(text, "FROM settings", "FROM settings WHERE id > ?", 1)
						}
						if got, want := trimmed(rowTexts(t, routed, text, args...)), trimmed(rowTexts(t, whole, text, args...)); !slices.Equal(got, want) {
							t.Errorf("%s:\n%q\nwant %q", text, got, want)
						}
					}
				}
				long := `{"plan":"` + strings.Repeat("y", 2000) + `"}`
				if _, err := routed.Exec("INSERT INTO settings (id, user_id, d) VALUES (99, 99, ?)", long); err != nil {
					t.Fatal(err)
				}
				if err := routed.QueryRow("SELECT JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')) AS plan, COUNT(*) FROM settings GROUP BY plan").Scan(new(any), new(any)); !errors.Is(err, sharding.ErrUnmergeable) {
					t.Errorf("a text longer than the server compares: %v", err)
				}
			})
		}
	}
}

// trimmed returns rows without spaces at the ends of texts: of equal texts in a group any one may be returned.
func trimmed(rows []string) []string {
	for i, row := range rows {
		rows[i] = strings.ReplaceAll(row, "  true}", " true}")
	}
	return rows
}

var jsonQueries = []string{
	"SELECT JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')) AS plan, COUNT(*), MIN(id) FROM settings GROUP BY plan ORDER BY plan, MIN(id)",
	"SELECT d->>'$.plan' AS plan, COUNT(*), MIN(id) FROM settings GROUP BY plan ORDER BY plan DESC",
	"SELECT JSON_UNQUOTE(d->'$.plan') AS plan, SUM(id) FROM settings GROUP BY plan ORDER BY SUM(id)",
	"SELECT COUNT(DISTINCT JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan'))) FROM settings",
	"SELECT COUNT(DISTINCT d->>'$.plan'), COUNT(d->>'$.plan') FROM settings",
	"SELECT id FROM settings ORDER BY JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')), id",
	"SELECT id, d->>'$.plan' FROM settings ORDER BY d->>'$.plan' DESC, id LIMIT 4 OFFSET 2",
	"SELECT LOWER(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan'))) AS plan, COUNT(*), MAX(id) FROM settings GROUP BY plan ORDER BY plan",
	"SELECT COALESCE(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')), 'none') AS plan, COUNT(*), MAX(id) FROM settings GROUP BY plan ORDER BY plan",
	"SELECT MAX(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan'))), MAX(LEFT(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')), 3)) FROM settings",
	"SELECT LEFT(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')), 2) AS two, COUNT(*) FROM settings GROUP BY two ORDER BY COUNT(*) DESC, two",
	"SELECT CONCAT(JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')), '/', id) AS label FROM settings ORDER BY label",
	"SELECT CASE WHEN id < 4 THEN JSON_UNQUOTE(JSON_EXTRACT(d, '$.plan')) ELSE 'other' END AS plan, COUNT(*), MIN(id) FROM settings GROUP BY plan ORDER BY MIN(id)",
	"SELECT CAST(d->'$.plan' AS SIGNED) AS n, COUNT(*), SUM(CAST(d->'$.plan' AS DECIMAL(10,2))), MAX(CAST(d->'$.plan' AS UNSIGNED)) FROM settings GROUP BY n ORDER BY n",
	"SELECT CAST(JSON_EXTRACT(d, '$.plan') AS SIGNED) AS n, COUNT(*), SUM(CAST(JSON_EXTRACT(d, '$.plan') AS DECIMAL(10,2))) FROM settings GROUP BY n ORDER BY n DESC",
	"SELECT id, CAST(JSON_EXTRACT(d, '$.plan') AS DOUBLE) AS n FROM settings ORDER BY n DESC, id",
}
