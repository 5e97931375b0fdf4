// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// lenient opens databases in which a column need not be in GROUP BY.
func lenient(t *testing.T) map[string]namedDatabase {
	t.Helper()
	all, of := writing(t), server.ShareMySQL(t)
	all["MySQL"] = func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		of.Open(tb, name)
		return opened(tb, "mysql", of.DSN(name)+"?sql_mode=%27STRICT_TRANS_TABLES%27")
	}
	return all
}

// MySQL and MariaDB leave an INVISIBLE column out of *, and of an INSERT without a list of columns.
func TestAnInvisibleColumnIsReadByItsNameAlone(t *testing.T) {
	for name, open := range lenient(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := spreadTwins(t, open, "works", "user_id", "id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, qty INT, made INT DEFAULT 7 INVISIBLE, word VARCHAR(10) COLLATE utf8mb4_bin INVISIBLE")
			for id := range 24 {
				for _, db := range []*sql.DB{routed, whole} {
					database.Exec(t, db, fmt.Sprintf("INSERT INTO works (id, user_id, qty, made, word) VALUES (%d, %d, %d, %d, '%c')", id, id*5%7, id%3, id%4, "aAbB"[id%4]))
				}
			}
			for _, db := range []*sql.DB{routed, whole} {
				database.Exec(t, db, "INSERT INTO works (id, user_id, qty) VALUES (30, 3, 1)")
			}
			for _, query := range []string{
				"SELECT qty + 1 AS made FROM works ORDER BY made, id", "SELECT made, word, COUNT(*) FROM works GROUP BY made, word ORDER BY made, word, MIN(id)", "SELECT DISTINCT word FROM works ORDER BY word",
				"SELECT id, made FROM works ORDER BY made DESC, id", "SELECT SUM(made), MAX(word), COUNT(DISTINCT word) FROM works", "SELECT * FROM works ORDER BY made, id", "SELECT *, made FROM works ORDER BY id",
				"SELECT w.* FROM works w WHERE made = 2 ORDER BY id", "SELECT * FROM (SELECT * FROM works) AS t ORDER BY id", "SELECT qty AS made FROM (SELECT * FROM works) AS t GROUP BY made ORDER BY made",
				"SELECT COUNT(*) FROM (SELECT DISTINCT * FROM works) AS t", "SELECT COUNT(*) FROM (SELECT works.*, 1 AS made FROM works) AS t", "SELECT id FROM works WHERE made > (SELECT AVG(made) FROM works) ORDER BY id",
				"SELECT COUNT(*) FROM (SELECT *, made FROM works) AS t", "SELECT * FROM (SELECT id, made FROM works) AS t ORDER BY made, id", "SELECT t.*, made + 1 AS more FROM (SELECT id, made FROM works) AS t ORDER BY id",
			} {
				q := selects.Query{Text: query}
				want, err := q.Answer(t.Context(), whole, nil)
				if err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				if got, err := q.Answer(t.Context(), routed, nil); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: %q, %v\nwant %q", query, got, err, want)
				}
			}
			for _, query := range []string{ // in GROUP BY the name is that of the column
				"SELECT qty AS made, COUNT(*) FROM works GROUP BY made ORDER BY MIN(id)", "SELECT COUNT(*) AS n, qty AS made FROM works GROUP BY made HAVING made > 1 ORDER BY n, MIN(id)", "SELECT LOWER(word) AS word, COUNT(*) FROM works GROUP BY word",
			} {
				if got, err := (selects.Query{Text: query}).Answer(t.Context(), routed, nil); !errors.Is(err, sharding.ErrUnmergeable) {
					t.Errorf("%s: %q, %v", query, got, err)
				}
			}
		})
	}
}

// A copy of a broadcast table gives an invisible column that is left out its own default.
func TestAnInvisibleColumnThatEachCopyWouldComputeNeedsAValue(t *testing.T) {
	for name, open := range lenient(t) {
		t.Run(name, func(t *testing.T) {
			dbs, home := sharding.DBs{"a": open(t, "seen_a"), "b": open(t, "seen_b")}, open(t, "seen_home")
			for _, db := range []*sql.DB{home, dbs["a"], dbs["b"]} {
				database.Exec(t, db, "CREATE TABLE coins (id BIGINT PRIMARY KEY, n INT, at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) INVISIBLE)")
			}
			m, err := sharding.Spread([]string{"a", "b"}, 2, "works_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "works", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Broadcast("coins"), sharding.Transactions(sharding.BestEffort))
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			t.Cleanup(func() { _ = routed.Close() })
			database.Exec(t, routed, "INSERT INTO coins (id, n, at) VALUES (1, 1, '2026-01-01')")
			for _, text := range []string{"INSERT INTO coins VALUES (2, 2)", "INSERT INTO coins SELECT id + 10, n FROM coins", "INSERT INTO coins (id, n) SELECT id + 10, n FROM coins", "REPLACE INTO coins SELECT * FROM coins"} {
				if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrCopies) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}
