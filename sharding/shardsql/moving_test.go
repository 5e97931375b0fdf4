// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// movingItems has items of users in two slots: slot 0 is on a. Slot 1 has moved from a to b, and a still has the items as they
// were, which b has no more, those of order 5 with the amounts 1 and 2. Order 6, of slot 0, has an item with the amount 3.
func movingItems(t *testing.T) *sql.DB {
	t.Helper()
	open := files(t)
	dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "items_0"}, sharding.Target{DB: "b", Table: "items_1"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: m.Sharing(1),
		Parents: []sharding.Parent{{Column: "order_id", Table: "items"}}, Lookups: []sharding.Lookup{{Column: "code", Table: "items_by_code"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]string{"a": "items_0", "b": "items_1"} {
		exec(t, dbs[name], "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, amount BIGINT NOT NULL, code TEXT)")
		exec(t, dbs[name], "CREATE INDEX "+table+"_by_code ON "+table+" (code)")
	}
	if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: dbs["a"], Table: "items", Column: "code"}); err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	exec(t, dbs["a"], "INSERT INTO items_0 VALUES (1, 1, 5, 1, 'five'), (2, 1, 5, 2, 'five')")
	exec(t, routed, "INSERT INTO items (id, user_id, order_id, amount, code) VALUES (3, 2, 6, 3, 'six')")
	exec(t, routed, "INSERT INTO items (id, user_id, order_id, amount, code) VALUES (4, 1, 7, 4, 'seven')")
	return routed
}

