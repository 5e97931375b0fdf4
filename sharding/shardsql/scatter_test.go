// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// twin is a table in shards, and the same rows in one table.
type twin struct {
	routed, one *sql.DB
	dbs         sharding.DBs
}

func newTwin(t testing.TB, rows int) *twin { return newTwinIn(t, fourTables(t), rows) }

// fourTables are two in each of two databases.
func fourTables(t testing.TB) sharding.Map { return spread(t, 4, "orders_%d") }

// layouts are the tables of twins: numbered ones, and those with the logical name.
func layouts(t testing.TB) map[string]sharding.Map {
	return map[string]sharding.Map{"numbered": fourTables(t), "of one name": spread(t, 2, "orders")}
}

func spread(t testing.TB, tables int, pattern string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, tables, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// twinOf is a table with these columns. No connection may be in use when the test ends.
func twinOf(t testing.TB, table sharding.Table, columns string, options ...sharding.Option) *twin {
	t.Helper()
	open := files(t)
	w := &twin{one: open("one.db"), dbs: sharding.DBs{"a": open("a.db"), "b": open("b.db")}}
	for _, at := range table.Map.Targets() {
		exec(t, w.dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	exec(t, w.one, "CREATE TABLE "+table.Name+columns)
	router, err := sharding.New(w.dbs, append(options, table)...)
	if err != nil {
		t.Fatal(err)
	}
	w.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: w.dbs["a"]})
	t.Cleanup(func() {
		_ = w.routed.Close()
		for name, db := range w.dbs {
			if n := db.Stats().InUse; n != 0 {
				t.Errorf("database %s: %d connections in use", name, n)
			}
		}
	})
	return w
}

func newTwinIn(t testing.TB, m sharding.Map, rows int) *twin {
	t.Helper()
	const columns = " (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, paid INTEGER, note TEXT, amount REAL, at DATETIME, code TEXT, word TEXT COLLATE NOCASE, body TEXT COLLATE RTRIM, state TEXT)"
	w := twinOf(t, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m}, columns)
	random := rand.New(rand.NewPCG(1, 2))
	for id := range int64(rows) {
		args := []any{id, random.Int64N(20), random.Int64N(3), randomText(random), float64(random.Int64N(40)) / 4, time.Unix(random.Int64N(50), 0).UTC(), randomText(random), randomText(random), randomText(random) + strings.Repeat(" ", random.IntN(3)), randomText(random)}
		if random.IntN(5) == 0 {
			args[2+random.IntN(8)] = nil
		}
		for _, db := range []*sql.DB{w.routed, w.one} {
			exec(t, db, "INSERT INTO orders (id, user_id, paid, note, amount, at, code, word, body, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", args...)
		}
	}
	return w
}

func randomText(random *rand.Rand) string {
	return strings.Repeat(string(rune('A'+random.IntN(2)*32+random.IntN(3))), random.IntN(3))
}

// folded returns the same text for equal texts of a column of the twin.
func folded(column, text string) string {
	switch column {
	case "word":
		return strings.ToLower(text)
	case "body":
		return strings.TrimRight(text, " ")
	}
	return text
}

// answer is the rows of a query as texts.
func answer(ctx context.Context, db changes.Queries, query string, args ...any) (rows []string, err error) {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	for found.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := found.Scan(values...); err != nil {
			return nil, err
		}
		var line strings.Builder
		for _, v := range values {
			fmt.Fprintf(&line, "%v|", *v.(*any))
		}
		rows = append(rows, line.String())
	}
	return append([]string{strings.Join(columns, ",")}, rows...), found.Err()
}

// same expects the result of one table.
func (w *twin) same(t testing.TB, query string) {
	t.Helper()
	got, err := answer(t.Context(), w.routed, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if want, err := answer(t.Context(), w.one, query); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%s: %v\n got %q\nwant %q", query, err, got, want)
	}
}

