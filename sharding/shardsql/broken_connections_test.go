// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// breaking breaks connections on request.
type breaking struct {
	poolOf
	left    *atomic.Int64 // how many statements fail yet
	commits *atomic.Int64 // how many answers to COMMIT are lost yet
	begins  *atomic.Int64 // how many BEGIN fail yet
}

func (b breaking) Driver() driver.Driver { return &sqlite.Driver{} }

func (b breaking) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := b.poolOf.Connect(ctx)
	return breakingConn{conn, b}, err
}

type breakingConn struct {
	driver.Conn
	breaking
}

func (c breakingConn) breaks(query string) error {
	if strings.Contains(query, "orders") && c.left.Add(-1) >= 0 {
		return driver.ErrBadConn
	}
	return nil
}

func (c breakingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.begins.Add(-1) >= 0 {
		return nil, driver.ErrBadConn
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return breakingTx{tx, c.commits}, err
}

type breakingTx struct {
	driver.Tx
	commits *atomic.Int64
}

// Commit loses its answer, which some drivers report like a statement that was not sent.
func (t breakingTx) Commit() error {
	err := t.Tx.Commit()
	if t.commits.Add(-1) >= 0 {
		return driver.ErrBadConn
	}
	return err
}

func (c breakingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.breaks(query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c breakingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.breaks(query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c breakingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.breaks(query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

// breakingShop is a shop whose database b breaks connections.
func breakingShop(t *testing.T) (*shop, *atomic.Int64) {
	t.Helper()
	s, b := brokenShop(t, "b", sharding.SingleShard)
	return s, b.left
}

// brokenShop is a shop of which one database breaks connections.
func brokenShop(t *testing.T, name string, mode sharding.TxMode) (*shop, breaking) {
	t.Helper()
	return brokenShopOf(t, mode, name)
}

// brokenShopOf is a shop of which some databases break connections.
func brokenShopOf(t *testing.T, mode sharding.TxMode, names ...string) (*shop, breaking) {
	t.Helper()
	s := filled(t)
	b := breaking{left: &atomic.Int64{}, commits: &atomic.Int64{}, begins: &atomic.Int64{}}
	dbs := sharding.DBs{"a": s.dbs["a"], "b": s.dbs["b"]}
	for _, name := range names {
		dbs[name].SetMaxOpenConns(0)
		b.poolOf = poolOf{dbs[name]}
		dbs[name] = sql.OpenDB(b)
		dbs[name].SetMaxOpenConns(2)
		t.Cleanup(func() { _ = dbs[name].Close() })
	}
	s.dbs = dbs
	var err error
	s.router, err = sharding.New(s.dbs, sharding.Tables(tablesOf(s.router)...), sharding.Broadcast("countries"), sharding.Transactions(mode))
	if err != nil {
		t.Fatal(err)
	}
	s.routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
	t.Cleanup(func() { _ = s.routed.Close() })
	_ = one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE user_id = 5") // the columns are read
	return s, b
}

func TestAConnectionThatBreaksIsReplacedOutsideOfTransactions(t *testing.T) {
	for name, text := range map[string]string{
		"one shard":      "UPDATE orders SET note = 'w' WHERE user_id = 5",
		"several shards": "SELECT id FROM orders ORDER BY id",
		"several parts":  "UPDATE orders SET note = 'w' WHERE user_id IN (5, 3)",
	} {
		s, left := breakingShop(t)
		left.Store(1)
		exec(t, s.routed, text)
		if left.Load() >= 0 {
			t.Errorf("%s: no connection broke", name)
		}
		s.idle(t)
		left.Store(1)
		st := prepare(t, s.routed, text) //nolint:sqlclosecheck // by prepare
		if _, err := st.Exec(); err != nil {
			t.Errorf("%s, prepared: %v", name, err)
		}
		s.idle(t)
	}
}

// A server that restarts breaks all connections of its pool. database/sql would use the third one of
// one table's pool anew.
func TestAllConnectionsThatHaveBrokenAreReplaced(t *testing.T) {
	const idle = 8
	for name, text := range map[string]string{
		"one shard":          "UPDATE orders SET note = 'w' WHERE user_id = 5",
		"a query":            "SELECT id FROM orders WHERE user_id = 5",
		"several shards":     "SELECT id FROM orders ORDER BY id",
		"several parts":      "UPDATE orders SET note = 'w' WHERE user_id IN (5, 3)",
		"several, returning": "UPDATE orders SET note = 'w' WHERE user_id IN (5, 3) RETURNING id",
	} {
		t.Run(name, func(t *testing.T) {
			s, broken := brokenShop(t, "b", sharding.SingleShard)
			s.dbs["b"].SetMaxOpenConns(0)
			s.dbs["b"].SetMaxIdleConns(idle)
			fill := func() {
				var all []*sql.Conn
				for range idle {
					c, err := s.dbs["b"].Conn(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, c)
				}
				for _, c := range all {
					_ = c.Close()
				}
			}
			fill()
			broken.left.Store(idle)
			if _, err := s.routed.Exec(text); err != nil || broken.left.Load() >= 0 {
				t.Errorf("a statement: %v, %d are left", err, broken.left.Load())
			}
			fill()
			broken.left.Store(0)
			broken.begins.Store(idle)
			tx, err := s.routed.Begin()
			if err != nil {
				t.Fatal(err)
			}
			exec(t, tx, strings.Replace(text, "FROM orders ORDER", "FROM orders WHERE user_id IN (3, 5) ORDER", 1))
			if err := tx.Commit(); err != nil || broken.begins.Load() >= 0 {
				t.Errorf("a transaction: %v, %d are left", err, broken.begins.Load())
			}
			s.idle(t)
		})
	}
}

// They are none of the transaction's. Drivers that notice a restart only when they send a statement are not asked before.
func TestASearchOfATransactionReplacesBrokenConnectionsToOtherDatabases(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int64
	}{
		"a write by an id": {"UPDATE orders SET note = 'w' WHERE id = 402", 1},
		"of no row":        {"DELETE FROM orders WHERE id = 499", 0},
		"of a new id":      {"UPDATE orders SET id = 403 WHERE id = 402 AND user_id = 2", 1},
	} {
		s, broken := brokenShop(t, "b", sharding.SingleShard)
		s.dbs["b"].SetMaxIdleConns(2)
		exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (402, 2, 'x')")
		tx, err := s.routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "UPDATE orders SET note = 'v' WHERE id = 402 AND user_id = 2")
		held := []*sql.Conn{}
		for range 2 {
			c, err := s.dbs["b"].Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
		for _, c := range held {
			_ = c.Close()
		}
		broken.left.Store(2)
		result, err := tx.Exec(c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if n, err := result.RowsAffected(); n != c.want || err != nil {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if left := broken.left.Load(); left >= 0 {
			t.Errorf("%s: %d connections did not break", name, left)
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.idle(t)
		broken.left.Store(1000)
		if _, err := s.routed.Exec("DELETE FROM orders WHERE id = 499"); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("all connections to b break: %v", err)
		}
	}
}

func TestAConnectionThatBreaksEndsItsTransaction(t *testing.T) {
	for name, text := range map[string]string{
		"one shard":     "UPDATE orders SET note = 'w' WHERE user_id = 5",
		"several parts": "UPDATE orders SET note = 'w' WHERE user_id IN (5, 3)",
		"a query":       "SELECT id FROM orders WHERE user_id IN (5, 3) ORDER BY id",
	} {
		s, left := breakingShop(t)
		tx, err := s.routed.Begin()
		if err != nil {
			t.Fatal(err)
		}
		exec(t, tx, "UPDATE orders SET note = 'lost' WHERE user_id = 5")
		left.Store(1)
		if _, err := tx.Exec(text); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tx.Exec(text); err == nil {
			t.Errorf("%s: the transaction goes on", name)
		}
		if err := tx.Commit(); !errors.Is(err, driver.ErrBadConn) { // as every driver says
			t.Errorf("%s: the transaction commits: %v", name, err)
		}
		s.idle(t)
		if n := one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE user_id = 5 AND note = 'lost'"); n != 0 {
			t.Errorf("%s: %d rows of a lost transaction", name, n)
		}
	}
}

func TestAStatementWhoseConnectionBrokeCanBeClosed(t *testing.T) {
	routed, counted, pools := preparingShop(t)
	counted["b"].skips = true
	c, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := c.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	st := prepare(t, tx, insertOrder)
	executed(t, st)
	counted["b"].breaks.Store(true)
	if _, err := st.Exec(7); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("a connection that breaks: %v", err)
	}
	if err := st.Close(); err != nil { //nolint:sqlclosecheck // its error is wanted
		t.Errorf("Close: %v", err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a transaction commits whose connection broke")
	}
	if err := c.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		t.Error(err)
	}
	testwait.Until(t, "no connection is in use", func() bool { return pools["b"].Stats().InUse == 0 })
}

// database/sql executes a statement again after driver.ErrBadConn.
func TestAWriteIsNotExecutedAgainIfItMayBeCommitted(t *testing.T) {
	for name, text := range map[string]string{
		"of one database":   "UPDATE orders SET note = 'w' || note WHERE user_id IN (5, 3)",
		"of two databases":  "UPDATE orders SET note = 'w' || note WHERE user_id IN (2, 5)",
		"with RETURNING":    "UPDATE orders SET note = 'w' || note WHERE user_id IN (2, 5, 3) RETURNING id",
		"a broadcast table": "UPDATE countries SET code = 'w' || code",
	} {
		for _, at := range []string{"a", "b"} {
			t.Run(name+", "+at, func(t *testing.T) {
				s, broken := brokenShop(t, at, sharding.BestEffort)
				exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (4, 2, 'x')")
				exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (11, 3, 'x')")
				st := prepare(t, s.routed, text)
				for _, execute := range []func() (sql.Result, error){func() (sql.Result, error) { return s.routed.Exec(text) }, func() (sql.Result, error) { return st.Exec() }} {
					broken.commits.Store(1)
					if _, err := execute(); broken.commits.Load() == 0 && (err == nil || errors.Is(err, driver.ErrBadConn)) {
						t.Errorf("an answer is lost: %v", err)
					}
					broken.commits.Store(0)
				}
				s.idle(t)
				for _, query := range []string{"SELECT COUNT(*) FROM orders WHERE note LIKE 'www%'", "SELECT COUNT(*) FROM countries WHERE code LIKE 'www%'"} {
					if n := one[int64](t, s.routed, query); n != 0 {
						t.Errorf("%d rows are changed more often than the statement was executed", n)
					}
				}
			})
		}
	}
}

// The first database may have committed when the others are rolled back.
func TestATransactionWhoseFirstCommitIsNotAnsweredMayBeCommittedInPart(t *testing.T) {
	s, broken := brokenShop(t, "a", sharding.BestEffort)
	for name, commit := range map[string]func() error{
		"of a statement": func() error {
			_, err := s.routed.Exec("INSERT INTO orders (id, user_id) VALUES (102, 2), (105, 5)")
			return err
		},
		"of its own": func() error {
			tx, err := s.routed.Begin()
			if err != nil {
				return err
			}
			exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (106, 2)")
			exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (109, 5)")
			return tx.Commit()
		},
	} {
		broken.commits.Store(1)
		err := commit()
		var partial *sharding.PartialCommitError
		if !errors.As(err, &partial) || len(partial.Committed) != 0 || len(partial.Failed) != 2 || !strings.Contains(err.Error(), "may be committed") {
			t.Errorf("%s: %v", name, err)
		}
		s.idle(t)
	}
	if n := one[int64](t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1 WHERE id > 100"); n != 0 {
		t.Errorf("%d rows of b are not rolled back", n)
	}
}

// started returns a database of the shop that has read no columns.
func (s *shop) started(t *testing.T) *sql.DB {
	t.Helper()
	db := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A refusal would tell the program to change a statement that is accepted after the outage, and without the unique
// keys an UPDATE would not search for their values on other shards.
func TestAStatementWhoseColumnsCannotBeReadFailsWithTheError(t *testing.T) {
	s, broken := brokenShopOf(t, sharding.SingleShard, "a", "b")
	for _, text := range []string{
		"SELECT id FROM orders ORDER BY id LIMIT 2",
		"SELECT COUNT(*) FROM orders GROUP BY note",
		"INSERT INTO orders (id, user_id) VALUES (105, 5) ON CONFLICT (id) DO NOTHING",
		"UPDATE orders SET id = 106 WHERE id = 105 AND user_id = 5",
	} {
		broken.left.Store(1000)
		_, err := s.started(t).ExecContext(t.Context(), text)
		if !errors.Is(err, driver.ErrBadConn) || isRefusal(err) {
			t.Errorf("%s: %v", text, err)
		}
		broken.left.Store(0)
		exec(t, s.started(t), text)
	}
}

func TestColumnsAreReadInAnotherDatabaseIfTheFirstDoesNotAnswer(t *testing.T) {
	s, broken := brokenShop(t, "a", sharding.SingleShard)
	broken.left.Store(1_000_000)
	db := s.started(t)
	exec(t, db, "INSERT INTO orders (id, user_id) VALUES (105, 5)")
	exec(t, db, "UPDATE orders SET note = 'w' WHERE user_id = 5")
	if _, err := db.ExecContext(t.Context(), "UPDATE orders SET id = 106 WHERE id = 105 AND user_id = 5"); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("the shards of a cannot be searched for the id: %v", err)
	}
	broken.left.Store(0)
	exec(t, db, "UPDATE orders SET id = 106 WHERE id = 105 AND user_id = 5")
}

// cut is a database whose driver closes the connection of a transaction when its context ends, as those of PostgreSQL do: then ROLLBACK
// finds a broken connection.
type cut struct {
	poolOf

	ended   func() bool
	written func()
}

func (c cut) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.poolOf.Connect(ctx)
	return cutConn{conn, c}, err
}

type cutConn struct {
	driver.Conn
	cut
}

func (c cutConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(context.WithoutCancel(ctx), o)
	return cutTx{tx, c.ended}, err
}

func (c cutConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c cutConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if strings.HasPrefix(query, "UPDATE") {
		c.written()
	}
	return r, err
}

type cutTx struct {
	driver.Tx

	ended func() bool
}

func (t cutTx) Rollback() error {
	if err := t.Tx.Rollback(); err != nil || !t.ended() {
		return err
	}
	return driver.ErrBadConn
}

// A program would otherwise take the end of its own context for the failure of a database.
func TestAWriteWhoseContextEndsBeforeItsCommitsFailsWithTheErrorOfTheContext(t *testing.T) {
	s := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.dbs["b"].SetMaxOpenConns(0)
	b := sql.OpenDB(cut{poolOf{s.dbs["b"]}, func() bool { return ctx.Err() != nil }, cancel})
	t.Cleanup(func() { _ = b.Close() })
	router, err := sharding.New(sharding.DBs{"a": s.dbs["a"], "b": b}, sharding.Tables(tablesOf(s.router)...), sharding.Broadcast("countries"), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
	t.Cleanup(func() { _ = routed.Close() })
	if _, err := routed.ExecContext(ctx, "UPDATE orders SET note = 'cut' WHERE user_id IN (2, 5)"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := one[int64](t, routed, "SELECT COUNT(*) FROM orders WHERE note = 'cut'"); n != 0 {
		t.Errorf("%d rows are written", n)
	}
}
