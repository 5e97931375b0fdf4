// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// postgresColumns are those of the orders of twins: of texts whose collation is C as that
// of the database, or by name, or another one.
const postgresColumns = ` (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, paid INT, amount NUMERIC(10,2), at TIMESTAMP, note VARCHAR(20), code TEXT COLLATE "C", word CHAR(8), body TEXT, state TEXT, score REAL)`

// On PostgreSQL, results of several shards equal those of one table.
func TestRandomQueriesOfSeveralShardsOfPostgreSQLAnswerWhatOneTableAnswers(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			m := layouts(t)[map[string]string{"pgx": "named", "pq": "numbered"}[name]]
			routed, whole := postgresTwins(t, open.of(name), m)
			queries, refused, divisions := effort.Cases(1000, 50_000), map[string]int{}, 0
			for seed := range uint64(queries) {
				q := selects.Random(rand.New(rand.NewPCG(seed, 4)), "DATE_TRUNC('hour', at)", "amount * 2", "amount * 0.25", "paid - 1",
					"CASE WHEN amount < 5 THEN 'small' WHEN amount < 8 THEN 'large' END", "-paid", "-amount", "EXTRACT(YEAR FROM at)", "EXTRACT(EPOCH FROM at)", "DATE_PART('minute', at)", "TO_CHAR(at, 'YYYY-MM')", "TO_CHAR(at, 'HH24:MI:SS')", "ROUND(amount, 1)", "ROUND(paid)", "ROUND(paid, 1)", "FLOOR(amount)", "CONCAT(note, ' ', code)", "code || note", "REPLACE(note, 'a', 'b')", "INITCAP(code)", "MD5(note)",
					"amount / 3", "user_id / 7", "paid & 1", "id << 2", "id >> 3", "paid # 5", "at + INTERVAL '1 day'", "at - INTERVAL '2 hours' - INTERVAL '1 minute'", "NULLIF(paid, 1)", "NULLIF(note, 'a')", "GREATEST(paid, 1, user_id)", "LEAST(paid, user_id)", "CAST(amount AS integer) + 1",
					"score", "COALESCE(score, 0.3)", "COALESCE(score, paid)", "CASE WHEN paid = 1 THEN score ELSE 1 END", "CAST(score AS double precision) + 1", "score::float8 * 2",
					"(at - INTERVAL '1 hour')::date", "(at - INTERVAL '1 hour')::timestamp(0)", "(amount * 3)::numeric(10, 1)", "(paid * 2)::text", "(code || 'b')::varchar(1)", "(at - INTERVAL '1 hour')::timestamptz").ForPostgreSQL()
				want, err := q.Answer(t.Context(), whole, nil)
				if dialect.SQLState(err) == "22012" { // for a row that may be left out afterwards
					divisions++
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", q.Text, err)
				}
				switch got, err := q.Answer(t.Context(), routed, nil); {
				case dialect.SQLState(err) == "22012": // for a group that PostgreSQL may not have come to
					divisions++
				case errors.Is(err, sharding.ErrUnmergeable):
					refused[err.Error()]++
				case err != nil || !slices.Equal(got, want):
					t.Fatalf("seed %d: %s %v:\n%q, %v\nwant %q", seed, q.Text, q.Args, got, err, want)
				}
			}
			for _, text := range []string{derivedColumns, "SELECT ROUND(COUNT(*), 2), ROUND(SUM(paid), 1), COALESCE(SUM(amount), SUM(score::float8)), COUNT(*) > 5 FROM orders", "SELECT MIN(score), MAX(score), SUM(score::float8), COUNT(DISTINCT score) FROM orders",
				"SELECT COUNT(*) FILTER (WHERE paid > 0), AVG(amount) FILTER (WHERE note IS NOT NULL), MAX(at) FILTER (WHERE code = 'a'), BOOL_OR(paid > 1) FILTER (WHERE id < 9) FROM orders",
				"SELECT BOOL_AND(amount > 3), EVERY(id >= 0), COUNT(*)::int, COALESCE(SUM(paid), 0)::bigint FROM orders",
				"SELECT COUNT(jsonb_build_object('id', id, 'note', note)), COUNT(sin(id)), COUNT(to_hex(paid)), COUNT(*) FROM orders WHERE to_tsvector('english', body) @@ plainto_tsquery('english', 'a') OR array_to_string(ARRAY[note, code], '-') <> ''",
				"SELECT AVG(amount)::float8, (SUM(amount) / COUNT(*))::int, CAST(SUM(score::float8) AS bigint), SUM(amount)::smallint FROM orders", "SELECT score, MAX(score), MIN(id), COUNT(*) AS n FROM orders WHERE score > 0.05 GROUP BY score ORDER BY n DESC, MAX(score) DESC LIMIT 1"} {
				if want, got := four(t, whole, text), four(t, routed, text); got != want {
					t.Errorf("%s: %q, want %q", text, got, want)
				}
			}
			answerGroupsOfShards(t, routed, whole, []string{
				`SELECT word COLLATE "C" AS w, COUNT(*) FROM orders GROUP BY w ORDER BY w`,
				`SELECT word COLLATE "C", MAX(id) FROM orders GROUP BY word COLLATE "C" HAVING COUNT(*) > 1 ORDER BY 2`,
				"SELECT user_id, STRING_AGG(id::text, ',' ORDER BY id) AS ids, ARRAY_AGG(id ORDER BY id), STDDEV(amount), BIT_OR(id), BOOL_OR(paid = 1), JSON_AGG(id ORDER BY id), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY id) FROM orders GROUP BY user_id ORDER BY user_id",
				"SELECT user_id, COUNT(*) > 13, CASE WHEN SUM(paid) > 15 THEN 'many' ELSE 'few' END, CEIL(COUNT(*) / 4.0) AS pages, CONCAT(SUM(amount), ' EUR'), DATE_TRUNC('hour', MAX(at)) FROM orders GROUP BY user_id HAVING COUNT(*) > 3 AND STRING_AGG(id::text, ',') LIKE '%1%' ORDER BY pages, LENGTH(STRING_AGG(id::text, ',')), user_id LIMIT 7",
			}, "STRING_AGG(id::text, ',')")
			if err := routed.QueryRow("SELECT SUM(score) FROM orders").Scan(new(any)); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "SUM(CAST(score AS double precision))") {
				t.Errorf("the sum of a real: %v", err)
			}
			n := 0
			for why, times := range refused {
				t.Log(times, why)
				n += times
			}
			if t.Logf("%d of %d queries are refused, and %d divide by 0", n, queries, divisions); n*20 > queries {
				t.Error("too many")
			}
		})
	}
}