// A pool closes the connections that it does not keep, and the next query opens them anew.
func TestAQueryOfFewRowsOpensNoConnectionsThatItsPoolDoesNotKeep(t *testing.T) {
	for _, query := range []string{"SELECT id, note FROM orders ORDER BY id DESC LIMIT 20", "SELECT note FROM orders WHERE id = 7", "SELECT id FROM orders ORDER BY id LIMIT 900 OFFSET 100"} {
		for _, keeps := range []int{1, 2} {
			w := newTwin(t, 100)
			db := w.dbs["a"] // two tables
			db.SetMaxIdleConns(keeps)
			w.same(t, query) // by which the pool shows what it keeps
			closed := db.Stats().MaxIdleClosed
			for range 5 {
				w.same(t, query)
			}
			if s := db.Stats(); s.MaxIdleClosed > closed || s.Idle != keeps {
				t.Errorf("%s: a pool that keeps %d has %d and closed %d more", query, keeps, s.Idle, s.MaxIdleClosed-closed)
			}
		}
	}
}

func TestAQueryOfManyRowsReadsItsShardsSideBySide(t *testing.T) {
	for _, query := range []string{"SELECT id FROM orders ORDER BY id", "SELECT id FROM orders ORDER BY id LIMIT 900 OFFSET 101"} {
		w := newTwin(t, 100)
		db := w.dbs["a"]
		db.SetMaxIdleConns(1)
		for i := range int64(3) {
			before := db.Stats().MaxIdleClosed
			w.same(t, query)
			if s := db.Stats(); s.MaxIdleClosed != before+1 {
				t.Errorf("%s: query %d closed %d connections of two", query, i, s.MaxIdleClosed-before)
			}
		}
	}
}

// A server accepts a hundred connections or so, of which a query must not take all.
func TestAQueryOfManyTablesOpensFewConnections(t *testing.T) {
	const tables, atOnce = 64, 8
	for _, c := range []struct {
		query     string
		most, max int // connections: that the query opens, and SetMaxOpenConns
	}{
		{"SELECT COUNT(*), SUM(id) FROM orders", atOnce, 0},
		{"SELECT COUNT(*) FROM orders UNION ALL SELECT COUNT(*) FROM orders WHERE id > 9", atOnce, 0},
		{"SELECT id, note FROM orders ORDER BY id LIMIT 5", atOnce, 0},
		{"SELECT note, COUNT(*) FROM orders GROUP BY note", atOnce, 0},
		{"SELECT COUNT(DISTINCT note) FROM orders", atOnce, 0},
		{"SELECT id, note FROM orders ORDER BY id", 32, 0},
		{"SELECT id, note FROM orders", 32, 0},
		{"SELECT id, note FROM orders ORDER BY id", 50, 50},
		{"SELECT note, COUNT(*) FROM orders GROUP BY note", 3, 3},
	} {
		db := files(t)("a.db")
		db.SetMaxOpenConns(c.max)
		m, err := sharding.Spread([]string{"a"}, tables, "orders_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			exec(t, db, "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, note TEXT)")
		}
		router, err := sharding.New(sharding.DBs{"a": db}, sharding.FanOut(tables, atOnce), sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(tables), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
		t.Cleanup(func() { _ = routed.Close() })
		exec(t, routed, "INSERT INTO orders (id, note) VALUES (1, 'a'), (2, 'b'), (3, 'a'), (64, 'c')")
		before := db.Stats()
		got, err := answer(t.Context(), routed, c.query)
		after := db.Stats()
		if opened := int(after.MaxIdleClosed-before.MaxIdleClosed) + after.OpenConnections - before.OpenConnections + before.Idle; err != nil || opened > c.most || len(got) < 2 {
			t.Errorf("%s: %q, %v, on %d connections", c.query, got, err, opened)
		}
	}
}

func TestAPoolThatKeepsMoreConnectionsLaterIsQueriedOnMore(t *testing.T) {
	w := newTwin(t, 100)
	db := w.dbs["a"]
	const query = "SELECT id FROM orders ORDER BY id LIMIT 5"
	db.SetMaxIdleConns(1)
	for range 3 {
		w.same(t, query)
	}
	db.SetMaxIdleConns(2)
	w.same(t, "SELECT id FROM orders ORDER BY id") // takes two
	before := db.Stats()
	for range 3 {
		w.same(t, query)
	}
	if after := db.Stats(); before.Idle != 2 || after.Idle != 2 || after.MaxIdleClosed != before.MaxIdleClosed {
		t.Errorf("it has %d, had %d, and closed %d", after.Idle, before.Idle, after.MaxIdleClosed-before.MaxIdleClosed)
	}
}

