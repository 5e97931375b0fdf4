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
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// The collations of PostgreSQL order texts in their own ways: 'a' before 'B', 'ä' before 'b', and some ignore spaces at first.
func TestTextsAreOrderedInTheirCollationsOnPostgreSQL(t *testing.T) {
	servers := postgresDrivers(t)
	servers["icu"] = func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		return server.SharePostgres(t).OpenICU(tb, name, "en-US")
	}
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			routed, whole := spreadTwins(t, open.of("collations_"+name), "people", "user_id",
				`id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, english TEXT COLLATE "en-x-icu", danish VARCHAR(20) COLLATE "da-x-icu", code CHAR(6) COLLATE "en-x-icu", own TEXT, doc JSONB, small INT`)
			random := rand.New(rand.NewPCG(3, 5))
			words := []any{"a", "A", "ä", "b", "B", "aa", "å", "z", "Z", " a", "a b", "ab", "a-b", "", `q"\,{}`, "NULL", "é", "e", "中", "1", "10", "2", nil}
			word := func() any { return words[random.IntN(len(words))] }
			for id := range 120 {
				row := []any{id, random.IntN(9), word(), word(), word(), word(), random.IntN(4)}
				for _, db := range []*sql.DB{routed, whole} {
					if _, err := db.ExecContext(t.Context(), "INSERT INTO people (id, user_id, english, danish, code, own, small, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, json_build_object('a', $6::text))", row...); err != nil {
						t.Fatal(err)
					}
				}
			}
			column := func() string {
				return []string{"english", "danish", "code", "own", "LOWER(english)", "COALESCE(danish, 'm')", "SUBSTR(english, 1, 1)", "CONCAT(own, small)", "own || 'x'", "(doc ->> 'a')"}[random.IntN(10)]
			}
			order := func() string {
				return column() + []string{"", " DESC", " NULLS FIRST", " DESC NULLS LAST"}[random.IntN(4)]
			}
			limit := func() string { return []string{"", " LIMIT 7", " LIMIT 5 OFFSET 9"}[random.IntN(3)] }
			shapes := []func() string{
				func() string { return "SELECT id, english FROM people ORDER BY " + order() + ", id" + limit() },
				func() string {
					return "SELECT id, danish FROM people WHERE small < 3 ORDER BY " + order() + ", " + order() + ", id" + limit()
				},
				func() string { return "SELECT DISTINCT english, own FROM people ORDER BY english, own DESC" + limit() },
				func() string {
					c := column()
					return "SELECT " + c + " AS k, COUNT(*) AS n FROM people GROUP BY " + c + " ORDER BY " + []string{"k", "n, k DESC", "k DESC NULLS LAST"}[random.IntN(3)] + limit()
				},
				func() string {
					c := column()
					return "SELECT small, MIN(" + c + "), MAX(" + c + ") FROM people GROUP BY small ORDER BY small"
				},
				func() string {
					c := column()
					return "SELECT small, MIN(" + c + ") AS m FROM people GROUP BY small ORDER BY m DESC, small"
				},
				func() string {
					return "SELECT MIN(" + column() + "), MAX(" + column() + "), COUNT(DISTINCT " + column() + ") FROM people"
				},
				func() string {
					return "SELECT DISTINCT ON (small) small, english, id FROM people ORDER BY small, english DESC, id"
				},
				func() string {
					return "SELECT english AS k FROM people WHERE small = 1 UNION SELECT english FROM people WHERE small = 2 ORDER BY k" + limit()
				},
				func() string {
					return "SELECT english, COUNT(*), RANK() OVER (ORDER BY english DESC) AS r FROM people GROUP BY english ORDER BY r" + limit()
				},
			}
			refused := 0
			for range effort.Cases(300, 20_000) {
				text := shapes[random.IntN(len(shapes))]()
				got, err := selects.Query{Text: text}.Answer(t.Context(), routed, nil)
				want, failed := selects.Query{Text: text}.Answer(t.Context(), whole, nil)
				switch {
				case err != nil && strings.Contains(err.Error(), "refused"):
					refused++
					t.Logf("%v", err)
				case err != nil || failed != nil || fmt.Sprint(got) != fmt.Sprint(want):
					t.Errorf("%s: %q, %v, and one table answers %q, %v", text, got, err, want, failed)
				}
			}
			if refused > 0 {
				t.Errorf("%d are refused", refused)
			}
		})
	}
}

