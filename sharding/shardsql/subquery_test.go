// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// priced has ten orders of five users, and at home the users and numbers.
func priced(t *testing.T) (*twin, *told) {
	t.Helper()
	return pricedIn(t, fourTables(t))
}

// pricedIn is priced with four tables of orders.
func pricedIn(t *testing.T, m sharding.Map) (*twin, *told) {
	t.Helper()
	orders := sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m}
	w, o := twinOf(t, orders, " (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, total INTEGER, note TEXT)"), &told{}
	router, err := sharding.New(w.dbs, orders)
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: w.dbs["a"], Observer: o.observer()})
	t.Cleanup(func() { _ = routed.Close() })
	for id := range 10 {
		exec(t, routed, "INSERT INTO orders (id, user_id, total, note) VALUES (?, ?, ?, ?)", id, id%5, id, strconv.Itoa(id))
	}
	exec(t, routed, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
	exec(t, routed, "INSERT INTO users VALUES (1, 'a'), (2, 'b'), (7, 'c')")
	w.routed = routed
	o.all = nil
	return w, o
}

const aboveAverage = "SELECT COUNT(*) FROM orders WHERE total > (SELECT AVG(total) FROM orders WHERE id > ?) AND id < ?"

func TestAQueryWithASubqueryIsOneStatement(t *testing.T) {
	w, o := priced(t)
	if n := one[int](t, w.routed, aboveAverage, 1, 9); n != 3 { // 6, 7 and 8 are above 5.5
		t.Errorf("%d rows, want 3", n)
	}
	s := o.only(t)
	if s.Text != aboveAverage || s.Kind != shardsql.Scatter || len(s.Targets) != 4 || s.Retries != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
	exec(t, w.routed, aboveAverage, 1, 9)
	if s := o.only(t); s.Kind != shardsql.Scatter || s.Err != nil {
		t.Errorf("its rows are not read: %+v", s)
	}
	st, err := w.routed.Prepare(aboveAverage)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for limit, want := range map[int]int{9: 3, 8: 2} {
		var n int
		if err := st.QueryRow(1, limit).Scan(&n); err != nil || n != want {
			t.Errorf("prepared: %d rows (%v), want %d", n, err, want)
		}
	}
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	const dearest = "SELECT id FROM orders WHERE user_id = 0 AND total = (SELECT MAX(total) FROM orders WHERE user_id IN (0, 2))"
	if _, err := tx.Query(dearest); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "send the query outside of the transaction") { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Errorf("the transaction has not begun: %v", err)
	}
	exec(t, tx, "UPDATE orders SET total = 100 WHERE user_id = 0 AND id = 5")
	if n := one[int](t, tx, dearest); n != 5 {
		t.Errorf("order %d is the dearest of the transaction, want 5", n)
	}
}

// Such a transaction cannot begin on another database.
func TestATransactionMayBeginWithASubqueryIfThereIsOneDatabase(t *testing.T) {
	m, err := sharding.Spread([]string{"a"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := pricedIn(t, m)
	router, err := sharding.New(sharding.DBs{"a": w.dbs["a"]}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: w.dbs["a"]})
	defer func() { _ = routed.Close() }()
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if n := one[int](t, tx, aboveAverage, 1, 9); n != 3 { // 6, 7 and 8 are above 5.5
		t.Errorf("%d rows, want 3", n)
	}
}

func TestAListFromHomeLeadsToItsShards(t *testing.T) {
	w, o := priced(t)
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE user_id = (SELECT id FROM users WHERE name = ?)", "b"); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	if s := o.only(t); s.Kind != shardsql.One {
		t.Errorf("%+v", s)
	}
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users WHERE name < ?)", "c"); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
	if s := o.only(t); len(s.Targets) != 2 {
		t.Errorf("%+v", s)
	}
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users WHERE name <> 'a@x' AND id < 3)"); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
	o.only(t)
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE user_id NOT IN (SELECT id FROM users WHERE name > ?)", "x"); n != 10 {
		t.Errorf("%d rows beside an empty list, want 10", n)
	}
}

