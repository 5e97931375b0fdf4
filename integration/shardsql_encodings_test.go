// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A server compares texts of the collation C by their bytes in the encoding of the database. A driver reads them in another encoding,
// in which the order of the bytes may be another one: € is a byte before those of é in WIN1252, and behind é in UTF8.
func TestTextsOfTheCollationCAreOrderedByTheirBytesInTheEncodingOfTheDatabase(t *testing.T) {
	p := server.SharePostgres(t)
	words := strings.Split("a z Z é € ä ß Ž ÿ ž œ я Б ё Ё ч ъ ж Ж 日 本 ア あ 一 龍", " ")
	for _, encoding := range []string{"UTF8", "LATIN1", "SQL_ASCII", "WIN1252", "KOI8R", "EUC_JP"} {
		for _, client := range []string{"UTF8", "that of the database"} {
			t.Run(encoding+"/"+client, func(t *testing.T) {
				routed, whole := spreadTwins(t, namedDatabase(func(tb testing.TB, name string) *sql.DB {
					tb.Helper()
					params := "?sslmode=disable"
					if client == "UTF8" {
						params += "&client_encoding=UTF8"
					}
					p.OpenEncoded(tb, name, encoding)
					return opened(tb, "pgx", p.DSN(name)+params)
				}).of(strings.ToLower(encoding+"_"+client[:1])), "words", "id", "id BIGINT NOT NULL PRIMARY KEY, word TEXT, short VARCHAR(9), code CHAR(4)")
				const insert = "INSERT INTO words (id, word, short, code) VALUES ($1, $2, $3, $4)"
				added := 0
				for _, word := range words {
					if _, err := whole.ExecContext(t.Context(), insert, added, word, word, word); err != nil {
						continue // the encoding lacks it
					}
					if _, err := routed.ExecContext(t.Context(), insert, added, word, word, word); err != nil {
						t.Fatal(err)
					}
					added++
				}
				if added < 7 {
					t.Errorf("%s has %d of the words", encoding, added)
				}
				for _, text := range []string{
					"SELECT id, word FROM words ORDER BY word", "SELECT id FROM words ORDER BY word DESC LIMIT 4", "SELECT MIN(word), MAX(short), MAX(code), COUNT(DISTINCT word) FROM words",
					"SELECT word, COUNT(*) FROM words GROUP BY word ORDER BY word LIMIT 5", "SELECT DISTINCT short FROM words ORDER BY short DESC", "SELECT id FROM words ORDER BY code",
					`SELECT id FROM words ORDER BY word COLLATE "C"`, `SELECT id FROM words ORDER BY word COLLATE pg_catalog."POSIX" DESC LIMIT 3`, "SELECT id FROM words ORDER BY LOWER(word), id",
					"SELECT id, word FROM words WHERE word = (SELECT MAX(word) FROM words)", "SELECT word FROM words WHERE id < 5 UNION SELECT short FROM words WHERE id > 3 ORDER BY 1",
					"SELECT word, id FROM words WHERE short > 'z' ORDER BY short", "SELECT MAX(short) FROM words GROUP BY word ORDER BY MAX(short)",
				} {
					want, failed := selects.Query{Text: text}.Answer(t.Context(), whole, nil)
					if got, err := (selects.Query{Text: text}).Answer(t.Context(), routed, nil); err != nil || failed != nil || !slices.Equal(got, want) {
						t.Errorf("%s: %q, %v, and one table answers %q, %v", text, got, err, want, failed)
					}
				}
			})
		}
	}
}

// The texts of two databases are merged by their bytes.
func TestDriversThatReadTextsInDifferentEncodingsAreRefused(t *testing.T) {
	p := server.SharePostgres(t)
	p.OpenEncoded(t, "read_a", "UTF8")
	p.OpenEncoded(t, "read_b", "UTF8")
	dbs := sharding.DBs{"a": opened(t, "pgx", p.DSN("read_a")+"?sslmode=disable"), "b": opened(t, "pgx", p.DSN("read_b")+"?sslmode=disable&client_encoding=LATIN1")}
	m, err := sharding.Spread([]string{"a", "b"}, 2, "words_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, word TEXT)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "words", Key: "id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	var words string
	err = routed.QueryRowContext(t.Context(), "SELECT MAX(word) FROM words").Scan(&words)
	if !errors.Is(err, sharding.ErrSettings) || !strings.Contains(fmt.Sprint(err), "the encoding of texts is \"UTF8 read as LATIN1\"") {
		t.Errorf("%q, %v", words, err)
	}
}
