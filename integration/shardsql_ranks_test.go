// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

const wordColumns = `id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, english TEXT COLLATE "en-x-icu", danish word, code CHAR(8) COLLATE "en-x-icu", own TEXT, tag NAME, small INT`

// wordTwins are a table of texts in several collations, over two databases and in one.
func wordTwins(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	routed, whole = spreadTwins(t, func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		db := open(tb, name)
		database.Exec(tb, db, `CREATE DOMAIN word AS VARCHAR(20) COLLATE "da-x-icu"`)
		return db
	}, "people", "user_id", wordColumns)
	words := []any{"01", "1", "a", "A", "ä", "aa", "å", "b", "B", "z", "Z", "a ", "", `q"\,{}'`, "NULL", "ø", nil, nil}
	for id := range 60 {
		word := func(n int) any { return words[(id*n+id/len(words))%len(words)] }
		for _, db := range []*sql.DB{routed, whole} {
			if _, err := db.ExecContext(t.Context(), "INSERT INTO people (id, user_id, english, danish, code, own, tag, small) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", id, id%9, word(5), word(7), word(11), word(13), word(3), id%4); err != nil {
				t.Fatal(err)
			}
		}
	}
	return routed, whole
}

// wordQueries sort texts.
var wordQueries = []string{
	"SELECT m FROM (SELECT user_id, MIN(english) AS m FROM people GROUP BY user_id) AS t ORDER BY m, user_id",
	"SELECT m FROM (SELECT user_id, MIN(danish) AS m FROM people GROUP BY user_id) AS t ORDER BY CONCAT(m, 'x'), user_id",
	"SELECT m FROM (SELECT user_id, MAX(danish) AS m FROM people GROUP BY user_id) AS t ORDER BY LOWER(m) DESC, user_id",
	"SELECT MIN(CONCAT(m, 'x')), MAX(m::text) FROM (SELECT user_id, MIN(danish) AS m FROM people GROUP BY user_id) AS t",
	"SELECT m, COUNT(*) FROM (SELECT id, MIN(english) AS m FROM people GROUP BY id) AS t GROUP BY m ORDER BY m",
	"SELECT COUNT(DISTINCT m) FROM (SELECT id, MAX(code) AS m FROM people GROUP BY id) AS t",
	"SELECT DISTINCT m FROM (SELECT id, MAX(danish) AS m FROM people GROUP BY id) AS t ORDER BY m DESC NULLS LAST LIMIT 5 OFFSET 2",
	`SELECT m FROM (SELECT user_id, MIN(danish) AS m FROM people GROUP BY user_id) AS t ORDER BY m COLLATE "C", user_id`,
	`SELECT user_id, MAX(danish) FROM people GROUP BY user_id ORDER BY MAX(danish) COLLATE "C", user_id`,
	"SELECT user_id, MAX(danish) AS m FROM people GROUP BY user_id ORDER BY MAX(danish), user_id LIMIT 3",
	"SELECT user_id, COALESCE(MAX(code), 'none') FROM people GROUP BY user_id ORDER BY MAX(code) DESC NULLS LAST, user_id",
	"SELECT MIN(english) FILTER (WHERE small > 1), MAX(danish) FILTER (WHERE id < 0), MIN(code), MAX(code) FROM people",
	"SELECT MIN(english), MAX(danish) FROM people WHERE id < $1",
	"SELECT small, MIN(danish) FROM people WHERE id < $1 GROUP BY small",
	"SELECT id, tag FROM people ORDER BY tag, english DESC NULLS LAST, danish NULLS FIRST, id LIMIT 7 OFFSET 3",
	"SELECT DISTINCT ON (danish) danish, id FROM people ORDER BY danish, english DESC, id",
	"SELECT DISTINCT ON (code) code, id FROM people ORDER BY code DESC, id LIMIT 4",
	"SELECT danish FROM people WHERE small = 1 UNION SELECT danish FROM people WHERE small = 2 ORDER BY danish DESC LIMIT 6",
	"SELECT danish, id FROM people WHERE small = 1 UNION ALL SELECT danish, id FROM people WHERE small = 2 ORDER BY 1, 2",
	"SELECT MIN(danish) FROM people WHERE small = 1 UNION ALL SELECT MIN(danish) FROM people WHERE small = 2",
	"SELECT danish, COUNT(*), MIN(english) FROM people GROUP BY danish HAVING COUNT(*) > 1 ORDER BY danish LIMIT 4 OFFSET 1",
	"SELECT COUNT(*) FROM (SELECT DISTINCT danish FROM people ORDER BY danish LIMIT 5) AS t",
	"SELECT id, ROW_NUMBER() OVER (ORDER BY danish, id) FROM people ORDER BY danish, id",
	"SELECT id, RANK() OVER (ORDER BY danish), DENSE_RANK() OVER (ORDER BY danish) FROM people ORDER BY danish, id",
	"SELECT danish, SUM(COUNT(*)) OVER (ORDER BY danish) FROM people GROUP BY danish ORDER BY danish",
	"SELECT *, COUNT(*) OVER () AS n FROM people ORDER BY english, id LIMIT 3",
	"SELECT id, (SELECT MAX(p.danish) FROM people p WHERE p.user_id = o.user_id) AS m FROM people o ORDER BY m, id",
	"SELECT o.id FROM people o JOIN people p ON p.user_id = o.user_id AND p.id = o.id ORDER BY p.danish, o.code, o.id",
	"SELECT id, MAX(danish) OVER (PARTITION BY user_id) AS m FROM people ORDER BY m DESC, id",
	"SELECT id FROM people ORDER BY COALESCE(danish, $1), id",
	"SELECT id, danish FROM people ORDER BY CASE WHEN small = 1 THEN danish ELSE LOWER(danish) END, id",
	"SELECT id FROM people WHERE danish > 'a' ORDER BY SUBSTR(danish, 2), id FOR SHARE",
}