// Each of the tables could answer the whole query, but most have no such rows.
func TestAListFromHomeLeadsToItsShardsAmongThoseAtHome(t *testing.T) {
	m, err := sharding.Spread([]string{"a"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	w, o := pricedIn(t, m)
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users WHERE name < ?)", "c"); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
	if s := o.only(t); len(s.Targets) != 2 {
		t.Errorf("%+v", s)
	}
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders o JOIN users u ON u.id = o.user_id AND u.name < ?", "c"); n != 4 {
		t.Errorf("%d joined rows, want 4", n)
	}
	if s := o.only(t); len(s.Targets) != 4 {
		t.Errorf("%+v", s)
	}
}

// SQLite converts a text that is compared with a column of numbers.
func TestATextIsComparedWithTheColumnOfASubquery(t *testing.T) {
	w, _ := priced(t)
	exec(t, w.routed, "UPDATE orders SET note = '0' || note WHERE user_id = 1")
	for text, want := range map[string]int{
		"SELECT COUNT(*) FROM orders WHERE note = (SELECT total FROM orders WHERE id = 6)":                                                              1,
		"SELECT COUNT(*) FROM orders WHERE note = (SELECT MAX(total) FROM orders WHERE id = 6)":                                                         0,
		"SELECT COUNT(*) FROM orders WHERE LOWER(note) > (SELECT total FROM orders WHERE id = 6)":                                                       3,
		"SELECT COUNT(*) FROM (SELECT user_id FROM orders GROUP BY user_id HAVING MAX(note) > (SELECT total FROM orders WHERE id = 6)) AS d":            3,
		"SELECT COUNT(*) FROM (SELECT user_id, MAX(note) > (SELECT total FROM orders WHERE id = 6) AS x FROM orders GROUP BY user_id) AS d WHERE x = 1": 3,
		"SELECT COUNT(*) FROM orders WHERE note IN (SELECT id FROM users)":                                                                              3,
		"SELECT COUNT(*) FROM orders WHERE note IN (SELECT id + 0 FROM users)":                                                                          2,
		"SELECT COUNT(*) FROM orders WHERE (SELECT id FROM users WHERE name = 'a') = '1'":                                                               10,
		"SELECT COUNT(*) FROM (SELECT note, (SELECT total FROM orders WHERE id = 6) AS n FROM orders WHERE user_id = 1) AS d WHERE note = d.n":          1,
	} {
		if n := one[int](t, w.routed, text); n != want {
			t.Errorf("%s: %d rows, want %d", text, n, want)
		}
	}
	exec(t, w.routed, "CREATE TABLE untyped AS SELECT 1 + 1 AS x")
	if _, err := w.routed.Query("SELECT id FROM orders WHERE note = (SELECT x FROM untyped)"); !errors.Is(err, sharding.ErrCrossShard) { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Errorf("the column has no type: %v", err)
	}
}

