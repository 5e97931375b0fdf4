// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// moving is a source whose table of orders moves to two tables of the same file.
type moving struct {
	db, routed *sql.DB
	router     *sharding.Router
	epoch      int
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "source.db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m := &moving{db: db}
	exec(t, db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	exec(t, db, "CREATE TABLE orders_0_closed (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	exec(t, db, "CREATE TABLE orders_1_closed (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	exec(t, db, "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	exec(t, db, "INSERT INTO shardid_route VALUES ('orders', 'autumn', 0, 'source')")
	spread, err := sharding.Spread([]string{"main"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"main": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: spread},
		sharding.Migration{Source: "main", Tables: map[string]string{"orders": "id"}, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	m.router = router
	m.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
	t.Cleanup(func() { _ = m.routed.Close() })
	return m
}

// closes renames the tables of one database, and opens those of the other one after a while, as
// switches do.
func (m *moving) closes(t *testing.T, route sharding.Route) (open func()) {
	t.Helper()
	names := [][2]string{{"orders", "orders_closed"}, {"orders_0_closed", "orders_0"}, {"orders_1_closed", "orders_1"}}
	if route != sharding.OnShards {
		for i := range names {
			names[i][0], names[i][1] = names[i][1], names[i][0]
		}
	}
	rename := func(old, name string) {
		if _, err := m.db.Exec("ALTER TABLE " + old + " RENAME TO " + name); err != nil {
			t.Error(err)
		}
	}
	closing, opening := names[:1], names[1:]
	if route != sharding.OnShards {
		closing, opening = names[1:], names[:1]
	}
	for _, n := range closing {
		rename(n[0], n[1])
	}
	return func() {
		for _, n := range opening {
			rename(n[0], n[1])
		}
		m.epoch++
		if _, err := m.db.Exec(fmt.Sprintf("REPLACE INTO shardid_route VALUES ('orders', 'autumn', %d, '%s')", m.epoch, route)); err != nil {
			t.Error(err)
		}
	}
}

func TestAStatementFollowsItsTableAndWaitsWhileItIsClosed(t *testing.T) {
	m := newMoving(t)
	exec(t, m.routed, "INSERT INTO orders (note) VALUES ('numbered by the source')")
	exec(t, m.routed, "UPDATE orders SET user_id = id WHERE note LIKE 'numbered%'") // no key is needed there
	exec(t, m.routed, "CREATE INDEX by_note ON orders (note)")
	open := m.closes(t, sharding.OnShards)
	var wg sync.WaitGroup
	for id := range 5 {
		wg.Go(func() { exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (?, ?)", 100+id, id) })
	}
	testwait.Until(t, "statements wait", func() bool { return m.routed.Stats().InUse == 5 })
	open()
	wg.Wait()
	if n := one[int64](t, m.db, "SELECT COUNT(*) FROM orders_0 WHERE user_id % 2 = 0"); n != 3 {
		t.Errorf("%d rows of even users", n)
	}
	if n := one[int64](t, m.routed, "SELECT COUNT(*) FROM orders"); n != 5 {
		t.Errorf("%d rows on both shards", n)
	}
	if _, err := m.routed.Exec("UPDATE orders SET note = 'x'"); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("an update without the key: %v", err)
	}
}

// The columns of a table decide whether a query of several shards is accepted. They cannot be read while it is closed.
func TestAQueryWaitsForTheColumnsOfAClosedTable(t *testing.T) {
	for _, query := range []string{"SELECT id FROM orders ORDER BY id", "SELECT id FROM orders WHERE id >= (SELECT MIN(id) FROM orders)"} {
		m := newMoving(t)
		exec(t, m.db, "INSERT INTO orders VALUES (7, 1, 'x')")
		m.closes(t, sharding.OnShards)()
		if err := m.router.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		open := m.closes(t, sharding.Returned)
		var wg sync.WaitGroup
		var refused atomic.Bool
		wg.Go(func() {
			var id int64
			defer refused.Store(true)
			if err := m.routed.QueryRow(query).Scan(&id); err != nil || id != 7 {
				t.Errorf("%s: %d, %v", query, id, err)
			}
		})
		testwait.Until(t, "the query waits", func() bool { return refused.Load() || m.routed.Stats().InUse == 1 })
		open()
		wg.Wait()
	}
}

func TestATransactionThatHasExecutedNothingFollowsItsTable(t *testing.T) {
	m := newMoving(t)
	exec(t, m.routed, "INSERT INTO orders (user_id) VALUES (1)")
	idle, err := m.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	m.closes(t, sharding.OnShards)()
	exec(t, idle, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
	if err := idle.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, m.db, "SELECT COUNT(*) FROM orders_1"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// atHome is a query that only the home database may answer, and that reads no table.
const atHome = "SELECT sqlite_version()"

// Rows that a transaction has read or written may differ on the other database.
func TestATransactionThatHasExecutedAStatementFailsWhenItsTableMoved(t *testing.T) {
	m := newMoving(t)
	exec(t, m.routed, "INSERT INTO orders (user_id) VALUES (1)")
	tx, err := m.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_ = one[string](t, tx, atHome)
	m.closes(t, sharding.OnShards)()
	if _, err := tx.Exec("INSERT INTO orders (id, user_id) VALUES (7, 1)"); !errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("%v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
}

// The switch may wait for the locks of such a transaction, so neither its statement nor a later one waits for the switch.
func TestAStatementAfterABeginOfItsSessionFailsWhenItsTableMoved(t *testing.T) {
	m := newMoving(t)
	exec(t, m.routed, "INSERT INTO orders (user_id) VALUES (1)")
	conn, err := m.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exec(t, conn, "PRAGMA foreign_keys = ON") // a session remembers the first of the two
	exec(t, conn, "BEGIN")
	open := m.closes(t, sharding.OnShards)
	for range 2 {
		if _, err := conn.ExecContext(within(t), "INSERT INTO orders (id, user_id) VALUES (7, 1)"); !errors.Is(err, sharding.ErrRouteMoved) {
			t.Error(err)
		}
	}
	exec(t, conn, "ROLLBACK")
	open()
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
}

// A missing table does not always mean that a subquery depends on the query around it.
func TestASubqueryWhoseTableMovedFailsItsTransaction(t *testing.T) {
	m := newMoving(t)
	exec(t, m.routed, "CREATE TABLE users (id INTEGER PRIMARY KEY)")
	exec(t, m.routed, "INSERT INTO users VALUES (1), (2)")
	m.closes(t, sharding.OnShards)()
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
	const buyers = "SELECT COUNT(*) FROM users WHERE id IN (SELECT user_id FROM orders)"
	tx, err := m.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_ = one[int64](t, tx, "SELECT COUNT(*) FROM users")
	if n := one[int64](t, tx, buyers); n != 1 {
		t.Errorf("%d users have orders", n)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if tx, err = m.routed.Begin(); err != nil {
		t.Fatal(err)
	}
	_ = one[string](t, tx, atHome)
	m.closes(t, sharding.Returned)()
	var n int
	if err := tx.QueryRow(buyers).Scan(&n); !errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("%d, %v", n, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, m.routed, buyers); n != 0 {
		t.Errorf("%d users have orders on the source", n)
	}
}

func TestATransactionReadsAnUnreadRoute(t *testing.T) {
	m := newMoving(t)
	m.db.SetMaxOpenConns(1) // which the transaction holds when it meets the table
	tx, err := m.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_ = one[string](t, tx, atHome)
	exec(t, tx, "INSERT INTO orders (note) VALUES ('x')")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// After a rollback the source accepts statements that shards refuse, and no statement has found a
// closed table.
func TestAfterARollbackARefusedStatementIsAcceptedAgain(t *testing.T) {
	m := newMoving(t)
	m.closes(t, sharding.OnShards)()
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
	const statement = "UPDATE orders SET note = 'x'"
	if _, err := m.routed.Exec(statement); !errors.Is(err, sharding.ErrMissingKey) {
		t.Fatalf("%v", err)
	}
	m.closes(t, sharding.Returned)()
	exec(t, m.routed, statement)
}

// A write that spans databases is refused when it is sent, and not by its plan.
func TestAfterARollbackAWriteForSeveralDatabasesIsAcceptedAgain(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{}, sharding.SingleShard)
	const statement = "UPDATE orders SET note = 'x' WHERE user_id IN (1, 2)"
	exec(t, w.routed, statement)
	w.switches(t)
	for range 2 { // the first one meets the closed table
		if _, err := w.routed.Exec(statement); !errors.Is(err, sharding.ErrCrossDatabase) {
			t.Fatalf("%v", err)
		}
	}
	exec(t, w.source, "ALTER TABLE orders_old RENAME TO orders")
	exec(t, w.source, "UPDATE shardid_route SET epoch = 2, route = 'returned'")
	exec(t, w.routed, statement)
}

// Otherwise each shard would number the column itself, or, after a rollback, the source would
// assign numbers that generators have assigned.
func TestAnInsertThatLeavesAColumnToTheSourceIsRefusedFromTheSwitchOn(t *testing.T) {
	m := newMoving(t)
	inserts := map[string][]any{
		"INSERT INTO orders (user_id, note) VALUES (1, 'left out')":       nil,
		"INSERT INTO orders (id, user_id) VALUES (NULL, 1)":               nil,
		"INSERT INTO orders (user_id, id) VALUES (?, ?), (?, ?)":          {1, 50, 3, nil},
		"INSERT INTO orders (user_id, id) SELECT 1, 60 WHERE 1 = ?":       {0},
		"INSERT INTO orders (ID, user_id) VALUES (?, 1)":                  {(*int64)(nil)},
		"INSERT INTO orders (note, user_id) SELECT 'x', 1 WHERE 1 = 1":    nil,
		"REPLACE INTO orders (id, user_id, note) VALUES (NULL, 1, 'new')": nil,
	}
	accepted := "INSERT INTO orders (user_id, id) SELECT 1, 60 WHERE 1 = ?"
	try := func(place string, refused bool) {
		t.Helper()
		for query, args := range inserts {
			_, err := m.routed.Exec(query, args...)
			if want := refused && query != accepted; want != errors.Is(err, sharding.ErrNotNumbered) || !want && err != nil {
				t.Errorf("%s: %s: %v", place, query, err)
			}
		}
	}
	try("source", false)
	exec(t, m.db, "DELETE FROM orders")
	m.closes(t, sharding.OnShards)()
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
	try("shards", true)
	m.closes(t, sharding.Returned)()
	exec(t, m.routed, "DELETE FROM orders WHERE user_id = 1") // finds its table closed
	exec(t, m.routed, "INSERT INTO orders VALUES (8, 1, 'by its place')")
	try("source after a rollback", true)
	if n := one[int64](t, m.db, "SELECT (SELECT COUNT(*) FROM orders) * 10 + (SELECT COUNT(*) FROM orders_1_closed)"); n != 11 {
		t.Errorf("%d rows", n)
	}
}

func TestTheRefusalOfAShardWhoseSlotMovesAwayIsReported(t *testing.T) {
	m := newMoving(t)
	m.closes(t, sharding.OnShards)()
	exec(t, m.routed, "INSERT INTO orders (id, user_id) VALUES (7, 1)")
	exec(t, m.db, "CREATE TRIGGER fence BEFORE UPDATE ON orders_1 BEGIN SELECT RAISE(ABORT, '"+sharding.FenceMessage+"'); END")
	if _, err := m.routed.Exec("UPDATE orders SET note = 'x' WHERE user_id = 1"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("%v", err)
	}
	if _, err := m.routed.Exec("UPDATE orders SET note = 'x' WHERE user_id IN (1, 2)"); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("among others: %v", err)
	}
}

// MariaDB executes a write while its rows are read.
func TestTheRefusalOfAShardIsReportedAlsoIfItComesWithTheRowsOfAWrite(t *testing.T) {
	refusing := sql.OpenDB(lateRefusal{asking{filepath.Join(t.TempDir(), "late.db"), func(context.Context, string) error { return nil }}})
	t.Cleanup(func() { _ = refusing.Close() })
	exec(t, refusing, "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id BIGINT)")
	one, err := sharding.MapOf(sharding.Target{DB: "a", Table: "orders_0"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": refusing}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(1), Map: one})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: refusing})
	t.Cleanup(func() { _ = routed.Close() })
	const text = "INSERT INTO orders (id, user_id) VALUES (?, 1) RETURNING id"
	prepared, err := routed.PrepareContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prepared.Close() }()
	var id int64
	for form, row := range map[string]*sql.Row{"text": routed.QueryRow(text, 7), "prepared": prepared.QueryRow(7)} {
		if err := row.Scan(&id); !errors.Is(err, sharding.ErrSlotMoving) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// lateRefusal is a database that refuses an INSERT when its rows are read.
type lateRefusal struct{ asking }

func (l lateRefusal) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.asking.Connect(ctx)
	return lateConn{c.(askingConn)}, err
}

type lateConn struct{ askingConn }

func (c lateConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.HasPrefix(query, "INSERT") {
		return lateRows{}, nil
	}
	return c.askingConn.QueryContext(ctx, query, args)
}

func (c lateConn) Prepare(query string) (driver.Stmt, error) {
	st, err := c.askingConn.Prepare(query)
	return lateStmt{st}, err
}

type lateStmt struct{ driver.Stmt }

func (lateStmt) Query([]driver.Value) (driver.Rows, error) { return lateRows{}, nil }

type lateRows struct{}

func (lateRows) Columns() []string         { return []string{"id"} }
func (lateRows) Close() error              { return nil }
func (lateRows) Next([]driver.Value) error { return errors.New(sharding.FenceMessage) }

func TestIDsThatAnAdapterMadeAreNotSentToASourceThatNumbers(t *testing.T) {
	m := newMoving(t)
	for name, c := range map[string]struct {
		hint writehint.Hint
		want error
	}{
		"made just now":    {writehint.Hint{Table: "Orders", Column: "ID", Fresh: []int{0}}, writehint.ErrNumbered},
		"of another table": {writehint.Hint{Table: "items", Column: "id", Fresh: []int{0}}, nil},
		"another column":   {writehint.Hint{Table: "orders", Column: "user_id", Fresh: []int{0}}, nil},
		"of the program":   {writehint.Hint{Table: "orders", Column: "id"}, nil},
	} {
		exec(t, m.db, "DELETE FROM orders")
		_, err := m.routed.ExecContext(writehint.With(t.Context(), c.hint), "INSERT INTO orders (id, user_id) VALUES (7, 1)")
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := one[int64](t, m.db, "SELECT COUNT(*) FROM orders"); n == 1 != (c.want == nil) {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// A rollback closes the shards while a statement searches them for the row that it names.
func TestASearchThatFindsTheShardsClosedWaitsForTheSource(t *testing.T) {
	const update = "UPDATE orders SET note = 'late' WHERE id = 2"
	for name, begin := range map[string]func(t *testing.T, m *moving) (execer, func()){
		"alone": func(_ *testing.T, m *moving) (execer, func()) { return m.routed, func() {} },
		"first of its transaction": func(t *testing.T, m *moving) (execer, func()) {
			t.Helper()
			tx, err := m.routed.Begin()
			if err != nil {
				t.Fatal(err)
			}
			return tx, func() { _ = tx.Commit() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t)
			exec(t, m.db, "INSERT INTO orders VALUES (2, 2, 'first')")
			exec(t, m.db, "INSERT INTO orders_0_closed VALUES (2, 2, 'first')")
			m.closes(t, sharding.OnShards)()
			exec(t, m.routed, update)
			on, end := begin(t, m)
			open := m.closes(t, sharding.Returned)
			var wg sync.WaitGroup
			var ended atomic.Bool
			wg.Go(func() {
				defer ended.Store(true)
				if _, err := on.ExecContext(within(t), update); err != nil {
					t.Error(err)
				}
			})
			testwait.Until(t, "the statement waits", func() bool { return ended.Load() || m.db.Stats().InUse == 0 && m.routed.Stats().InUse == 1 })
			open()
			wg.Wait()
			end()
			if got := one[string](t, m.db, "SELECT note FROM orders WHERE id = 2"); got != "late" {
				t.Errorf("the source has %q", got)
			}
		})
	}
}

func TestASearchOfATransactionThatFindsTheShardsClosedEndsIt(t *testing.T) {
	m := newMoving(t)
	m.closes(t, sharding.OnShards)()
	exec(t, m.routed, "UPDATE orders SET note = 'x' WHERE id = 2")
	tx, err := m.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_ = one[string](t, tx, atHome)
	m.closes(t, sharding.Returned)()
	if _, err := tx.Exec("UPDATE orders SET note = 'x' WHERE id = 2"); !errors.Is(err, sharding.ErrRouteMoved) {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}