// In a transaction the connections of the shards have their rows in memory before a database is asked on one of them.
func TestTheOrderOfTextsIsAskedForInTransactionsAndOfPreparedStatements(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := spreadTwins(t, open.of("asked_"+name), "people", "user_id", `id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, name TEXT COLLATE "en-x-icu"`)
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for id, name := range []string{"b", "B", "a", "A", "ä"} {
				if _, err := tx.ExecContext(t.Context(), "INSERT INTO people (id, user_id, name) VALUES ($1, $1, $2)", id, name); err != nil {
					t.Fatal(err)
				}
			}
			prepared, err := tx.PrepareContext(t.Context(), "SELECT name FROM people WHERE id >= $1 ORDER BY name LIMIT $2")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = prepared.Close() }()
			for range 2 {
				if got := orderedNames(t, prepared, 0, 4); got != "a A ä b" {
					t.Error(got)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
}

func orderedNames(t *testing.T, prepared *sql.Stmt, args ...any) string {
	t.Helper()
	rows, err := prepared.QueryContext(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Error(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return strings.Join(all, " ")
}

// Servers of different versions give a new table different collations. Each shard sorts, and finds equal texts, by its own.
func TestTextsOfShardsWithDifferentCollationsAreNotCombined(t *testing.T) {
	for name, open := range map[string]func(testing.TB, string) *sql.DB{"mariadb": server.ShareMariaDB(t).Open, "mysql": server.ShareMySQL(t).Open} {
		t.Run(name, func(t *testing.T) {
			of := func(t testing.TB, name string) *sql.DB { return open(t, "mixed_"+name) }
			routed, _ := spreadTwins(t, of, "people", "id", "id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) COLLATE utf8mb4_general_ci, size ENUM('b', 'a') COLLATE utf8mb4_general_ci, nick VARCHAR(20) COLLATE utf8mb4_bin")
			other := of(t, "people_b")
			database.Exec(t, other, "ALTER TABLE people_3 MODIFY name VARCHAR(20) COLLATE utf8mb4_bin, MODIFY size ENUM('b', 'a') COLLATE utf8mb4_bin")
			for id, name := range []string{"b", "B", "a", "A", "c"} {
				if _, err := routed.ExecContext(t.Context(), "INSERT INTO people (id, name, nick) VALUES (?, ?, ?)", id, name, name); err != nil {
					t.Fatal(err)
				}
			}
			const none, differ, subquery = "", "its collation is utf8mb4_general_ci in one shard and utf8mb4_bin in people_3 of database b; give it one collation in all shards", "read it first"
			for text, reason := range map[string]string{
				"SELECT id FROM people ORDER BY name":                                   differ,
				"SELECT name, COUNT(*) FROM people GROUP BY name":                       differ,
				"SELECT COUNT(DISTINCT name) FROM people":                               differ,
				"SELECT MIN(size) FROM people":                                          differ,
				"SELECT size, COUNT(*) FROM people GROUP BY size":                       none,
				"SELECT id FROM people WHERE name IN (SELECT name FROM people)":         subquery,
				"SELECT id FROM people ORDER BY nick":                                   none,
				"SELECT id, name FROM people WHERE name = 'a'":                          none,
				"SELECT id, name FROM people WHERE id = 3 ORDER BY name":                none,
				"SELECT id FROM people WHERE nick IN (SELECT nick FROM people)":         none,
				"SELECT nick, COUNT(*) AS n FROM people GROUP BY nick ORDER BY n, nick": none,
			} {
				_, err := selects.Query{Text: text}.Answer(t.Context(), routed, nil)
				if failed := err != nil; failed != (reason != none) || failed && !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}

// Servers sort an ENUM and a SET by the positions of their members. A member that was added behind the others changes none.
func TestMembersWithOtherPositionsInAShardAreNotCombined(t *testing.T) {
	for name, open := range map[string]func(testing.TB, string) *sql.DB{"mariadb": server.ShareMariaDB(t).Open, "mysql": server.ShareMySQL(t).Open} {
		t.Run(name, func(t *testing.T) {
			of := func(t testing.TB, name string) *sql.DB { return open(t, "members_"+name) }
			routed, _ := spreadTwins(t, of, "people", "id", "id BIGINT NOT NULL PRIMARY KEY, size ENUM('b', 'a') NOT NULL, state ENUM('new', 'old') NOT NULL, flags SET('x', 'y') NOT NULL, shape ENUM('o') COLLATE utf8mb4_turkish_ci, kind ENUM('k') NULL")
			database.Exec(t, of(t, "people_b"), "ALTER TABLE people_3 MODIFY size ENUM('a', 'b') NOT NULL, MODIFY state ENUM('new', 'old', 'gone') NOT NULL, MODIFY flags SET('y', 'x', 'z') NOT NULL, MODIFY kind VARCHAR(9)")
			for id := range 8 {
				if _, err := routed.ExecContext(t.Context(), "INSERT INTO people (id, size, state, flags) VALUES (?, ?, 'old', 'x')", id, []string{"a", "b"}[id%2]); err != nil {
					t.Fatal(err)
				}
			}
			const none, members, set = "", "its type is enum('b','a') in one shard and enum('a','b') in people_3 of database b; give it one type in all shards", "its type is set('x','y') in one shard"
			const weights, kind = "whether the weights of its collation utf8mb4_turkish_ci compare", "its type is enum('k') in one shard and no ENUM or SET in people_3"
			for text, reason := range map[string]string{
				"SELECT id FROM people ORDER BY size":                             members,
				"SELECT size, COUNT(*) FROM people GROUP BY size":                 members,
				"SELECT DISTINCT size FROM people":                                members,
				"SELECT COUNT(DISTINCT size) FROM people":                         members,
				"SELECT flags, COUNT(*) FROM people GROUP BY flags":               set,
				"SELECT MIN(shape) FROM people":                                   weights,
				"SELECT id FROM people ORDER BY shape, id":                        none,
				"SELECT DISTINCT kind FROM people":                                kind,
				"SELECT size, flags FROM people WHERE size = 'a'":                 none,
				"SELECT size, COUNT(*) FROM people WHERE id = 3 GROUP BY size":    none,
				"SELECT state, COUNT(*) FROM people GROUP BY state":               none,
				"SELECT id FROM people ORDER BY state, id":                        none,
				"SELECT MIN(state), COUNT(*) FROM people WHERE size = 'a'":        none,
				"UPDATE people SET size = 'b' WHERE id = 3 ORDER BY size LIMIT 1": none,
			} {
				_, err := selects.Query{Text: text}.Answer(t.Context(), routed, nil)
				if failed := err != nil; failed != (reason != none) || failed && !strings.Contains(err.Error(), reason) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}

// The copies of a broadcast table are joined with rows of their own database. Its name may have capital letters.
func TestTextsOfCopiesWithDifferentCollationsAreNotCombined(t *testing.T) {
	for name, open := range map[string]func(testing.TB, string) *sql.DB{"mariadb": server.ShareMariaDB(t).Open, "mysql": server.ShareMySQL(t).Open} {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "copies_collations_a"), "b": open(t, "copies_collations_b")}
			m, err := sharding.Spread([]string{"a", "b"}, 2, "visits_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, kind BIGINT)")
				collation := map[string]string{"a": "utf8mb4_general_ci", "b": "utf8mb4_bin"}[at.DB]
				database.Exec(t, dbs[at.DB], "CREATE TABLE Kinds (id BIGINT PRIMARY KEY, label VARCHAR(20) COLLATE "+collation+")")
			}
			router, err := sharding.New(dbs, sharding.Broadcast("Kinds"), sharding.Table{Name: "visits", Key: "id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			_, err = selects.Query{Text: "SELECT k.label, COUNT(*) FROM visits v JOIN Kinds k ON k.id = v.kind GROUP BY k.label"}.Answer(t.Context(), routed, nil)
			if err == nil || !strings.Contains(err.Error(), "utf8mb4_bin in Kinds of database b; give it one collation") {
				t.Error(err)
			}
		})
	}
}
