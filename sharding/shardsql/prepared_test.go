// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// preparing counts the statements about orders that a database has prepared and closed.
type preparing struct {
	file  string
	skips bool // it wants statements with arguments prepared, as MySQL's driver does

	breaks atomic.Bool // its statements

	mu               sync.Mutex
	prepared, closed int
}

func (p *preparing) Driver() driver.Driver { return &sqlite.Driver{} }

func (p *preparing) Connect(context.Context) (driver.Conn, error) {
	c, err := (&sqlite.Driver{}).Open("file:" + p.file + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	return preparingConn{c, p}, err
}

func (p *preparing) counts() [2]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return [2]int{p.prepared, p.closed}
}

type preparingConn struct {
	driver.Conn
	of *preparing
}

func (c preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.of.skips && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c preparingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
}

func (c preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.of.skips && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c preparingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	st, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil || !strings.Contains(query, "orders") {
		return st, err
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.prepared++
	return preparedHere{st, c.of}, nil
}

type preparedHere struct {
	driver.Stmt
	of *preparing
}

func (s preparedHere) Close() error {
	s.of.mu.Lock()
	s.of.closed++
	s.of.mu.Unlock()
	return s.Stmt.Close()
}

func (s preparedHere) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (s preparedHere) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.of.breaks.Load() {
		return nil, driver.ErrBadConn
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// preparingShop is databases a and b with one table of orders each, and a home database.
func preparingShop(t *testing.T) (routed *sql.DB, counted map[string]*preparing, pools sharding.DBs) {
	t.Helper()
	counted, pools = map[string]*preparing{}, sharding.DBs{}
	for _, name := range []string{"a", "b", "home"} {
		counted[name] = &preparing{file: filepath.Join(t.TempDir(), name)}
		db := sql.OpenDB(counted[name])
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(1)
		pools[name] = db
	}
	m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, pools[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, note BLOB)")
	}
	exec(t, pools["home"], "CREATE TABLE orders_seen (id INTEGER PRIMARY KEY)")
	router, err := sharding.New(sharding.DBs{"a": pools["a"], "b": pools["b"]}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: pools["home"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, counted, pools
}

func prepare(t *testing.T, on interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}, query string,
) *sql.Stmt {
	t.Helper()
	st, err := on.PrepareContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestAPreparedStatementIsPreparedOnceForEachConnection(t *testing.T) {
	routed, counted, _ := preparingShop(t)
	write := prepare(t, routed, "INSERT INTO orders (id, user_id, note) VALUES (?, ?, ?)") //nolint:sqlclosecheck // below
	read := prepare(t, routed, "SELECT note, id FROM orders WHERE user_id = ? AND id = ?")
	again := prepare(t, routed, "SELECT note, id FROM orders WHERE user_id = ? AND id = ?")
	for id := range int64(10) {
		if r, err := write.ExecContext(t.Context(), id, id, []byte{byte(id)}); err != nil {
			t.Fatal(err)
		} else if n, err := r.RowsAffected(); n != 1 || err != nil {
			t.Error(n, err)
		}
		for _, st := range []*sql.Stmt{read, again} {
			var note []byte
			var found int64
			if err := st.QueryRowContext(t.Context(), id, id).Scan(&note, &found); err != nil || found != id || !reflect.DeepEqual(note, []byte{byte(id)}) {
				t.Errorf("%d: %d, %v, %v", id, found, note, err)
			}
		}
	}
	for name, of := range counted {
		if got := of.counts(); got != [2]int{2, 0} && name != "home" {
			t.Errorf("%s: %d statements prepared and closed, want 2 and 0", name, got)
		}
	}
	for _, st := range []*sql.Stmt{read, again, write} {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, of := range counted {
		if got := of.counts(); got != [2]int{2, 2} && name != "home" {
			t.Errorf("%s: %d statements prepared and closed, want 2 and 2", name, got)
		}
	}
}

func TestRowsOfAPreparedStatementGiveTheirConnectionBack(t *testing.T) {
	routed, _, pools := preparingShop(t)
	exec(t, routed, "INSERT INTO orders (id, user_id, note) VALUES (1, 1, x'00'), (3, 1, NULL)")
	st := prepare(t, routed, "SELECT id, note FROM orders WHERE user_id = ? ORDER BY id") //nolint:sqlclosecheck // by prepare
	for range 3 {                                                                         // the pool has one connection
		rows, err := st.QueryContext(t.Context(), 1) //nolint:sqlclosecheck // behind the last row
		if err != nil {
			t.Fatal(err)
		}
		types, err := rows.ColumnTypes()
		if err != nil || types[1].DatabaseTypeName() != "BLOB" {
			t.Error(types, err)
		}
		n := 0
		for rows.Next() { // to the end: nobody has to close them then
			n++
		}
		if rows.Err() != nil || n != 2 || pools["b"].Stats().InUse != 0 {
			t.Errorf("%d rows, %v, %d connections in use", n, rows.Err(), pools["b"].Stats().InUse)
		}
	}
}

func TestPrepareSendsNothing(t *testing.T) {
	s := newShop(t)
	st, err := s.routed.Prepare("SELECT nothing FROM orders WHERE user_id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	var n int
	if err := st.QueryRow(1).Scan(&n); err == nil || errors.Is(err, sql.ErrNoRows) {
		t.Errorf("no error of the column: %v", err)
	}
}

func TestAPreparedStatementWorksInATransaction(t *testing.T) {
	routed, _, pools := preparingShop(t)
	write := prepare(t, routed, "INSERT INTO orders (id, user_id) VALUES (?, ?)")
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.StmtContext(t.Context(), write).Exec(1, 1); err != nil { //nolint:sqlclosecheck // with tx
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if n := one[int](t, pools["b"], "SELECT COUNT(*) FROM orders_1"); n != 0 {
		t.Errorf("%d rows were written outside of the transaction", n)
	}
}

func TestPreparedStatementsAreUsedAndClosedSideBySide(t *testing.T) {
	routed, counted, _ := preparingShop(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for user := range 10 {
				st, err := routed.PrepareContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE user_id = ?")
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				if err := st.QueryRowContext(t.Context(), user).Scan(&n); err != nil {
					t.Error(err)
				}
				if err := st.Close(); err != nil { //nolint:sqlclosecheck // its error is wanted
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for name, of := range counted {
		if got := of.counts(); got[0] != got[1] {
			t.Errorf("%s: %d statements prepared and closed", name, got)
		}
	}
}

// expect says how many statements a database has prepared and closed since the counts were
// expected last.
func (p *preparing) expect(t *testing.T, when string, prepared, closed int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prepared != prepared || p.closed != closed {
		t.Errorf("%s: %d prepared and %d closed, want %d and %d", when, p.prepared, p.closed, prepared, closed)
	}
	p.prepared, p.closed = 0, 0
}

const (
	insertOrder = "INSERT INTO orders (id, user_id) VALUES (?, 1)"
	countOrders = "SELECT COUNT(*) FROM orders WHERE user_id = ?"
	insertSeen  = "INSERT INTO orders_seen (id) VALUES (?)"
	countSeen   = "SELECT COUNT(*) FROM orders_seen WHERE id > ?"
)

// executed executes a statement some times.
func executed(t *testing.T, st *sql.Stmt) {
	t.Helper()
	for i := range 5 {
		if _, err := st.ExecContext(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAConnectionThatIsHeldPreparesAStatementOnce(t *testing.T) {
	routed, counted, pools := preparingShop(t)
	for _, of := range counted {
		of.skips = true
	}
	tx, err := routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	write := prepare(t, tx, insertOrder)
	executed(t, write)
	counted["b"].expect(t, "a statement in a transaction", 1, 0)
	if err := write.Close(); err != nil { //nolint:sqlclosecheck // its error is wanted
		t.Error(err)
	}
	counted["b"].expect(t, "when it is closed", 0, 1)
	read := prepare(t, tx, countOrders)  //nolint:sqlclosecheck // with tx
	again := prepare(t, tx, countOrders) //nolint:sqlclosecheck // with tx
	for range 3 {
		var n [2]int
		if err := errors.Join(read.QueryRow(1).Scan(&n[0]), again.QueryRow(1).Scan(&n[1])); err != nil || n != [2]int{5, 5} {
			t.Error(n, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	counted["b"].expect(t, "queries until the commit", 2, 2)

	tx, err = routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := prepare(t, routed, insertSeen)
	executed(t, tx.StmtContext(t.Context(), seen))
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	counted["home"].expect(t, "a statement of the database, at home, until the rollback", 1, 1)

	c, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	executed(t, prepare(t, c, insertSeen))
	counted["home"].expect(t, "a statement of a session", 1, 0)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	counted["home"].expect(t, "when the session ends", 0, 1)
	for name, db := range pools {
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%s: %d connections in use", name, n)
		}
	}
}

func TestAQueryAtHomeThatLeavesNothingIsPreparedOnce(t *testing.T) {
	routed, counted, _ := preparingShop(t)
	counted["home"].skips = true
	read := prepare(t, routed, countSeen) //nolint:sqlclosecheck // below
	for range 3 {
		var n int
		if err := read.QueryRow(0).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	counted["home"].expect(t, "a query", 1, 0)
	c, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "CREATE TEMP TABLE mine (id INTEGER)")
	mine := prepare(t, c, "SELECT COUNT(*) FROM mine WHERE id > ?") //nolint:sqlclosecheck // by prepare
	var n int
	if err := mine.QueryRow(0).Scan(&n); err != nil {
		t.Errorf("a table of the session: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := routed.Close(); err != nil { // read has not been closed
		t.Error(err)
	}
	counted["home"].expect(t, "when the database is closed", 0, 1)
}
