// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

var errCable = errors.New("the cable is cut")

// asking is a database whose queries may be answered by a function.
type asking struct {
	file   string
	answer func(ctx context.Context, query string) error
}

func (a asking) Driver() driver.Driver { return &sqlite.Driver{} }

func (a asking) Connect(context.Context) (driver.Conn, error) {
	c, err := (&sqlite.Driver{}).Open("file:" + a.file)
	return askingConn{c, a}, err
}

type askingConn struct {
	driver.Conn
	asking
}

func (c askingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c askingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.answer(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// A driver may report an interrupted query with its own error.
func TestTheShardThatFailedFirstIsNamedAndTheOthersAreStopped(t *testing.T) {
	begun := make(chan bool, 1)
	db := sql.OpenDB(asking{filepath.Join(t.TempDir(), "a.db"), func(ctx context.Context, query string) error {
		switch {
		case !strings.Contains(query, "user_name"):
		case strings.Contains(query, "orders_1"):
			begun <- true
			<-ctx.Done()
			return errors.New("interrupted")
		case strings.Contains(query, "orders_3"):
			<-begun
			return errCable
		}
		return nil
	}})
	t.Cleanup(func() { _ = db.Close() })
	m, err := sharding.Spread([]string{"a"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(4), Map: m}, sharding.FanOut(8, 4))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, db, "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_name TEXT)")
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
	t.Cleanup(func() { _ = routed.Close() })
	var id int64
	err = routed.QueryRowContext(t.Context(), "SELECT id FROM orders WHERE user_name <> ''").Scan(&id)
	var shard *sharding.ShardError
	if !errors.Is(err, errCable) || !errors.As(err, &shard) || shard.Target.Table != "orders_3" {
		t.Errorf("%d, %v", id, err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are left in use", n)
	}
}

// Drivers close the connection of a statement whose context ends, and the transaction's part there would be lost.
func TestAQueryThatFailsOnOneDatabaseStopsNoOtherInItsTransaction(t *testing.T) {
	begun, asked := make(chan bool, 1), make(chan context.Context, 1)
	pools := sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		pools[name] = sql.OpenDB(asking{filepath.Join(t.TempDir(), name+".db"), func(ctx context.Context, query string) error {
			switch {
			case !strings.Contains(query, "user_name <>"):
			case strings.Contains(query, "orders_1"):
				asked <- ctx
				begun <- true
			case strings.Contains(query, "orders_0"):
				<-begun
				return errCable
			}
			return nil
		}})
		t.Cleanup(func() { _ = pools[name].Close() })
	}
	m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(pools, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.BestEffort), sharding.FanOut(8, 4))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, pools[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_name TEXT)")
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: pools["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(t.Context(), "SELECT id FROM orders WHERE user_name <> ''").Scan(new(int64)); !errors.Is(err, errCable) {
		t.Error(err)
	}
	if err := (<-asked).Err(); err != nil {
		t.Errorf("the query of the other database was stopped: %v", err)
	}
	exec(t, tx, "INSERT INTO orders (id) VALUES (1)")
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
}

// ending is a database whose COMMIT needs the context of BEGIN, and calls a function afterwards.
type ending struct {
	asking
	committed func()
}

func (e ending) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := e.asking.Connect(ctx)
	return endingConn{c.(askingConn), e.committed}, err
}

type endingConn struct {
	askingConn
	committed func()
}

func (c endingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return endingTx{tx, ctx, c.committed}, err
}

type endingTx struct {
	driver.Tx
	ctx       context.Context
	committed func()
}

func (t endingTx) Commit() error {
	if err := t.ctx.Err(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	defer t.committed()
	return t.Tx.Commit()
}

func TestAContextThatEndsBetweenTwoCommitsEndsNeither(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir, pools := t.TempDir(), sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		pools[name] = sql.OpenDB(ending{asking{filepath.Join(dir, name+".db"), func(context.Context, string) error { return nil }}, cancel})
		t.Cleanup(func() { _ = pools[name].Close() })
	}
	m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(pools, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, pools[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY)")
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: pools["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	tx, err := routed.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id) VALUES (2)")
	exec(t, tx, "INSERT INTO orders (id) VALUES (1)")
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	defer end()
	if tx, err = routed.BeginTx(ended, nil); err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id) VALUES (3)")
	exec(t, tx, "INSERT INTO orders (id) VALUES (4)")
	end()
	if err := tx.Commit(); !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	testwait.Until(t, "all connections are free", func() bool { return pools["a"].Stats().InUse+pools["b"].Stats().InUse == 0 })
	if a, b := one[int](t, pools["a"], "SELECT COUNT(*) FROM orders_0"), one[int](t, pools["b"], "SELECT COUNT(*) FROM orders_1"); a != 1 || b != 1 {
		t.Errorf("%d rows in a, and %d in b", a, b)
	}
}

// Before the first statement the server is not known, and a transaction has nothing to record about it.
func TestTheFirstStatementOfATransactionFailsIfTheHomeDatabaseDoesNotAnswer(t *testing.T) {
	s := newShop(t)
	tx, err := s.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_ = s.home.Close()
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'x' WHERE user_id = 5"); err == nil {
		t.Error("the home database is closed")
	}
	if err := tx.QueryRowContext(t.Context(), "SELECT note FROM orders WHERE user_id = 5").Scan(new(string)); err == nil {
		t.Error("the home database is closed")
	}
}

// unreachable is a database whose address answers nobody.
type unreachable struct{}

func (unreachable) Connect(context.Context) (driver.Conn, error) {
	time.Sleep(10 * time.Second)
	return nil, errCable
}

func (unreachable) Driver() driver.Driver { return &sqlite.Driver{} }

// One attempt after another would let the last of them wait for minutes.
func TestStatementsThatWaitForAnUnreachableHomeDatabaseFailTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := sql.OpenDB(unreachable{})
		defer func() { _ = pool.Close() }()
		m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "orders_0"})
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(sharding.DBs{"a": pool}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(1), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: pool})
		defer func() { _ = routed.Close() }()
		const remove = "DELETE FROM orders WHERE id = 1"
		begun := time.Now()
		if _, err := routed.ExecContext(t.Context(), remove); !errors.Is(err, errCable) {
			t.Error(err)
		}
		attempt := time.Since(begun)
		begun = time.Now()
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if _, err := routed.ExecContext(t.Context(), remove); !errors.Is(err, errCable) {
					t.Error(err)
				}
			})
		}
		waiting.Wait()
		if took := time.Since(begun); took != attempt {
			t.Errorf("ten statements at once waited for %v, and one for %v", took, attempt)
		}
	})
}