// A text, bytes or UUID is passed as an argument.
func TestTextsFromHomeLeadToTheirShards(t *testing.T) {
	table, o := sharding.Table{Name: "orders", Key: "tenant", Rule: sharding.HashText(4), Map: fourTables(t)}, &told{}
	w := twinOf(t, table, " (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, note VARCHAR(20) COLLATE NOCASE)")
	router, err := sharding.New(w.dbs, table)
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: w.dbs["a"], Observer: o.observer()})
	t.Cleanup(func() { _ = routed.Close() })
	exec(t, routed, "CREATE TABLE tenants (slug TEXT, plan TEXT, name TEXT COLLATE NOCASE)")
	for i, slug := range []string{"o'hara", "Müller", "x", "y"} {
		exec(t, routed, "INSERT INTO tenants VALUES (?, ?, ?)", slug, []string{"pro", "free"}[i%2], strings.ToUpper(slug))
		exec(t, routed, "INSERT INTO orders (id, tenant, note) VALUES (?, ?, ?)", i, slug, slug)
	}
	o.all = nil
	if n := one[int](t, routed, "SELECT COUNT(*) FROM orders WHERE tenant = (SELECT slug FROM tenants WHERE name = ?) AND id = ?", "X", 2); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	if s := o.only(t); s.Kind != shardsql.One {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]int{
		"SELECT COUNT(*) FROM orders WHERE tenant IN (SELECT slug FROM tenants WHERE plan = 'pro')":        2,
		"SELECT COUNT(*) FROM orders WHERE tenant NOT IN (SELECT slug FROM tenants WHERE plan = 'free')":   2,
		"SELECT COUNT(*) FROM orders WHERE tenant IN (SELECT slug FROM tenants WHERE plan = 'none')":       0,
		"SELECT COUNT(*) FROM orders WHERE tenant NOT IN (SELECT slug FROM tenants WHERE plan = 'none')":   4,
		"SELECT COUNT(*) FROM orders WHERE tenant > (SELECT slug FROM tenants WHERE name = 'o''hara')":     2,
		"SELECT COUNT(*) FROM orders WHERE tenant = (SELECT MAX(tenant) FROM orders)":                      1,
		"SELECT COUNT(*) FROM orders WHERE note IN (SELECT name FROM tenants)":                             3, // without Ü
		"SELECT COUNT(*) FROM tenants WHERE slug IN (SELECT tenant FROM orders WHERE id > 1)":              2,
		"SELECT COUNT(*) FROM orders WHERE tenant <> (SELECT slug FROM tenants WHERE name = 'y')":          3,
		"SELECT COUNT(*) FROM orders WHERE tenant = (SELECT slug FROM tenants WHERE name = 'z') OR id = 1": 1,
	} {
		if n := one[int](t, routed, text); n != want {
			t.Errorf("%s: %d rows, want %d", text, n, want)
		}
	}
	for _, text := range []string{
		"SELECT id FROM orders WHERE tenant IN (SELECT name FROM tenants)", // of another collation
		"SELECT id FROM orders WHERE tenant IN (SELECT slug || '' FROM tenants)",
		"SELECT id FROM orders WHERE LOWER(tenant) IN (SELECT slug FROM tenants)",
		"SELECT id FROM orders WHERE tenant COLLATE NOCASE IN (SELECT slug FROM tenants)",
		"SELECT id FROM orders WHERE tenant = (SELECT slug FROM tenants ORDER BY slug)", // several rows
	} {
		if _, err := routed.Query(text); !errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrCrossShard) { //nolint:rowserrcheck,sqlclosecheck // there are none
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAListHasAtMostTenThousandValues(t *testing.T) {
	w, _ := priced(t)
	exec(t, w.routed, "CREATE TABLE numbers (i INTEGER)")
	exec(t, w.routed, "INSERT INTO numbers WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 10099) SELECT i FROM n")
	const query = "SELECT COUNT(*) FROM orders WHERE id NOT IN (SELECT i FROM numbers)"
	if n := one[int](t, w.routed, query); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
	exec(t, w.routed, "INSERT INTO numbers VALUES (1)")
	if _, err := w.routed.Query(query); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "more than 10000 values") { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Error(err)
	}
}

