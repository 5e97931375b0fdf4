// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
)

// UUIDs and addresses are stored as bytes, which have no collation: they are ordered byte by byte, to their ends.
func TestBytesAreSortedAndGroupedOverShardsAsOnOneTableOfMySQLAndMariaDB(t *testing.T) {
	for name, open := range map[string]database.Opener{"MariaDB": database.MariaDB(server.ShareMariaDB(t)), "MySQL": database.MySQL(server.ShareMySQL(t))} {
		t.Run(name, func(t *testing.T) {
			named := func(testing.TB, string) *sql.DB { return open(t) }
			routed, whole := spreadTwins(t, named, "visits", "user_id", `id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, code BINARY(3), token VARBINARY(20), wide VARBINARY(900), long_one VARBINARY(1022),
				name VARCHAR(9) COLLATE utf8mb4_general_ci, free VARCHAR(9) COLLATE utf8mb4_bin`)
			random := rand.New(rand.NewPCG(7, 9))
			for id := range 150 {
				some := func(longest int) any {
					if random.IntN(9) == 0 {
						return nil
					}
					b := make([]byte, random.IntN(longest+1))
					for i := range b {
						b[i] = "\x00\x00 aAbé\xff"[random.IntN(9)]
					}
					return b
				}
				wide := []byte(strings.Repeat("w", random.IntN(2)*890) + string(rune('a'+random.IntN(3))))
				word := []string{"a", "A", "b", "ä", ""}[random.IntN(5)]
				row := []any{id, id % 7, some(3), some(3), wide, wide, word, word}
				for _, db := range []*sql.DB{routed, whole} {
					if _, err := db.ExecContext(t.Context(), "INSERT INTO visits (id, user_id, code, token, wide, long_one, name, free) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row...); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, column := range []string{"code", "token", "wide", "LEFT(token, 2)", "COALESCE(token, 'a')", "CONCAT(code, token)", "CONCAT(token, name)", "CONCAT(free, token)", "IF(id < 70, token, code)", "LOWER(token)", "COALESCE(token, name)", "HEX(token)", "NULLIF(token, 'a')", "TRIM(token)"} {
				for _, shape := range []string{
					"SELECT id, %s AS c FROM visits ORDER BY c, id", "SELECT id, %s AS c FROM visits ORDER BY c DESC, id LIMIT 7 OFFSET 5", "SELECT DISTINCT %s AS c FROM visits ORDER BY c",
					"SELECT %s AS c, COUNT(*) AS n FROM visits GROUP BY %[1]s ORDER BY n DESC, c", "SELECT COUNT(DISTINCT %s), MIN(%[1]s), MAX(%[1]s) FROM visits",
					"SELECT id %% 3 AS k, MIN(%[1]s) AS m FROM visits GROUP BY k ORDER BY m DESC, k", "SELECT %[1]s AS c FROM visits WHERE id < 50 UNION SELECT %[1]s FROM visits WHERE id > 90 ORDER BY c",
				} {
					query := fmt.Sprintf(shape, column)
					got, err := selects.Query{Text: query}.Answer(t.Context(), routed, nil)
					want, failed := selects.Query{Text: query}.Answer(t.Context(), whole, nil)
					switch refused := err != nil && strings.Contains(err.Error(), "refused"); {
					case refused && !strings.Contains(column, "("):
						t.Errorf("%s: %v", query, err)
					case !refused && (err != nil || failed != nil || fmt.Sprint(got) != fmt.Sprint(want)):
						t.Errorf("%s: %q, %v, and one table answers %q, %v", query, got, err, want, failed)
					}
				}
			}
			if _, err := (selects.Query{Text: "SELECT id FROM visits ORDER BY long_one"}).Answer(t.Context(), routed, nil); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("bytes of which a server compares only the first ones are sorted: %v", err)
			}
		})
	}
}