// The rows are those of one table with each driver, in each of its protocols, whether the connections are those of a transaction or not.
func TestTextsAreOrderedInTheirCollationsInEveryProtocol(t *testing.T) {
	p := server.SharePostgres(t)
	for name, of := range map[string][2]string{
		"pgx": {"pgx", ""}, "simple": {"pgx", "&default_query_exec_mode=simple_protocol"}, "exec": {"pgx", "&default_query_exec_mode=exec"}, "pq": {"postgres", ""}, "binary": {"postgres", "&binary_parameters=yes"},
	} {
		t.Run(name, func(t *testing.T) {
			routed, whole := wordTwins(t, namedDatabase(func(tb testing.TB, database string) *sql.DB {
				tb.Helper()
				p.OpenICU(tb, database, "sv-SE")
				return opened(tb, of[0], p.DSN(database)+"?sslmode=disable"+of[1])
			}).of("protocol_"+name))
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for _, text := range wordQueries {
				args := make([]any, strings.Count(text, "$1"))
				for i := range args {
					args[i] = 0
					if strings.Contains(text, "COALESCE") {
						args[i] = "m"
					}
				}
				q := selects.Query{Text: text, Args: args, Open: !strings.Contains(text, "ORDER BY")}
				want, failed := q.Answer(t.Context(), whole, nil)
				for where, on := range map[string]selects.Database{"pools": routed, "transaction": tx} {
					if got, err := q.Answer(t.Context(), on, nil); err != nil || failed != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s, %s: %q, %v, and one table answers %q, %v", where, text, got, err, want, failed)
					}
				}
			}
		})
	}
}