func TestASubqueryStaysRefusedIfItsResultIsNoNumberOrDependsOnTheRow(t *testing.T) {
	w, o := priced(t)
	for _, text := range []string{
		"SELECT id FROM orders WHERE note = (SELECT LOWER(MAX(note)) FROM orders)",
		`SELECT id FROM orders WHERE total = (SELECT MAX("total") FROM orders)`, // "total" could be a text
		"SELECT id FROM orders WHERE total = (SELECT total FROM orders ORDER BY total)",
		"SELECT id FROM orders WHERE total > (SELECT COUNT(*) FROM users WHERE users.id = orders.user_id)",
		"SELECT id FROM orders WHERE total > (SELECT COUNT(*) FROM users WHERE id = user_id)",
		"SELECT id FROM orders WHERE total > (SELECT ABS(RANDOM() % 5) FROM users)",
		"SELECT id FROM orders WHERE total IN ((SELECT id FROM users ORDER BY id))", // SQLite takes its first row
	} {
		o.all = nil
		if _, err := w.routed.Query(text); !errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrCrossShard) { //nolint:rowserrcheck,sqlclosecheck // there are none
			t.Errorf("%s: %v", text, err)
		}
		if s := o.only(t); s.Kind != shardsql.Refused {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

func TestAQueryWithOtherArgumentsThanParametersStaysRefused(t *testing.T) {
	w, _ := priced(t)
	for _, args := range [][]any{nil, {1}, {1, 9, 9}} {
		if _, err := w.routed.Query(aboveAverage, args...); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are none
			t.Errorf("%d arguments: %v", len(args), err)
		}
	}
}

func TestASubqueryIsExplainedWithoutItsResult(t *testing.T) {
	w, _ := priced(t)
	e, err := shardsql.Explain(t.Context(), w.routed, "SELECT COUNT(*) FROM orders WHERE user_id = (SELECT id FROM users WHERE name = ?) AND id > ?", "b", 3)
	if err != nil || e.Kind != shardsql.Scatter || len(e.Shards) != 4 || fmt.Sprint(e.Shards[0].Args) != "[3]" || !strings.Contains(e.Shards[0].Text, "user_id = (0 + 0) AND") {
		t.Errorf("%+v (%v)", e, err)
	}
	if e, err = shardsql.Explain(t.Context(), w.routed, "SELECT id FROM orders WHERE note = (SELECT MAX(name) FROM users)"); err != nil || e.Kind != shardsql.Scatter {
		t.Errorf("SQLite's values have types of their own: %+v (%v)", e, err)
	}
}

func TestAPreparedQueryReadsItsSubqueryAtEachExecution(t *testing.T) {
	w, _ := priced(t)
	st, err := w.routed.Prepare("SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users) AND total < (SELECT MAX(total) FROM orders)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for _, step := range []struct {
		want int
		then string
	}{{4, "UPDATE orders SET total = 100 WHERE user_id = 1 AND id = 1"}, {3, "INSERT INTO users VALUES (4, 'd')"}, {5, "DELETE FROM users"}, {0, "DELETE FROM orders WHERE user_id = 1"}} {
		var n int
		if err := st.QueryRow().Scan(&n); err != nil || n != step.want {
			t.Errorf("%d rows (%v), want %d", n, err, step.want)
		}
		exec(t, w.routed, step.then)
	}
}

func TestAWriteWithASubqueryOfOtherRowsIsRefused(t *testing.T) {
	w, _ := priced(t)
	for _, text := range []string{
		"UPDATE orders SET note = 'x' WHERE user_id = 1 AND total > (SELECT AVG(total) FROM orders)",
		"UPDATE orders SET total = (SELECT MAX(total) FROM orders) WHERE user_id = 1",
		"DELETE FROM orders WHERE user_id IN (SELECT id FROM users)",
		"INSERT INTO orders (id, user_id, total) SELECT id + 50, user_id, total FROM orders WHERE user_id = (SELECT MIN(id) FROM users)",
		"UPDATE users SET name = 'x' WHERE id IN (SELECT user_id FROM orders)",
	} {
		if _, err := w.routed.ExecContext(sharding.AllShards(t.Context()), text); !errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrCrossShard) && !errors.Is(err, sharding.ErrMissingKey) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE note IS NOT NULL AND total < 10"); n != 10 {
		t.Errorf("%d orders are as they were", n)
	}
}