// postgresDrivers open databases of PostgreSQL by pgx and by lib/pq.
func postgresDrivers(t *testing.T) map[string]namedDatabase {
	t.Helper()
	p := server.SharePostgres(t)
	return map[string]namedDatabase{"pgx": p.Open, "pq": func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		p.Open(tb, name) // makes it
		return opened(tb, "postgres", p.DSN(name)+"?sslmode=disable")
	}}
}

func opened(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// On PostgreSQL, writes to several shards leave the rows of one table, and a statement that
// fails ends the transaction on all databases.
func TestRandomWritesToSeveralShardsOfPostgreSQLLeaveWhatOneTableHas(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			m := layouts(t)[map[string]string{"pgx": "numbered", "pq": "named"}[name]]
			routed, whole := writtenTwins(t, open.of(name), m)
			programs := effort.Cases(200, 20_000)
			done := 0
			for seed := range uint64(programs) {
				maker := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 6)), PostgreSQL: true}
				n, err := maker.Program(sharding.AllShards(t.Context()), routed, whole)
				if done += n; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if t.Logf("%d statements", done); done < 2*programs {
				t.Error("too few succeed")
			}
		})
	}
}

func postgresTwins(t *testing.T, open namedDatabase, m sharding.Map) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, "twin_a"), "b": open(t, "twin_b")}, open(t, "twin_whole")
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+postgresColumns)
	}
	database.Exec(t, whole, "CREATE TABLE orders"+postgresColumns)
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	for id := range int64(300) {
		args := []any{id, random.Int64N(20), random.Int64N(3), random.Int64N(40), time.Date(2026, 1, 1, random.IntN(3), 0, random.IntN(50), 0, time.UTC), twinText(random, "aAáàbBé"), twinText(random, "aAáb"), twinText(random, "aAb"), twinText(random, "aAáàbBé"), []string{"new", "paid", "A", "open"}[random.IntN(4)]}
		if random.IntN(5) == 0 {
			args[2+random.IntN(8)] = nil
		}
		if args = append(args, 0.1*float64(id%13)); id%11 == 0 {
			args[10] = nil
		}
		for _, db := range []*sql.DB{routed, whole} {
			if _, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, user_id, paid, amount, at, note, code, word, body, state, score) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	return routed, whole
}