// Each shard has sorted its texts, or chosen the least of them, as its own database does.
func TestDatabasesWhoseCollationsOfOneNameDifferAreRefused(t *testing.T) {
	open := namedDatabase(server.SharePostgres(t).Open).of("named")
	made, of := map[string]int{}, map[string][2]string{"same": {"da", "da"}, "other": {"en", "da"}, "missing": {"en", ""}, "members": {"'z', 'a', 'aa', 'å'", "'aa', 'a', 'å', 'z'"}}
	for name, locales := range of {
		t.Run(name, func(t *testing.T) {
			routed, _ := spreadTwins(t, func(tb testing.TB, in string) *sql.DB {
				tb.Helper()
				db := open.of(name)(tb, in)
				locale := locales[made[name]%2]
				made[name]++
				switch {
				case name == "members":
					database.Exec(tb, db, "CREATE TYPE words AS ENUM ("+locale+")")
				case locale == "":
					database.Exec(tb, db, "CREATE DOMAIN words AS TEXT")
				default:
					database.Exec(tb, db, "CREATE COLLATION words (provider = icu, locale = '"+locale+"')")
					database.Exec(tb, db, "CREATE DOMAIN words AS TEXT COLLATE words")
				}
				return db
			}, "people", "user_id", "id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, word words")
			for id, word := range []string{"z", "aa", "å", "a"} {
				if _, err := routed.ExecContext(t.Context(), "INSERT INTO people (id, user_id, word) VALUES ($1, $1, $2)", id, word); err != nil {
					t.Fatal(err)
				}
			}
			for text, want := range map[string]string{"SELECT word FROM people ORDER BY word": "word a z å aa", "SELECT MAX(word) FROM people": "max aa"} {
				for range 2 {
					got, err := selects.Query{Text: text}.Answer(t.Context(), routed, nil)
					switch {
					case name == "same":
						if err != nil || strings.Join(got, " ") != want {
							t.Errorf("%s: %q, %v", text, got, err)
						}
					case name != "missing" && !errors.Is(err, sharding.ErrSettings), err == nil, !strings.Contains(err.Error(), "words"):
						t.Errorf("%s: %q, %v", text, got, err)
					}
				}
			}
		})
	}
}

// Tables of which one has another column are refused as they are when no database is asked, and more rows than fit into memory, too.
func TestRowsWhoseTextsCannotBeRankedAreRefused(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open.of("unranked_"+name)(t, "a")}
			m, err := sharding.Spread([]string{"a"}, 2, "people_%d")
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range m.Targets() {
				database.Exec(t, dbs["a"], "CREATE TABLE "+at.Table+` (id BIGINT NOT NULL PRIMARY KEY, `+[]string{"more INT, ", ""}[i]+`word TEXT COLLATE "en-x-icu")`)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "people", Key: "id", Rule: sharding.Mod(2), Map: m, OnMissing: sharding.FanOutReads})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			for id := range 70 {
				if _, err := routed.ExecContext(t.Context(), "INSERT INTO people (id, word) VALUES ($1, repeat('x', 1000000))", id); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for where, on := range map[string]selects.Database{"pool": routed, "transaction": tx} {
				for text, want := range map[string]string{"SELECT * FROM people WHERE id < 4 ORDER BY word": "different columns", "SELECT word FROM people ORDER BY word": "67108864 bytes"} {
					got, err := selects.Query{Text: text}.Answer(t.Context(), on, nil)
					if !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), want) {
						t.Errorf("%s, %s: %d rows, %v", where, text, len(got), err)
					}
				}
				if got, err := (selects.Query{Text: "SELECT id FROM people WHERE id < 3 ORDER BY word, id"}).Answer(t.Context(), on, nil); err != nil || fmt.Sprint(got) != "[id 0 1 2]" {
					t.Errorf("%s: %q, %v", where, got, err)
				}
			}
		})
	}
}