func TestSeveralShardsReturnTheResultsOfOneTable(t *testing.T) {
	w := newTwin(t, 300)
	ordered := []string{
		"SELECT * FROM orders ORDER BY id",
		"SELECT id, note FROM orders ORDER BY note, id",
		"SELECT note FROM orders ORDER BY note DESC, amount, id LIMIT 20",
		"SELECT id FROM orders WHERE paid = 1 ORDER BY amount DESC NULLS LAST, id LIMIT 10 OFFSET 15",
		"SELECT o.id AS n, o.at FROM orders AS o WHERE o.user_id IN (1, 2, 3) ORDER BY o.at, n",
		"SELECT id FROM orders ORDER BY 1 DESC LIMIT 7",
		"SELECT id FROM orders ORDER BY paid, id LIMIT 0",
		"SELECT id FROM orders ORDER BY id LIMIT -1 OFFSET 12",
		"SELECT id FROM orders ORDER BY id LIMIT 5 OFFSET -3",
		"WITH o (who, n) AS (SELECT user_id, COUNT(*) FROM orders GROUP BY user_id) SELECT who, n FROM o WHERE n > 1 ORDER BY who LIMIT 5",
		"SELECT COUNT(*), COUNT(note), SUM(paid), MIN(note), MAX(amount), SUM(amount), MIN(at) FROM orders",
		"SELECT COUNT(*), SUM(paid), MAX(id) FROM orders WHERE id < 0",
		"SELECT EXISTS (SELECT * FROM orders WHERE id = 7) AS found",
		"SELECT EXISTS (SELECT user_id FROM orders WHERE user_id IN (1, 2, 3) AND id < 0 GROUP BY user_id) AS found",
		"SELECT (EXISTS (SELECT 1 FROM orders o JOIN orders p ON p.user_id = o.user_id AND p.id > o.id)) AS found",
		"SELECT EXISTS (SELECT id FROM orders WHERE id > 7 LIMIT 1) AS found",
		"SELECT EXISTS (SELECT id FROM orders WHERE id > 7 LIMIT 0) AS found",
		"SELECT NOT EXISTS (SELECT * FROM orders WHERE id = 7) AS free",
		"SELECT (NOT (EXISTS (SELECT * FROM orders WHERE id < 0))) AS free",
		"SELECT o.id, (SELECT GROUP_CONCAT(p.id, '-') FROM (SELECT * FROM orders ORDER BY id) p WHERE p.user_id = o.user_id AND p.paid = 1) AS others FROM orders o WHERE o.id > 250 ORDER BY o.id",
		"SELECT id, user_id, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY id DESC) AS place FROM orders) AS t WHERE place <= 2 ORDER BY user_id, place",
		"SELECT id, RANK() OVER (PARTITION BY user_id ORDER BY paid) AS place FROM orders WHERE id > 30 ORDER BY place DESC, id LIMIT 20 OFFSET 3",
		"SELECT id, SUM(paid) OVER (PARTITION BY paid, user_id ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM orders ORDER BY id",
		"SELECT user_id, COUNT(*) AS n FROM orders WHERE paid = 1 GROUP BY user_id HAVING COUNT(*) > 2 UNION ALL SELECT user_id, COUNT(note) FROM orders GROUP BY user_id ORDER BY n, user_id LIMIT 9",
		"SELECT DISTINCT user_id, paid FROM orders UNION ALL SELECT DISTINCT user_id, paid FROM orders WHERE id < 50 ORDER BY user_id, paid",
		"SELECT user_id FROM orders WHERE paid = 1 EXCEPT SELECT user_id FROM orders WHERE paid = 2 ORDER BY user_id LIMIT 4 OFFSET 1",
		"SELECT user_id, paid FROM orders WHERE id > 99 INTERSECT SELECT user_id, paid FROM orders WHERE id < 200 ORDER BY paid DESC, user_id",
		"SELECT paid, user_id FROM orders UNION SELECT id, user_id FROM orders UNION ALL SELECT paid, user_id FROM orders WHERE id < 50 ORDER BY user_id, paid LIMIT 20",
		"SELECT COUNT(*) AS n FROM orders WHERE user_id IN (5, 6)",
		"SELECT paid, COUNT(*) FROM orders GROUP BY paid ORDER BY paid",
		"SELECT note AS n, COUNT(*) AS c, SUM(amount), MIN(at), MAX(at) FROM orders WHERE id > 20 GROUP BY note HAVING COUNT(*) > 5 AND SUM(paid) < 100 ORDER BY c DESC, n LIMIT 4 OFFSET 1",
		"SELECT at, COUNT(note) FROM orders GROUP BY at ORDER BY at DESC LIMIT 9",
		"SELECT COUNT(*), MAX(amount) FROM orders GROUP BY user_id, paid ORDER BY user_id, paid",
		"SELECT paid FROM orders GROUP BY paid HAVING NOT (MAX(id) > 298 OR COUNT(*) = 3) ORDER BY MAX(id)",
		"SELECT COUNT(*) FROM orders WHERE id < 0 GROUP BY paid",
		"SELECT DISTINCT paid, note FROM orders ORDER BY note DESC, paid",
		"SELECT DISTINCT at FROM orders ORDER BY at LIMIT 5 OFFSET 2",
		"SELECT DISTINCT amount FROM orders ORDER BY 1 DESC",
	}
	for _, query := range ordered {
		expectSame(t, w, query, false)
	}
	for _, query := range []string{
		"SELECT * FROM orders WHERE paid = 1 OR note LIKE 'a%'",
		"SELECT DISTINCT paid, amount FROM orders",
		"SELECT note, paid, COUNT(*) FROM orders GROUP BY 2, note",
		"SELECT o.id, p.id FROM orders o JOIN orders p ON p.user_id = o.user_id AND p.id > o.id",
		"SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM orders p WHERE p.user_id = o.user_id AND p.paid = 2)",
	} {
		expectSame(t, w, query, true)
	}
}