// A statement that fails ends a transaction of PostgreSQL on all of its databases, until
// it is rolled back, or to a savepoint.
func TestAFailedStatementEndsATransactionOnAllDatabasesOfPostgreSQL(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			routed, _ := writtenTwins(t, open.of("failed_"+name), m)
			const insert = "INSERT INTO orders (id, user_id, paid) VALUES ($1, $1, 0)"
			database.Exec(t, routed, strings.ReplaceAll(insert, "$1", "1"))
			begin := func() *sql.Tx {
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return tx
			}
			exec := func(tx *sql.Tx, state, text string, args ...any) {
				t.Helper()
				_, err := tx.ExecContext(t.Context(), text, args...)
				if dialect.SQLState(err) != state {
					t.Errorf("%s: %v", text, err)
				}
				if state == "25P02" && (errors.Unwrap(err) != nil || strings.Contains(err.Error(), "unique")) {
					t.Errorf("%s: the error is taken for that of the statement before: %v", text, err)
				}
			}
			tx := begin()
			exec(tx, "", insert, 2)
			exec(tx, "23505", insert, 1)
			exec(tx, "25P02", insert, 3)
			exec(tx, "25P02", "SELECT id FROM orders WHERE user_id = $1 AND user_id = 3", 5) // no shard has such a row
			if err := tx.Commit(); dialect.SQLState(err) != "25P02" {
				t.Errorf("commit: %v", err)
			}
			tx = begin()
			exec(tx, "", insert, 2)
			exec(tx, "", "SAVEPOINT before")
			exec(tx, "23505", insert, 1)
			exec(tx, "", "ROLLBACK TO SAVEPOINT before")
			exec(tx, "", insert, 3)
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			tx = begin()
			exec(tx, "", insert, 4)
			exec(tx, "3B001", "ROLLBACK TO SAVEPOINT before")
			exec(tx, "25P02", insert, 5)
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
			tx = begin()
			exec(tx, "", insert, 4)
			exec(tx, "", insert, 5)
			var n int
			if err := tx.QueryRowContext(t.Context(), "SELECT 1 / paid FROM orders WHERE user_id = 5").Scan(&n); dialect.SQLState(err) != "22012" {
				t.Errorf("a row that is not computed: %v", err)
			}
			if err := tx.Commit(); err == nil {
				t.Error("a failed transaction is committed")
			}
			if err := routed.QueryRowContext(sharding.AllShards(t.Context()), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil || n != 3 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
}

// Equal texts of PostgreSQL have equal bytes under most collations, and sort by bytes
// under C alone.
func TestTextsOfPostgreSQLAreGroupedByTheirBytesAndSortedInTheirCollation(t *testing.T) {
	open := namedDatabase(server.SharePostgres(t).Open).of("texts")
	database.Exec(t, open(t, "a"), `CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	dbs := sharding.DBs{"a": open(t, "a")}
	m, err := sharding.Spread([]string{"a"}, 2, "texts_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs["a"], "CREATE TABLE "+at.Table+` (id BIGINT PRIMARY KEY, c TEXT, german TEXT COLLATE "de-x-icu", folded TEXT COLLATE folding, kind JSONB)`)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "texts", Key: "id", Rule: sharding.Mod(2), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	for i, text := range []string{"b", "a", "A", "ä", "a", "b"} {
		if _, err := routed.ExecContext(t.Context(), "INSERT INTO texts (id, c, german, folded) VALUES ($1, $2, $2, $2)", i, text); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"SELECT c FROM texts ORDER BY c":                                     "A|a|a|b|b|ä",
		"SELECT german, COUNT(*) FROM texts GROUP BY german":                 "",
		"SELECT DISTINCT german FROM texts":                                  "",
		"SELECT german FROM texts ORDER BY german":                           "a|a|A|ä|b|b",
		`SELECT german FROM texts ORDER BY german COLLATE "C"`:               "A|a|a|b|b|ä",
		`SELECT MIN(german COLLATE "C") FROM texts`:                          "A",
		`SELECT german FROM texts ORDER BY german COLLATE "en-x-icu"`:        "a|a|A|ä|b|b",
		`SELECT german COLLATE "en-x-icu", COUNT(*) FROM texts GROUP BY 1`:   "it is not known how",
		"SELECT MIN(german) FROM texts":                                      "a",
		"SELECT german, COUNT(*) FROM texts GROUP BY german ORDER BY german": "a|2|A|1|ä|1|b|2",
		"SELECT DISTINCT folded FROM texts":                                  "treats different texts as equal",
		"SELECT DISTINCT kind FROM texts":                                    "jsonb",
	} {
		rows, err := selects.Query{Text: text}.Answer(t.Context(), routed, nil)
		switch {
		case err != nil && (!errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), want) || want == ""):
			t.Errorf("%s: %v", text, err)
		case err == nil && want == "":
			if len(rows) != 1+4 {
				t.Errorf("%s: %q", text, rows)
			}
		case err == nil && strings.Join(rows[1:], "|") != want:
			t.Errorf("%s: %q, want %q", text, rows, want)
		}
	}
}

func TestDatabasesOfPostgreSQLThatAreSetUpDifferentlyAreRefused(t *testing.T) {
	p := server.SharePostgres(t)
	p.Open(t, "set_b")
	for params, setting := range map[string]string{"": "", "&timezone=Asia/Tokyo": "TimeZone", "&datestyle=German": "DateStyle"} {
		dbs := sharding.DBs{"a": p.Open(t, "set_a"), "b": opened(t, "pgx", p.DSN("set_b")+"?sslmode=disable"+params)}
		m, err := sharding.Spread([]string{"a", "b"}, 2, "set_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], "CREATE TABLE IF NOT EXISTS "+at.Table+" (id BIGINT PRIMARY KEY)")
		}
		router, err := sharding.New(dbs, sharding.Table{Name: "sets", Key: "id", Rule: sharding.Mod(2), Map: m, OnMissing: sharding.FanOutReads})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
		t.Cleanup(func() { _ = routed.Close() })
		_, err = routed.ExecContext(t.Context(), "DELETE FROM sets WHERE id = 1")
		if setting == "" && err != nil || setting != "" && (!errors.Is(err, sharding.ErrSettings) || !strings.Contains(err.Error(), setting)) {
			t.Errorf("%q: %v", params, err)
		}
	}
}

// A list of keys is one argument of PostgreSQL's drivers: = ANY ($1).
func TestAnArrayOfKeysGoesToTheShardsOfItsElements(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := writtenTwins(t, open.of("array_"+name), layouts(t)["numbered"])
			for id := range 12 {
				database.Exec(t, routed, fmt.Sprintf("INSERT INTO orders (id, user_id, paid) VALUES (%d, %[1]d, 0)", id))
			}
			array := func(keys ...int64) any {
				if name == "pq" {
					return pq.Array(keys)
				}
				return keys
			}
			for _, test := range []struct {
				keys   []int64
				shards int
			}{{[]int64{1, 5, 9}, 1}, {[]int64{1, 2, 5}, 2}, {[]int64{1}, 1}} {
				var n int
				if err := routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE user_id = ANY ($1)", array(test.keys...)).Scan(&n); err != nil || n != len(test.keys) {
					t.Errorf("%v: %d rows, %v", test.keys, n, err)
				}
				e, err := shardsql.Explain(t.Context(), routed, "SELECT id FROM orders WHERE user_id = ANY ($1::bigint[])", test.keys)
				if err != nil || len(e.Shards) != test.shards {
					t.Errorf("%v: %+v, %v", test.keys, e, err)
				}
			}
			r, err := routed.ExecContext(t.Context(), "UPDATE orders SET paid = 1 WHERE user_id = ANY ($1) AND paid = $2", array(3, 7, 4), 0)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := r.RowsAffected(); err != nil || n != 3 {
				t.Errorf("%d rows are changed, %v", n, err)
			}
		})
	}
}

// A cast may shorten the elements, and the shorter ones lead to other shards.
func TestAnArrayWhoseCastChangesKeysGoesToAllShards(t *testing.T) {
	open := server.SharePostgres(t).Open
	dbs := sharding.DBs{"a": open(t, "cut_a"), "b": open(t, "cut_b")}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "tags_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (name TEXT PRIMARY KEY)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "tags", Key: "name", Rule: sharding.HashText(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	for i := range 8 {
		database.Exec(t, routed, fmt.Sprintf("INSERT INTO tags (name) VALUES ('ta%d')", i))
		for _, array := range []string{"$1", "$1::text[]", "$1::varchar(3)[]", "CAST($1 AS varchar(3)[])"} {
			given, n := fmt.Sprintf("{ta%d}", i), 0
			if strings.Contains(array, "(3)") {
				given = fmt.Sprintf("{ta%d-long}", i)
			}
			if err := routed.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tags WHERE name = ANY ("+array+")", given).Scan(&n); err != nil || n != 1 {
				t.Errorf("%s, %s: %d rows, %v", array, given, n, err)
			}
		}
	}
}

// lib/pq copies rows by executing a prepared COPY with each row, and at last without arguments.
func TestARoutedTransactionCopiesRowsIntoATableAtHomeByLibPQ(t *testing.T) {
	routed, _ := writtenTwins(t, postgresDrivers(t)["pq"].of("copying"), layouts(t)["named"])
	database.Exec(t, routed, "CREATE TABLE imported (id BIGINT, note TEXT)") // at home
	for table, want := range map[string]error{"imported": nil, "orders": sharding.ErrRawTable} {
		tx, err := routed.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := copied(t, tx, table); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", table, err, want)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	var n, sum int
	if err := routed.QueryRowContext(t.Context(), "SELECT COUNT(*), SUM(id) FROM imported WHERE note = 'a' || chr(9) || 'b'").Scan(&n, &sum); err != nil || n != 3 || sum != 6 {
		t.Errorf("%d rows with the sum %d, %v", n, sum, err)
	}
}

func copied(t *testing.T, tx *sql.Tx, table string) error {
	t.Helper()
	st, err := tx.PrepareContext(t.Context(), "COPY "+table+" (id, note) FROM STDIN")
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	for id := 1; id <= 3; id++ {
		if _, err := st.ExecContext(t.Context(), id, "a\tb"); err != nil {
			return err
		}
	}
	_, err = st.ExecContext(t.Context())
	return err
}

// pgx accepts such arguments before those of the parameters.
func TestAnArgumentForPgxIsNotTheFirstParametersValue(t *testing.T) {
	routed, _ := writtenTwins(t, namedDatabase(server.SharePostgres(t).Open).of("options"), layouts(t)["numbered"])
	database.Exec(t, routed, "INSERT INTO orders (id, user_id, paid) VALUES (3, 7, 0)")
	for text, args := range map[string][]any{
		"INSERT INTO orders (user_id, id, paid) VALUES ($1, $2, 0)":     {pgx.QueryExecModeSimpleProtocol, 7, 11},
		"UPDATE orders SET paid = 1 WHERE user_id = $1":                 {pgx.QueryExecModeExec, 7},
		"SELECT id FROM orders WHERE user_id = $1":                      {pgx.QueryResultFormats{pgx.TextFormatCode}, 7},
		"SELECT id FROM orders LIMIT 1":                                 {pgx.QueryExecModeSimpleProtocol},
		"SELECT id FROM orders WHERE user_id = @user AND paid >= @paid": {pgx.NamedArgs{"user": 7, "paid": 0}},
	} {
		if _, err := routed.ExecContext(t.Context(), text, args...); !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "default_query_exec_mode") {
			t.Errorf("%s: %v", text, err)
		}
	}
	var n int
	if err := routed.QueryRowContext(t.Context(), "SELECT $1::int", pgx.QueryExecModeSimpleProtocol, 5).Scan(&n); err != nil || n != 5 {
		t.Errorf("a statement without a sharded table: %d, %v", n, err)
	}
}

// Values of every type sort, group and have a least and a greatest one as they have in one
// table, or are refused.
func TestEveryTypeOfPostgreSQLComparesAsInOneTableOrIsRefused(t *testing.T) {
	types := map[string][]string{
		"bool": {"true", "false"}, "int2": {"-32768", "0", "32767"}, "int4": {"-2147483648", "7", "2147483647"}, "int8": {"-9223372036854775808", "0", "9223372036854775807"},
		"numeric": {"-2", "-1.50", "-1.5", "0.00", "0", "1e20", "0.1", "NaN", "Infinity"}, "numeric(12,3)": {"-1.5", "12.345", "0"}, "float8": {"-0", "0", "1.5", "-1e100", "NaN", "Infinity", "-Infinity"}, "float4": {"0.1", "-1.5", "16777217"},
		"text": {"", "a", "A", "a ", "ä", "Z"}, "varchar(9)": {"", "b", "B", "b "}, "char(5)": {"a", "a    ", "ab", "\x01"}, "bytea": {`\x00`, `\x`, `\xff00`},
		"date": {"2026-01-01", "0044-03-15 BC", "9999-12-31"}, "timestamp": {"2026-01-01 00:00:00.000001", "2026-01-01"}, "timestamptz": {"2026-01-01 00:00:00+09", "2026-01-01 00:00:00+00"},
		"time": {"10:00", "09:59:59.5", "24:00"}, "interval": {"1 day", "24 hours", "-1 month"}, "uuid": {"00000000-0000-0000-0000-000000000001", "FFFFFFFF-0000-0000-0000-000000000001", "10000000-0000-0000-0000-000000000000"},
		"jsonb": {"1", "{}", "[]"}, "int4[]": {"{1,2}", "{10}", "{}"}, "inet": {"10.0.0.2", "10.0.0.10"}, "oid": {"1", "4000000000"}, "mood": {"sad", "ok", "happy"}, "amount": {"3", "20"}, "name": {"b", "a"}, "citext_like": {"x", "Y"},
	}
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			open = open.of("types_" + name)
			dbs, whole := sharding.DBs{"a": open(t, "a"), "b": open(t, "b")}, open(t, "whole")
			for _, db := range []*sql.DB{dbs["a"], dbs["b"], whole} {
				database.Exec(t, db, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
				database.Exec(t, db, "CREATE DOMAIN amount AS int4 CHECK (VALUE > 0)")
				database.Exec(t, db, "CREATE DOMAIN citext_like AS text")
			}
			answered := 0
			for number, kind := range slices.Sorted(maps.Keys(types)) {
				table := fmt.Sprintf("t%d", number)
				columns := " (id BIGINT PRIMARY KEY, v " + kind + ")"
				m, err := sharding.Spread([]string{"a", "b"}, 4, table+"_%d")
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range m.Targets() {
					database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
				}
				database.Exec(t, whole, "CREATE TABLE "+table+columns)
				router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{Name: table, Key: "id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
				t.Cleanup(func() { _ = routed.Close() })
				for id := range 24 {
					value := "NULL"
					if list := types[kind]; id%(len(list)+1) < len(list) {
						value = "'" + list[id%(len(list)+1)] + "'"
					}
					for _, db := range []*sql.DB{routed, whole} {
						database.Exec(t, db, fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, %s)", table, id, value))
					}
				}
				for text, open := range map[string]bool{
					"SELECT id FROM %s ORDER BY v, id": false, "SELECT id, v FROM %s ORDER BY v DESC, id LIMIT 7": false, "SELECT id FROM %s ORDER BY v NULLS FIRST, id": false, "SELECT COUNT(DISTINCT v) FROM %s": false,
					"SELECT COUNT(*), MIN(id) FROM %s GROUP BY v": true, "SELECT MIN(v), MAX(v) FROM %s": false, "SELECT SUM(v), AVG(v) FROM %s": false, "SELECT MIN(id) FROM %s GROUP BY v ORDER BY v": false,
				} {
					q := selects.Query{Text: fmt.Sprintf(text, table), Open: open}
					want, failed := q.Answer(t.Context(), whole, nil)
					got, err := q.Answer(t.Context(), routed, nil)
					switch {
					case failed != nil && err != nil:
					case errors.Is(err, sharding.ErrUnmergeable):
						t.Logf("%s of %s: %v", q.Text, kind, err)
					case err != nil || failed != nil || !slices.Equal(got, want):
						t.Errorf("%s of %s: %q, %v; want %q, %v", q.Text, kind, got, err, want, failed)
					default:
						answered++
					}
				}
			}
			if t.Logf("%d queries are answered", answered); answered < 100 {
				t.Error("too few")
			}
		})
	}
}
