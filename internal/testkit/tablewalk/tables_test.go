// SPDX-License-Identifier: Apache-2.0

package tablewalk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/internal/testkit/tablewalk"
)

// tablesIn returns the names in table position that are no keywords.
func tablesIn(sql string, f sqltext.Flavor) string {
	var names []string
	walk := tablewalk.New(sql, f)
	for t, table, ok := walk.Next(); ok; t, table, ok = walk.Next() {
		if name := sqltext.Ident(sql, t); table && slices.Contains([]string{"a", "b", "c", "'a'"}, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

func TestTablesAreFoundWhereTheyStand(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a, b.a, 'a' FROM c WHERE a = 1 AND b.a IN (1)":                     "c",
		"SELECT a FROM b JOIN c ON f(a, b) = c, a":                                 "b,c,a",
		"SELECT a FROM b JOIN c ON a = b.c, (a)":                                   "b,c,a",
		"SELECT a FROM b, (a, c) WHERE c":                                          "b,a,c",
		"SELECT (SELECT a FROM b), a FROM c":                                       "b,c",
		"SELECT EXTRACT(YEAR FROM a), b FROM c":                                    "a,c",
		"INSERT INTO a (b, c) VALUES (a, b)":                                       "a",
		"INSERT a VALUES (1) ON DUPLICATE KEY UPDATE b = VALUES(c)":                "a",
		"INSERT INTO a (b) SELECT b FROM c":                                        "a,c",
		"INSERT INTO a (b) VALUES (1) ON CONFLICT (b) DO UPDATE SET c = 1":         "a",
		"UPDATE a SET b = c WHERE a.b":                                             "a",
		"UPDATE a, b SET a.c = b.c":                                                "a,b",
		"UPDATE (a, b) SET c = 1":                                                  "a,b",
		"DELETE a FROM a JOIN b USING (c) WHERE c":                                 "a,a,b,c",
		"DELETE FROM a USING b, c":                                                 "a,b,c",
		"SELECT 1 FROM a AS b WHERE c IN a":                                        "a,a",
		"SELECT 1; DELETE FROM a":                                                  "a",
		"WITH a AS (SELECT b) SELECT c":                                            "a,b,c",
		"TRUNCATE a":                                                               "a",
		"CREATE INDEX a ON b (c)":                                                  "a,b,c",
		"SELECT 1 FROM 'a'":                                                        "'a'",
		"SELECT a FROM b FOR UPDATE":                                               "b",
		"SELECT a) FROM b WHERE c":                                                 "b,c",
		"SELECT " + strings.Repeat("(", 40) + "a" + strings.Repeat(")", 40) + ",b": "a,b",
	} {
		if got := tablesIn(sql, sqltext.SQLite); got != want {
			t.Errorf("%s: found %q, want %q", sql, got, want)
		}
	}
}