// A broadcast table belongs to no shard, but results of several shards may have its columns.
// SQLite sorts any one of the texts that NOCASE treats as equal by its bytes.
func TestGroupsAreNotSortedByTheGreatestTextOfACollation(t *testing.T) {
	w := newTwin(t, 0)
	for _, greatest := range []string{"MAX(word)", "MAX(CAST(word AS TEXT))"} {
		if rows, err := answer(t.Context(), w.routed, "SELECT paid, "+greatest+" AS m FROM orders GROUP BY paid ORDER BY m"); !errors.Is(err, sharding.ErrUnmergeable) {
			t.Errorf("%s: %q, %v", greatest, rows, err)
		}
	}
}

// GORM scans into a map by these types.
func TestAComputedNumberHasAScanTypeThatHoldsIt(t *testing.T) {
	w := newTwin(t, 0)
	for id := range 8 {
		for _, db := range []*sql.DB{w.routed, w.one} {
			exec(t, db, "INSERT INTO orders (id, user_id, paid) VALUES (?, ?, ?)", id, id%4, sql.NullInt64{Int64: int64(id), Valid: id >= 4})
		}
	}
	for _, db := range []*sql.DB{w.routed, w.one} {
		rows, err := db.QueryContext(t.Context(), "SELECT COUNT(DISTINCT id), COALESCE(AVG(paid), 0) FROM orders")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		types, err := rows.ColumnTypes()
		if err = errors.Join(err, rows.Err()); err != nil || types[0].ScanType() != reflect.TypeFor[int64]() || types[1].ScanType() != reflect.TypeFor[float64]() {
			t.Errorf("%v, %v, %v", types[0].ScanType(), types[1].ScanType(), err)
		}
	}
}