// A program sends the statement again after ErrSlotMoving, and gives up after ErrUnmergeable.
func TestASubqueryOfASlotThatMovesIsRefusedAsItsQueryWouldBe(t *testing.T) {
	s := newShop(t)
	exec(t, s.dbs["a"], "INSERT INTO orders_0 VALUES (4, 4, 'a')")
	queries := []string{
		"SELECT COUNT(*) FROM orders WHERE user_id = 4 AND id >= (SELECT MIN(id) FROM orders)",
		"SELECT COUNT(*) FROM coupons WHERE used < (SELECT MIN(id) FROM orders)",
		"SELECT COUNT(*) FROM coupons WHERE used < (SELECT MIN(id) FROM orders WHERE id > (SELECT COUNT(*) FROM items))",
	}
	orders, _ := s.router.Table("orders")
	items, _ := s.router.Table("items")
	for version, change := range []func(sharding.Map) sharding.Map{
		func(m sharding.Map) sharding.Map { return m.Holding(2) },
		func(m sharding.Map) sharding.Map { return m.Sharing(2) },
		func(m sharding.Map) sharding.Map { return m.While(func() bool { return false }) },
		func(m sharding.Map) sharding.Map { return m },
	} {
		maps := map[string]sharding.Map{}
		for _, table := range []sharding.Table{orders, items} {
			maps[table.Name] = change(table.Map).At(int64(version + 1))
		}
		if err := s.router.Swap(maps); err != nil {
			t.Fatal(err)
		}
		want := []error{sharding.ErrSlotMoving, nil, sharding.ErrStaleMap, nil}[version]
		for _, query := range queries {
			if err := s.routed.QueryRow(query).Scan(new(int)); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", query, err, want)
			}
		}
	}
}

// The refusals told to give a row a value that leads to its shard, and named a type of this module in place of the value.
func TestARefusalSaysThatArgumentsAreMissing(t *testing.T) {
	w, _ := priced(t)
	for query, want := range map[string]error{
		"INSERT INTO orders (id, user_id, total) VALUES (?, ?, ?)": sharding.ErrKeyType,
		"DELETE FROM orders WHERE total = ? AND user_id = ?":       sharding.ErrMissingKey,
		"SELECT id FROM orders ORDER BY id LIMIT ? OFFSET ?":       sharding.ErrUnmergeable,
	} {
		_, err := w.routed.Exec(query, 1)
		if query[0] == 'I' {
			_, err = w.routed.Exec(query)
		}
		if !errors.Is(err, want) || !strings.HasSuffix(err.Error(), " arguments; pass the others") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestARefusalNamesATableThatTheStatementMisses(t *testing.T) {
	w, _ := priced(t)
	for _, query := range []string{"SELECT id FROM orders WHERE user_id IN (SELECT id FROM usres)", "SELECT orders.id FROM orders JOIN usres ON usres.id = orders.user_id"} {
		_, err := w.routed.Query(query) //nolint:rowserrcheck,sqlclosecheck // there are none
		if !errors.Is(err, sharding.ErrCrossShard) || dialect.FaultOf(err) != dialect.NoTable || !strings.Contains(err.Error(), "no such table: usres") || strings.Contains(err.Error(), "of the home database") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A refused statement reads the columns of its tables again, as they may have been altered. A query that is answered is not refused.
func TestAQueryWhoseSubqueriesAreExecutedFirstReadsNoColumnsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		routed, _ := shopOn(t, func(name string) driver.Connector {
			a := answering(t, name)
			a.answer = func(_ context.Context, query string) error {
				if strings.Contains(query, "pragma") {
					read.Add(1)
				}
				return nil
			}
			return a
		})
		const query = "SELECT COUNT(*) FROM orders WHERE id > (SELECT AVG(id) FROM orders)"
		exec(t, routed, "INSERT INTO orders (id) VALUES (2), (4), (9)")
		for range 2 {
			if n := one[int](t, routed, query); n != 1 {
				t.Errorf("%d rows, want 1", n)
			}
			time.Sleep(30 * time.Second)
			if now := read.Swap(0); now == 0 {
				t.Error("no columns were read at first")
			}
			if n := one[int](t, routed, query); n != 1 {
				t.Errorf("%d rows, want 1", n)
			}
			if again := read.Load(); again > 0 {
				t.Errorf("%d queries about columns within a minute", again)
			}
			time.Sleep(time.Minute)
		}
	})
}