func TestAReadNeverReturnsWhatAMovedSlotHasLeftBehind(t *testing.T) {
	routed := movingItems(t)
	for where, want := range map[string]int64{
		"order_id = 5": 0, "order_id IN (5, 6)": 3, "order_id IN (5, 7)": 4, "order_id = 6": 3, "order_id = 8": 0, "id = 1": 0, "id IN (1, 3)": 3,
		"code = 'five'": 0, "code IN ('five', 'six')": 3, "code IN ('five', 'seven')": 4, "code = 'six'": 3, "code = 'seven'": 4,
	} {
		text := "SELECT COALESCE(SUM(amount), 0) FROM items WHERE " + where
		for _, first := range []string{"", "SELECT COUNT(*) FROM items WHERE user_id = 2", "SELECT COUNT(*) FROM items WHERE user_id = 1"} {
			got, err := inTransaction(t, routed, first, text)
			if (err != nil || got != want) && (first == "" || !errors.Is(err, sharding.ErrCrossDatabase)) {
				t.Errorf("%s after %q: %d, %v; want %d", text, first, got, err, want)
			}
		}
		if got := one[int64](t, routed, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// inTransaction returns the result of a query in a transaction, after that of another one, if there is one.
func inTransaction(t *testing.T, db *sql.DB, first, text string) (got int64, err error) {
	t.Helper()
	tx, err := db.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if first != "" {
		one[int64](t, tx, first)
	}
	err = tx.QueryRow(text).Scan(&got)
	if failed := tx.Rollback(); failed != nil {
		t.Fatal(failed)
	}
	return got, err
}

func TestAQueryOfAllShardsReadsTheOwnRowsOfEachWhileSlotsMove(t *testing.T) {
	routed := movingItems(t)
	for text, want := range map[string]int64{
		"SELECT COUNT(*) FROM items":                                              2,
		"SELECT SUM(i.amount) FROM items AS i":                                    7,
		"SELECT amount FROM items WHERE id = 4":                                   4,
		"SELECT COUNT(*) FROM items WHERE id IN (1, 2, 3)":                        1,
		"SELECT COUNT(*) FROM items a LEFT JOIN items b ON b.user_id = a.user_id": 2,
		"SELECT COUNT(b.id) FROM items a LEFT JOIN (items b JOIN items c ON c.id = b.id AND c.user_id = b.user_id) ON b.user_id = a.user_id":    2,
		"SELECT COUNT(*) FROM (items b LEFT JOIN items c ON c.id = b.id AND c.user_id = b.user_id) RIGHT JOIN items a ON b.user_id = a.user_id": 2,
		"SELECT COALESCE(SUM(amount), 0) + COUNT(DISTINCT code) FROM items":                                                                     9,
		"SELECT COALESCE(SUM(amount), 0) + COUNT(DISTINCT code) FROM items WHERE amount <> 4":                                                   4,
		"SELECT COUNT(*) FROM items a WHERE NOT EXISTS (SELECT 1 FROM items WHERE id = a.id)":                                                   0,
		"WITH t AS (SELECT user_id FROM items) SELECT COUNT(DISTINCT user_id) FROM t":                                                           2,
		"SELECT COUNT(*) FROM items JOIN (SELECT user_id FROM items) AS o USING (user_id)":                                                      2,
		"SELECT id FROM items UNION ALL SELECT items.id FROM items WHERE id > 9 ORDER BY 1 DESC":                                                4,
	} {
		if got := one[int64](t, routed, text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{
		"SELECT COUNT(*) FROM items a LEFT JOIN items b USING (user_id)", // ON has no place for a condition
		"UPDATE items SET amount = 0",
	} {
		if _, err := routed.ExecContext(sharding.AllShards(t.Context()), text); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// SQLite names a column by the text of its expression.
func TestColumnsHaveTheNamesOfOneTableWhileSlotsMove(t *testing.T) {
	routed := movingItems(t)
	for text, want := range map[string]string{
		"SELECT EXISTS (SELECT 1 FROM items)":                                                                    "EXISTS (SELECT 1 FROM items)",
		"SELECT id, (SELECT COUNT(*) FROM items b WHERE b.user_id = items.user_id) FROM items":                   "(SELECT COUNT(*) FROM items b WHERE b.user_id = items.user_id)",
		"SELECT * FROM (SELECT EXISTS (SELECT 1 FROM items b WHERE b.user_id = a.user_id) FROM items AS a) AS t": "EXISTS (SELECT 1 FROM items b WHERE b.user_id = a.user_id)",
	} {
		if names, err := columnsOf(t, routed, text); err != nil || names[len(names)-1] != want {
			t.Errorf("%s has the columns %q, %v", text, names, err)
		}
	}
}

func columnsOf(t *testing.T, db *sql.DB, text string) ([]string, error) {
	t.Helper()
	rows, err := db.QueryContext(sharding.AllShards(t.Context()), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Err())
}

// slotMoving is a database whose items of slot 0, 1 and 2, move from one table to that of slot 1, with item 3.
type slotMoving struct {
	routed, pool, rows *sql.DB // for the rows there is another pool
	router             *sharding.Router
	version            int64
	sent               func()            // is called when a part of a query is sent
	late               func(text string) // is called when a text is about to be executed
}

func newSlotMoving(t *testing.T, connections int) *slotMoving {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.db") + "?_pragma=journal_mode(wal)&_pragma=busy_timeout(9000)"
	m := &slotMoving{sent: func() {}, late: func(string) {}}
	m.pool = sql.OpenDB(delaying{asking{file, func(_ context.Context, query string) error {
		if strings.Contains(query, "COUNT(*)") && strings.Contains(query, "items_") {
			m.sent()
		}
		return nil
	}}, func(text string) { m.late(text) }})
	m.pool.SetMaxOpenConns(connections)
	var err error
	if m.rows, err = sql.Open("sqlite", "file:"+file); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"items_0", "items_1"} {
		exec(t, m.rows, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	exec(t, m.rows, "INSERT INTO items_0 VALUES (1, 0), (2, 0)")
	exec(t, m.rows, "INSERT INTO items_1 VALUES (3, 1)")
	if m.router, err = sharding.New(sharding.DBs{"a": m.pool}, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: mapTo(t, "items_0")}); err != nil {
		t.Fatal(err)
	}
	m.routed = shardsql.OpenDB(shardsql.Config{Router: m.router, Home: m.pool})
	t.Cleanup(func() {
		_ = m.routed.Close()
		if n := m.pool.Stats().InUse; n != 0 {
			t.Errorf("%d connections are in use", n)
		}
		_, _ = m.pool.Close(), m.rows.Close()
	})
	return m
}

// mapTo returns a map with slot 0 in a table, with a lease that does not end.
func mapTo(t *testing.T, table string) sharding.Map {
	t.Helper()
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: table}, sharding.Target{DB: "a", Table: "items_1"})
	if err != nil {
		t.Fatal(err)
	}
	return m.Patient(time.Minute).While(func() bool { return true })
}

// switchTo changes the table of slot 0.
func (m *slotMoving) switchTo(t *testing.T, table string) {
	m.version++
	if err := m.router.Swap(map[string]sharding.Map{"items": mapTo(t, table).At(m.version)}); err != nil {
		t.Error(err)
	}
}

// finish moves slot 0.
func (m *slotMoving) finish(t *testing.T) {
	exec(t, m.rows, "INSERT INTO items_1 SELECT * FROM items_0")
	m.switchTo(t, "items_1")
	exec(t, m.rows, "DELETE FROM items_0")
}

// The two parts share a connection, and the rows are gone when the second one would be sent.
func TestAQueryBeginsAgainIfSlotsMoveBeforeItsLastPartIsSent(t *testing.T) {
	m := newSlotMoving(t, 1)
	m.sent = func() {
		m.sent = func() {}
		m.finish(t)
	}
	if n := one[int](t, m.routed, "SELECT COUNT(*) FROM items"); n != 3 {
		t.Errorf("%d items are counted", n)
	}
}

// A query that takes longer than slots need to move would never end otherwise.
func TestAQueryIsNotRepeatedIfSlotsMoveWhileItsPartsAreExecuted(t *testing.T) {
	m := newSlotMoving(t, 2)
	exec(t, m.rows, "CREATE TABLE items_2 AS SELECT * FROM items_0")
	var sent atomic.Int64
	m.sent = func() {
		switch sent.Add(1) {
		case 2, 6:
			m.switchTo(t, "items_2")
		case 4:
			m.switchTo(t, "items_0")
		}
	}
	if n := one[int](t, m.routed, "SELECT COUNT(*) FROM items"); n != 3 || sent.Load() != 2 {
		t.Errorf("%d items are counted by %d parts", n, sent.Load())
	}
}

// Then nobody knows whether slots have moved.
func TestAQueryIsRefusedIfTheMapGetsStaleBeforeItsLastPartIsSent(t *testing.T) {
	m := newSlotMoving(t, 1)
	var stale atomic.Bool
	if err := m.router.Swap(map[string]sharding.Map{"items": mapTo(t, "items_0").At(1).While(func() bool { return !stale.Load() })}); err != nil {
		t.Fatal(err)
	}
	m.sent = func() { stale.Store(true) }
	if err := m.routed.QueryRow("SELECT COUNT(*) FROM items").Scan(new(int)); !errors.Is(err, sharding.ErrStaleMap) {
		t.Error(err)
	}
}

// A transaction of SQLite sees the rows that there were when it began, so it would miss those of the slot that has moved.
func TestATransactionFromBeforeAMoveIsRefusedRowsOfTheMovedSlot(t *testing.T) {
	m := newSlotMoving(t, 4)
	tx, err := m.routed.BeginTx(sharding.AllShards(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, tx, "SELECT COUNT(*) FROM items WHERE user_id = 1"); n != 1 {
		t.Errorf("%d items are counted", n)
	}
	m.finish(t)
	for text, want := range map[string]error{"user_id = 0": sharding.ErrSlotMoving, "user_id IN (0, 1)": sharding.ErrSlotMoving, "user_id = 1": nil} {
		var n int
		if err := tx.QueryRow("SELECT COUNT(*) FROM items WHERE " + text).Scan(&n); !errors.Is(err, want) {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, m.routed, "SELECT COUNT(*) FROM items WHERE user_id = 0"); n != 2 {
		t.Errorf("%d items are counted", n)
	}
}

// What it has read there may have been changed elsewhere since.
func TestATransactionMayNotWriteRowsOfASlotThatHasLeftItsDatabase(t *testing.T) {
	open := files(t)
	dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	for _, db := range dbs {
		exec(t, db, "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	at := func(db string, version int64) sharding.Map {
		m, err := sharding.MapOf(sharding.Target{DB: db, Table: "items"}, sharding.Target{DB: "b", Table: "items"})
		if err != nil {
			t.Fatal(err)
		}
		return m.While(func() bool { return true }).At(version)
	}
	for _, mode := range []sharding.TxMode{sharding.SingleShard, sharding.BestEffort} {
		for _, text := range []string{"DELETE FROM items WHERE user_id = 0", "INSERT INTO items (id, user_id) VALUES (1, 0)", "INSERT INTO items (id, user_id) VALUES (1, 1), (2, 2)", "SELECT id FROM items WHERE user_id = 0"} {
			router, err := sharding.New(dbs, sharding.Transactions(mode), sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(2), Map: at("a", 0)})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			one[int](t, tx, "SELECT COUNT(*) FROM items WHERE user_id = 0")
			if err := router.Swap(map[string]sharding.Map{"items": at("b", 1)}); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrSlotMoving) || !strings.Contains(err.Error(), "run the transaction again") {
				t.Errorf("%s in mode %d: %v", text, mode, err)
			}
			if err := errors.Join(tx.Rollback(), routed.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// moveMeanwhile moves slot 0 while f waits for the only connection.
func (m *slotMoving) moveMeanwhile(t *testing.T, f func() error) {
	t.Helper()
	held, err := m.pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, done := m.pool.Stats().WaitCount, make(chan error, 1)
	go func() { done <- f() }()
	testwait.Until(t, "the call waits for a connection", func() bool { return m.pool.Stats().WaitCount > before })
	m.finish(t)
	if err := errors.Join(held.Close(), <-done); err != nil {
		t.Error(err)
	}
}

func TestAQueryOfAKeyBeginsAgainIfItsSlotMovesWhileItWaitsForAConnection(t *testing.T) {
	const text = "SELECT COUNT(*) FROM items WHERE user_id = ?"
	for _, isPrepared := range []bool{false, true} {
		m := newSlotMoving(t, 1)
		st, err := m.routed.Prepare(text)
		if err != nil {
			t.Fatal(err)
		}
		count := func() error {
			ask := st.QueryRow
			if !isPrepared {
				ask = func(args ...any) *sql.Row { return m.routed.QueryRow(text, args...) }
			}
			var n int
			err := ask(0).Scan(&n)
			if n != 2 {
				t.Errorf("%d items are counted, prepared: %v", n, isPrepared)
			}
			return err
		}
		if err := count(); err != nil {
			t.Fatal(err)
		}
		m.moveMeanwhile(t, count)
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAWriteBeginsAgainIfItsSlotMovesWhileItWaitsForAConnection(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // the ids of the items afterwards
	}{
		{"DELETE FROM items WHERE user_id = 0 AND id = 2", "1 3"},
		{"DELETE FROM items WHERE user_id IN (0, 1)", ""},
		{"DELETE FROM items WHERE id = 2", "1 3"},
		{"DELETE FROM items WHERE id > 1", "1"},
		{"DELETE FROM items WHERE user_id = 0 RETURNING id", "3"},
		{"DELETE FROM items WHERE id > 1 RETURNING id", "1"},
		{"INSERT INTO items (id, user_id) VALUES (4, 0)", "1 2 3 4"},
		{"INSERT INTO items (id, user_id) VALUES (4, 0), (5, 1)", "1 2 3 4 5"},
	} {
		for _, how := range []string{"text", "prepared", "query", "prepared query"} {
			t.Run(how+"/"+c.text, func(t *testing.T) {
				m := newSlotMoving(t, 1)
				ctx := sharding.AllShards(t.Context())
				st, err := m.routed.PrepareContext(ctx, c.text)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = st.Close() }()
				send := func() error {
					switch how {
					case "text":
						_, err = m.routed.ExecContext(ctx, c.text)
					case "prepared":
						_, err = st.ExecContext(ctx)
					case "query":
						err = drained(m.routed.QueryContext(ctx, c.text))
					default:
						err = drained(st.QueryContext(ctx))
					}
					return err
				}
				if err := send(); err != nil { // reads the columns
					t.Fatal(err)
				}
				for _, text := range []string{"DELETE FROM items_0", "DELETE FROM items_1", "INSERT INTO items_0 VALUES (1, 0), (2, 0)", "INSERT INTO items_1 VALUES (3, 1)"} {
					exec(t, m.rows, text)
				}
				m.moveMeanwhile(t, send)
				if ids := one[sql.NullString](t, m.rows, "SELECT GROUP_CONCAT(id, ' ') FROM (SELECT id FROM items_1 ORDER BY id)"); ids.String != c.want {
					t.Errorf("items %s, want %s", ids.String, c.want)
				}
				if n := one[int](t, m.rows, "SELECT COUNT(*) FROM items_0"); n != 0 {
					t.Errorf("%d items are on the old shard", n)
				}
			})
		}
	}
}

// The map was compared after the write, which was then executed on the new shard as well.
func TestAPreparedWriteThatReturnsRowsIsExecutedOnceIfItsSlotMovesMeanwhile(t *testing.T) {
	m := newSlotMoving(t, 2)
	exec(t, m.rows, "CREATE TABLE items_2 AS SELECT * FROM items_0 WHERE false")
	st, err := m.routed.Prepare("INSERT INTO items (id, user_id) VALUES (?, 0) RETURNING id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if err := drained(st.Query(4)); err != nil {
		t.Fatal(err)
	}
	other, err := m.rows.Conn(t.Context()) // it keeps the write waiting
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	run := func(text string) {
		t.Helper()
		if _, err := other.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN IMMEDIATE")
	done := make(chan error, 1)
	go func() { done <- drained(st.Query(5)) }()
	testwait.Until(t, "the write has a connection", func() bool { return m.pool.Stats().InUse > 0 })
	m.switchTo(t, "items_2")
	run("COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, m.rows, "SELECT COUNT(*) FROM (SELECT id FROM items_0 UNION ALL SELECT id FROM items_2) WHERE id = 5"); n != 1 {
		t.Errorf("the item was inserted %d times", n)
	}
}

func drained(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}