func TestACountOfCombinedRowsHasTheColumnTypeOfOneTable(t *testing.T) {
	w := newTwin(t, 8)
	const query = "SELECT COUNT(*) FROM (SELECT paid FROM orders GROUP BY paid) AS t"
	if got, want := returnedTypes(t, w.routed, query), returnedTypes(t, w.one, query); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSeveralShardsSortAndGroupByColumnsOfABroadcastTable(t *testing.T) {
	w := twinOf(t, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: fourTables(t)},
		" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, country TEXT)", sharding.Broadcast("countries"))
	for _, db := range []*sql.DB{w.dbs["a"], w.dbs["b"], w.one} {
		exec(t, db, "CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT COLLATE NOCASE)")
		exec(t, db, "INSERT INTO countries (code, name) VALUES ('de', 'germany'), ('fr', 'France'), ('jp', 'japan'), ('gr', 'Greece')")
	}
	for id := range 20 {
		for _, db := range []*sql.DB{w.routed, w.one} {
			exec(t, db, "INSERT INTO orders (id, user_id, country) VALUES (?, ?, ?)", id, id*7%11, []string{"de", "fr", "jp", "gr"}[id*3%4])
		}
	}
	for _, query := range []string{
		"SELECT o.id, c.name FROM orders o JOIN countries c ON c.code = o.country ORDER BY c.name, o.id",
		"SELECT c.name, COUNT(*), MAX(o.id) FROM orders o JOIN countries c ON c.code = o.country GROUP BY c.name ORDER BY c.name DESC",
		"SELECT DISTINCT c.name FROM orders o LEFT JOIN countries c ON c.code = o.country ORDER BY c.name LIMIT 3",
		"SELECT COUNT(DISTINCT c.code) FROM orders o JOIN countries c ON c.code = o.country",
		"SELECT c.name, COUNT(o.id) AS n FROM countries c LEFT JOIN orders o ON o.country = c.code AND o.id < 3 GROUP BY c.name HAVING COUNT(o.id) < 2 ORDER BY n DESC, c.name",
		"SELECT c.code, COALESCE(SUM(o.id), 0), MAX(o.id), AVG(o.id), SUM(CASE WHEN o.id > 9 THEN 1 ELSE 0 END) FROM orders o RIGHT JOIN countries c ON o.country = c.code AND o.user_id > 8 WHERE c.name <> 'japan' GROUP BY c.code ORDER BY c.code",
		"SELECT COUNT(o.id), MIN(o.id) FROM countries c LEFT JOIN orders o ON o.country = c.code AND o.id < 2",
	} {
		expectSame(t, w, query, false)
	}
}