// A pool of one connection suffices: it is free again when a database is asked, also of a query whose rows the program does not read.
func TestTheOrderOfTextsNeedsNoFurtherConnection(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=10")
	for name, driver := range map[string]string{"pgx": "pgx", "pq": "postgres"} {
		t.Run(name, func(t *testing.T) {
			dbs, primary := sharding.DBs{}, sharding.DBs{}
			replicas := map[string][]*sql.DB{}
			for _, db := range []string{"a", "b"} {
				primary[db] = p.Open(t, db+"_single_"+name)
				replicas[db] = []*sql.DB{primary[db]}
				dbs[db] = opened(t, driver, p.DSN(db+"_single_"+name)+"?sslmode=disable")
				dbs[db].SetMaxOpenConns(1)
				primary[db].SetMaxOpenConns(1)
			}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "people_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, primary[at.DB], "CREATE TABLE "+at.Table+` (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, english TEXT COLLATE "en-x-icu")`)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads}, sharding.Transactions(sharding.Atomic))
			if err = errors.Join(err, twophase.Create(t.Context(), router, nil)); err != nil {
				t.Fatal(err)
			}
			for of, config := range map[string]shardsql.Config{"databases": {Router: router, Home: dbs["a"]}, "replicas": {Router: router, Home: dbs["a"], Replicas: replicas}} {
				routed := shardsql.OpenDB(config)
				t.Cleanup(func() { _ = routed.Close() })
				asksOnFewConnections(t, of, routed)
			}
		})
	}
}

