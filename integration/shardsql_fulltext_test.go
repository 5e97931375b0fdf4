// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// On MySQL and MariaDB, a search in Boolean mode of all shards finds the rows that one table would.
func TestASearchForWordsFindsTheRowsOfAllShards(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			m, err := sharding.Spread([]string{"a", "b"}, 4, "notes_%d")
			if err != nil {
				t.Fatal(err)
			}
			dbs, whole := sharding.DBs{"a": open(t, "words_a"), "b": open(t, "words_b")}, open(t, "words_whole")
			const columns = " (id BIGINT PRIMARY KEY, body TEXT NOT NULL, FULLTEXT KEY words (body))"
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
			}
			database.Exec(t, whole, "CREATE TABLE notes"+columns)
			router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Low(4), Map: m}, sharding.Transactions(sharding.BestEffort))
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })

			words := []string{"deploy", "failed", "database", "coffee", "the", "review"}
			var values []string
			for id := range 200 { // "the" is a stopword; "deploy" is in most rows of slot 0
				values = append(values, fmt.Sprintf("(%d, '%s %s %s')", id, words[id*id%7%len(words)], words[id%len(words)], words[min(id%16, 5)]))
			}
			insert := "INSERT INTO notes (id, body) VALUES " + strings.Join(values, ", ")
			database.Exec(t, routed, insert)
			database.Exec(t, whole, insert)
			for _, of := range []string{"+deploy", "deploy -coffee", "+dep* +(failed review)", "the", `"database coffee"`, "~deploy >review", "nothing"} {
				for _, query := range []string{
					"SELECT CONCAT(id, body) FROM notes WHERE MATCH (body) AGAINST ('%s' IN BOOLEAN MODE) ORDER BY id",
					"SELECT COUNT(*) FROM notes WHERE MATCH (body) AGAINST ('%s' in boolean mode) AND id > 9",
					"SELECT id FROM notes WHERE (MATCH (body) AGAINST ('%s' IN BOOLEAN MODE)) AND body LIKE '%%e%%' ORDER BY id DESC LIMIT 7",
				} {
					query = fmt.Sprintf(query, of)
					if got, want := database.Texts(t, routed, query), database.Texts(t, whole, query); !slices.Equal(got, want) {
						t.Errorf("%s: %q, one table has %q", query, got, want)
					}
				}
			}
			for _, query := range []string{
				"SELECT id FROM notes WHERE MATCH (body) AGAINST ('deploy')",
				"SELECT id FROM notes WHERE MATCH (body) AGAINST ('deploy' IN BOOLEAN MODE) > 0.3",
				"SELECT id FROM notes ORDER BY MATCH (body) AGAINST ('deploy' IN BOOLEAN MODE) DESC LIMIT 3",
			} {
				if _, err := routed.QueryContext(t.Context(), query); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are none
					t.Errorf("%s: %v", query, err)
				}
			}
		})
	}
}