// expectSame compares the results, as sets if the order is undefined.
func expectSame(t *testing.T, w *twin, query string, sets bool) {
	t.Helper()
	want, err := answer(t.Context(), w.one, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	got, err := answer(t.Context(), w.routed, query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	if sets {
		slices.Sort(want)
		slices.Sort(got)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%d rows %q\nwant %d rows %q", query, len(got), got, len(want), want)
	}
}

func TestAShardComputesEveryAggregateOfItsOwnGroups(t *testing.T) {
	w := newTwin(t, 100)
	for _, query := range []string{
		"SELECT user_id, GROUP_CONCAT(id ORDER BY id) AS ids, JSON_GROUP_ARRAY(id), TOTAL(amount), COUNT(*) > 4, CASE WHEN SUM(paid) > 5 THEN 'many' ELSE 'few' END FROM orders GROUP BY user_id ORDER BY user_id",
		"SELECT user_id, COUNT(*) FROM orders GROUP BY user_id HAVING COUNT(*) > 3 AND GROUP_CONCAT(id) LIKE '%1%' AND user_id <> 7 ORDER BY LENGTH(GROUP_CONCAT(id)), COALESCE(SUM(paid), 0), user_id LIMIT 5",
		"SELECT DISTINCT COUNT(*) AS n FROM orders GROUP BY user_id ORDER BY n",
		"SELECT COUNT(*) FROM orders HAVING COUNT(*) > 3",
		"SELECT COUNT(*) FROM orders HAVING COUNT(*) < 3",
		"SELECT COUNT(*) FROM orders WHERE note <> 'İİ' HAVING /* having many */ COUNT(*) > 3",
		"SELECT user_id, MAX(id), note FROM orders GROUP BY user_id ORDER BY LOWER(code), user_id + 0",
		"SELECT DISTINCT MAX(id), LOWER(note) AS n FROM orders GROUP BY user_id ORDER BY MAX(id)",
	} {
		want, err := answer(t.Context(), w.one, query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if got, err := answer(t.Context(), w.routed, query); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
	if _, err := answer(t.Context(), w.routed, "SELECT GROUP_CONCAT(id) FROM orders GROUP BY paid"); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "add the sharding key to GROUP BY") {
		t.Error(err)
	}
}

func TestAnArgumentOfLimitIsNotSentToTheShards(t *testing.T) {
	w := newTwin(t, 100)
	for query, args := range map[string][]any{
		"SELECT id FROM orders WHERE paid = ? ORDER BY id LIMIT ? OFFSET ?":                                                            {1, 5, 3},
		"SELECT id FROM orders WHERE paid = ? ORDER BY id LIMIT ?":                                                                     {1, 100},
		"SELECT id FROM orders WHERE paid = ? ORDER BY id LIMIT ? ":                                                                    {1, -1},
		"SELECT id FROM orders WHERE paid = ? ORDER BY id LIMIT ? OFFSET ? ":                                                           {1, -7, 4},
		"SELECT id FROM orders WHERE paid = ? ORDER BY id LIMIT ?,?":                                                                   {1, 0, 0},
		"SELECT user_id FROM orders WHERE paid = ? GROUP BY user_id HAVING COUNT(*) >= ? AND SUM(amount) > ? ORDER BY user_id LIMIT ?": {1, 2, 1.5, 4},
	} {
		want, err := answer(t.Context(), w.one, query, args...)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer(t.Context(), w.routed, query, args...); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", query, got, err, want)
		}
	}
}

// Every result is that of one table, and nearly every query has one.
func TestRandomQueriesOfSeveralShardsReturnTheResultsOfOneTable(t *testing.T) {
	for name, m := range layouts(t) {
		t.Run(name, func(t *testing.T) { answerRandomQueries(t, newTwinIn(t, m, 300)) })
	}
}

// sqliteExpressions are what SQLite sorts and groups by besides, such as by a collation that
// is written, or by the number in a text.
var sqliteExpressions = []string{"word COLLATE BINARY", "word COLLATE nocase", `body COLLATE "RTRIM"`, "body COLLATE BINARY",
	"CAST(strftime('%Y', at) AS INTEGER)", "CAST(strftime('%S', at) AS INTEGER)", "CAST(word AS TEXT)", "CAST(body AS BLOB)", "CAST(amount AS INTEGER)",
	"-amount", "-paid", "ROUND(amount, 1)", "REPLACE(note, 'a', 'b')", "note || code",
	"amount / 3", "paid & 1", "id << 2", "id >> 3", "NULLIF(paid, 1)", "NULLIF(note, 'a')", "MAX(paid, 1)", "date(at, '+1 day')", "printf('%d', paid)"}

func answerRandomQueries(t *testing.T, w *twin) {
	t.Helper()
	queries := effort.Cases(2000, 100_000)
	refused := map[string]int{}
	for seed := range uint64(queries) {
		q := selects.Random(rand.New(rand.NewPCG(seed, 3)), sqliteExpressions...)
		want, err := q.Answer(t.Context(), w.one, folded)
		if err != nil {
			t.Fatalf("%s: %v", q.Text, err)
		}
		switch got, err := q.Answer(t.Context(), w.routed, folded); {
		case errors.Is(err, sharding.ErrUnmergeable):
			refused[err.Error()]++
		case err != nil || !reflect.DeepEqual(got, want):
			t.Fatalf("seed %d: %s %v:\n%q, %v\nwant %q", seed, q.Text, q.Args, got, err, want)
		}
	}
	n := 0
	for why, times := range refused {
		t.Log(times, why)
		n += times
	}
	if n*5 > queries {
		t.Errorf("%d of %d queries are refused", n, queries)
	}
}

// Queries that hold connections for which others wait would never end.
func TestQueriesOfSeveralShardsShareSmallPools(t *testing.T) {
	w := newTwin(t, 200)
	for _, most := range []int{1, 2, 3} {
		for _, db := range w.dbs {
			db.SetMaxOpenConns(most)
		}
		want, err := answer(t.Context(), w.one, "SELECT * FROM orders ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					if got, err := answer(t.Context(), w.routed, "SELECT * FROM orders ORDER BY id"); err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("%d rows, %v, want %d", len(got), err, len(want))
					}
				}
			})
		}
		wg.Wait()
		for name, db := range w.dbs {
			if n := db.Stats().InUse; n != 0 {
				t.Errorf("database %s: %d connections in use", name, n)
			}
		}
	}
}

// The home database has shards here, and one connection.
func TestASessionAtHomeNeedsNoSecondConnectionForTheShardsThere(t *testing.T) {
	w := newTwin(t, 60)
	for _, db := range w.dbs {
		db.SetMaxOpenConns(1)
	}
	c, err := w.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	exec(t, c, "CREATE TEMP TABLE mine (n INTEGER)")
	if got, want := one[int64](t, c, "SELECT COUNT(*) FROM orders"), one[int64](t, w.one, "SELECT COUNT(*) FROM orders"); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	exec(t, c, "UPDATE orders SET note = 'x' WHERE user_id IN (4, 6)")
	exec(t, c, "INSERT INTO mine VALUES (1)")
}