func asksOnFewConnections(t *testing.T, of string, routed *sql.DB) {
	t.Helper()
	const text = "SELECT english FROM people ORDER BY english, id"
	q := selects.Query{Text: text}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx, err := routed.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for id, word := range []string{"b", "B", "a", "A", "ä"} {
		if _, err := tx.ExecContext(ctx, "INSERT INTO people (id, user_id, english) VALUES ($1, $1, $2)", id, word); err != nil {
			t.Fatal(err)
		}
	}
	open, err := tx.QueryContext(ctx, text)
	if err != nil || !open.Next() {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if got, err := q.Answer(ctx, tx, nil); err != nil || strings.Join(got, " ") != "english a A ä b B" {
		t.Errorf("%s: %q, %v", of, got, err)
	}
	if err := errors.Join(open.Err(), open.Close()); err != nil {
		t.Error(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO people (id, user_id, english) VALUES (1, 1, 'b')"); err == nil {
		t.Error("an id is there twice")
	}
	if got, err := q.Answer(ctx, tx, nil); err == nil || !strings.Contains(err.Error(), "aborted") {
		t.Errorf("%s: an aborted transaction answers %q, %v", of, got, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	cancel()
	if got, err := q.Answer(ctx, routed, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %q, %v", of, got, err)
	}
	conn, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for range 3 {
		if got, err := q.Answer(t.Context(), conn, nil); err != nil || len(got) != 1 {
			t.Errorf("%s: %q, %v", of, got, err)
		}
		if got, err := q.Answer(t.Context(), routed, nil); err != nil || len(got) != 1 {
			t.Errorf("%s: %q, %v", of, got, err)
		}
	}
}

// Texts may be sorted in another collation than theirs, also in one that treats different texts as equal, and ENUMs by the order of their members.
func TestTextsAreOrderedInNamedCollationsAndMembersOfENUMsInTheirOrder(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := spreadTwins(t, func(tb testing.TB, in string) *sql.DB {
				tb.Helper()
				db := open.of("ordered_"+name)(tb, in)
				database.Exec(tb, db, "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
				database.Exec(tb, db, `CREATE TYPE "Odd Mood" AS ENUM ('sad', 'it''s "ok"\', '', 'ok', 'happy')`)
				database.Exec(tb, db, `CREATE DOMAIN felt AS "Odd Mood"`)
				return db
			}, "people", "user_id", `id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, own TEXT, code CHAR(4), mood "Odd Mood", felt felt, small INT`)
			words, moods := []any{"b", "B", "a", "A", "ä", "aa", "å", "z", nil}, []any{"happy", `it's "ok"\`, "", "sad", "ok", nil}
			for id := range 40 {
				for _, db := range []*sql.DB{routed, whole} {
					if _, err := db.ExecContext(t.Context(), "INSERT INTO people (id, user_id, own, code, mood, felt, small) VALUES ($1, $2, $3, $4, $5, $6, $7)", id, id%9, words[id*5%9], words[id*7%9], moods[id*5%6], moods[id%6], id%4); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, text := range []string{
				`SELECT id, own FROM people ORDER BY own COLLATE "da-x-icu" DESC NULLS LAST, id`,
				`SELECT id FROM people ORDER BY own COLLATE folding, code COLLATE "de-x-icu", id LIMIT 9 OFFSET 4`,
				`SELECT id FROM people ORDER BY LOWER(own) COLLATE public.folding NULLS FIRST, mood DESC, id`,
				`SELECT id, own COLLATE "da-x-icu" AS o FROM people ORDER BY o, id LIMIT 11`,
				`SELECT own, COUNT(*) FROM people GROUP BY own ORDER BY own COLLATE "da-x-icu" DESC`,
				`SELECT own, mood, COUNT(*) AS n FROM people GROUP BY own, mood ORDER BY n DESC, own COLLATE pg_catalog."da-x-icu", mood NULLS FIRST LIMIT 12`,
				`SELECT user_id, MAX(code) FROM people GROUP BY user_id ORDER BY MAX(code) COLLATE "da-x-icu", user_id`,
				`SELECT id, RANK() OVER (ORDER BY own COLLATE folding) FROM people ORDER BY own COLLATE folding, id`,
				"SELECT id, mood FROM people ORDER BY mood, felt DESC, id LIMIT 13 OFFSET 2",
				"SELECT MIN(mood), MAX(mood), COUNT(DISTINCT felt) FROM people",
				"SELECT small, MIN(mood) AS m, MAX(mood) FROM people WHERE id > 3 GROUP BY small ORDER BY m DESC, small",
				"SELECT MAX(mood) FROM people WHERE id < 0",
				"SELECT COALESCE(MAX(mood), 'sad') FROM people WHERE small = 1",
				"SELECT DISTINCT mood FROM people ORDER BY mood DESC NULLS LAST",
				"SELECT DISTINCT ON (felt) felt, id FROM people ORDER BY felt, id DESC",
				"SELECT mood FROM people WHERE small = 1 UNION SELECT mood FROM people WHERE small = 2 ORDER BY mood",
				"SELECT mood, COUNT(*), RANK() OVER (ORDER BY mood) FROM people GROUP BY mood ORDER BY mood",
				"SELECT m, COUNT(*) FROM (SELECT user_id, MIN(mood) AS m FROM people GROUP BY user_id) AS t GROUP BY m ORDER BY m",
				"SELECT id FROM people ORDER BY CASE WHEN small = 1 THEN mood END, id",
			} {
				q := selects.Query{Text: text}
				got, err := q.Answer(t.Context(), routed, nil)
				want, failed := q.Answer(t.Context(), whole, nil)
				if err != nil || failed != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: %q, %v, and one table answers %q, %v", text, got, err, want, failed)
				}
			}
			for _, text := range []string{
				"SELECT DISTINCT own COLLATE folding FROM people", "SELECT own COLLATE folding, COUNT(*) FROM people GROUP BY 1", "SELECT MIN(own COLLATE folding) FROM people",
				`SELECT own COLLATE "da-x-icu" AS o FROM people UNION SELECT own FROM people ORDER BY o`, "SELECT DISTINCT user_id, own COLLATE folding AS o FROM people ORDER BY o",
			} {
				if got, err := (selects.Query{Text: text}).Answer(t.Context(), routed, nil); !errors.Is(err, sharding.ErrUnmergeable) {
					t.Errorf("%s: %q, %v", text, got, err)
				}
			}
		})
	}
}