func TestATransactionReadsTheShardsOfItsDatabase(t *testing.T) {
	w := newTwin(t, 60)
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	exec(t, tx, "UPDATE orders SET note = 'changed' WHERE user_id = 4")
	if n := one[int64](t, tx, "SELECT COUNT(*) FROM orders WHERE user_id IN (4, 6)"); n != one[int64](t, w.one, "SELECT COUNT(*) FROM orders WHERE user_id IN (4, 6)") {
		t.Error(n)
	}
	if _, err := tx.Query("SELECT id FROM orders WHERE paid = 1"); !errors.Is(err, sharding.ErrCrossDatabase) { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Errorf("a query for both databases: %v", err)
	}
}

func TestAQueryForTwoDatabasesIsRefusedBeforeItsTransactionBeginsOnOne(t *testing.T) {
	w := newTwin(t, 10)
	for _, user := range []int{4, 5} { // of each database
		tx, err := w.routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var route *sharding.RouteError
		var shard *sharding.ShardError
		_, err = tx.Query("SELECT id FROM orders WHERE paid = 1") //nolint:rowserrcheck,sqlclosecheck // there are none
		if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) || errors.As(err, &shard) {
			t.Errorf("a query for both databases: %v", err)
		}
		exec(t, tx, fmt.Sprintf("UPDATE orders SET note = 'changed' WHERE user_id = %d", user))
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnErrorOfAShardNamesIt(t *testing.T) {
	w := newTwin(t, 10)
	exec(t, w.dbs["b"], "DROP TABLE orders_3")
	_, err := answer(t.Context(), w.routed, "SELECT id FROM orders WHERE paid = 1")
	var shard *sharding.ShardError
	if !errors.As(err, &shard) || shard.Target.Table != "orders_3" {
		t.Errorf("%v", err)
	}
	for name, db := range w.dbs {
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("database %s: %d connections in use", name, n)
		}
	}
}

func TestAQueryThatNeedsTooManyShardsIsRefused(t *testing.T) {
	w := newTwin(t, 0)
	router, err := sharding.New(w.dbs, sharding.FanOut(3, 1), sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: fourTables(t), OnMissing: sharding.Refuse})
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: w.dbs["a"]})
	defer func() { _ = db.Close() }()
	if _, err := answer(t.Context(), db, "SELECT id FROM orders"); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("without a policy: %v", err)
	}
	if _, err := answer(sharding.AllShards(t.Context()), db, "SELECT id FROM orders"); !errors.Is(err, sharding.ErrTooManyShards) {
		t.Errorf("four shards where three are allowed: %v", err)
	}
	if _, err := answer(t.Context(), db, "SELECT id FROM orders WHERE user_id IN (1, 2, 3)"); err != nil {
		t.Error(err)
	}
}

// SELECT * has the columns of each table in the order of their declaration.
func TestRowsOfTablesWithTheirColumnsInAnotherOrderAreRefused(t *testing.T) {
	w := twinOf(t, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(4), Map: spread(t, 4, "people_%d")}, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, first TEXT, last TEXT)", sharding.Transactions(sharding.BestEffort))
	exec(t, w.dbs["b"], "DROP TABLE people_3")
	exec(t, w.dbs["b"], "CREATE TABLE people_3 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, last TEXT, first TEXT)")
	for user := range 4 {
		exec(t, w.routed, "INSERT INTO people (id, user_id, first, last) VALUES (?, ?, 'Ada', 'Lovelace')", user, user)
	}
	for _, order := range []string{"", " ORDER BY id"} {
		_, err := answer(t.Context(), w.routed, "SELECT * FROM people"+order)
		if !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "shardid ddl drift") {
			t.Errorf("SELECT *%s: %v", order, err)
		}
		if rows, err := answer(t.Context(), w.routed, "SELECT id, first, last FROM people"+order); err != nil || len(rows) != 5 || !strings.HasSuffix(rows[4], "Ada|Lovelace|") {
			t.Errorf("with named columns%s: %q, %v", order, rows, err)
		}
	}
	const update = "UPDATE people SET first = 'Augusta' WHERE user_id IN (2, 3) RETURNING "
	if _, err := answer(t.Context(), w.routed, update+"*"); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "shardid ddl drift") {
		t.Errorf("RETURNING *: %v", err)
	}
	if rows, err := answer(t.Context(), w.routed, "SELECT first FROM people WHERE first = 'Augusta'"); err != nil || len(rows) != 1 {
		t.Errorf("after it was refused: %q, %v", rows, err)
	}
	if rows, err := answer(t.Context(), w.routed, update+"first, last"); err != nil || len(rows) != 3 {
		t.Errorf("RETURNING names: %q, %v", rows, err)
	}
}

func TestRowsAreOrderedByExpressionsOfAliasesAndOfSubqueries(t *testing.T) {
	w := newTwin(t, 60)
	for _, query := range []string{
		"SELECT id, paid AS p, amount AS a FROM orders ORDER BY p IS NULL, p % 2 DESC, -a, id LIMIT 25",
		"SELECT id, LOWER(note) AS n FROM orders ORDER BY n IS NULL, n || 'x', id LIMIT 25",
		"SELECT id, note AS n FROM orders ORDER BY n > 'b', id LIMIT 25",
		"SELECT o.*, (SELECT COUNT(*) FROM orders i WHERE i.user_id = o.user_id AND i.id < o.id) AS before FROM orders o ORDER BY before > 2 DESC, before, o.id LIMIT 25",
		"SELECT id FROM orders o ORDER BY (SELECT SUM(i.paid) FROM orders i WHERE i.user_id = o.user_id) DESC, id LIMIT 25",
	} {
		w.same(t, query)
	}
}

func TestARandomOrderIsOneOfTheRowsOfAllShards(t *testing.T) {
	w := newTwin(t, 40)
	first := map[string]bool{}
	for range 20 {
		rows, err := answer(t.Context(), w.routed, "SELECT * FROM orders ORDER BY RANDOM()")
		if err != nil {
			t.Fatal(err)
		}
		first[rows[1]] = true
		want, err := answer(t.Context(), w.one, "SELECT * FROM orders")
		slices.Sort(rows)
		if slices.Sort(want); err != nil || !slices.Equal(rows, want) {
			t.Fatalf("%q, %v\nwant %q", rows, err, want)
		}
	}
	if len(first) < 5 {
		t.Errorf("the first row is always one of %v", first)
	}
}

// The rows that wait for a connection of any database, and those that the merge holds, are limited together.
func TestAQueryHoldsAtMost64MB(t *testing.T) {
	for name, c := range map[string]struct {
		first, second int // the number of rows of 1 MB that each database holds while its connection reads another table
		query         string
		fails         bool
	}{
		"rows of one connection":          {first: 50, query: "SELECT id, note FROM orders"},
		"too many of one connection":      {first: 70, query: "SELECT id, note FROM orders", fails: true},
		"rows of two connections":         {first: 30, second: 20, query: "SELECT id, note FROM orders ORDER BY id"},
		"too many of two connections":     {first: 40, second: 40, query: "SELECT id, note FROM orders ORDER BY id", fails: true},
		"rows that move to another stage": {first: 15, second: 12, query: "SELECT DISTINCT note FROM orders"},
	} {
		t.Run(name, func(t *testing.T) {
			open := files(t)
			dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
			if err != nil {
				t.Fatal(err)
			}
			for i, at := range m.Targets() {
				dbs[at.DB].SetMaxOpenConns(1)
				exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, note BLOB)")
				if rows := []int{c.first, c.second, 0, 0}[i]; rows > 0 {
					exec(t, dbs[at.DB], "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "+strconv.Itoa(rows)+") INSERT INTO "+at.Table+" SELECT i * 4 + "+strconv.Itoa(i)+", zeroblob(1000000 + i) FROM n")
				}
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(4), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: open("home.db")})
			t.Cleanup(func() { _ = routed.Close() })
			err = drain(t.Context(), routed, c.query)
			if failed := err != nil; failed != c.fails || failed && !errors.Is(err, sharding.ErrUnmergeable) {
				t.Error(err)
			}
		})
	}
}

// drain reads the rows of a query.
func drain(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
	}
	return rows.Err()
}
