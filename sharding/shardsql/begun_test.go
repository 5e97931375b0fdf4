// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// keeping is a driver that commits with the context of BEGIN, as pgx does.
type keeping struct {
	asking
	begin func(ctx context.Context) error
}

func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.asking.Connect(ctx)
	return keepingConn{c.(askingConn), k.begin}, err
}

type keepingConn struct {
	askingConn
	begin func(ctx context.Context) error
}

func (c keepingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return keptTx{tx, ctx}, err
}

type keptTx struct {
	driver.Tx
	ctx context.Context
}

func (k keptTx) Commit() error { return errors.Join(k.ctx.Err(), k.Tx.Commit()) }

func keepingShop(t *testing.T, begin func(context.Context) error) (routed *sql.DB, pools []*sql.DB) {
	t.Helper()
	return shopOn(t, func(name string) driver.Connector { return keeping{answering(t, name), begin} })
}

// answering is a file of SQLite.
func answering(t *testing.T, name string) asking {
	t.Helper()
	return asking{filepath.Join(t.TempDir(), name+".db"), func(context.Context, string) error { return nil }}
}

// shopOn is a table in two databases.
func shopOn(t *testing.T, open func(name string) driver.Connector) (routed *sql.DB, pools []*sql.DB) {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		dbs[name] = sql.OpenDB(open(name))
		t.Cleanup(func() { _ = dbs[name].Close() })
		pools = append(pools, dbs[name])
	}
	m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, note TEXT)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, pools
}

func TestATransactionCommitsAfterTheContextsOfItsStatementsHaveEnded(t *testing.T) {
	routed, _ := keepingShop(t, func(context.Context) error { return nil })
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for id := range 2 {
		ctx, end := context.WithCancel(t.Context())
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, note) VALUES (?, 'x')", id); err != nil {
			t.Error(err)
		}
		end()
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if n := one[int](t, routed, "SELECT COUNT(*) FROM orders"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// refusing is a server that rolls back at COMMIT, as the members of a cluster do.
type refusing struct{ asking }

func (r refusing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := r.asking.Connect(ctx)
	return refusingConn{c.(askingConn)}, err
}

type refusingConn struct{ askingConn }

func (c refusingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return refusedTx{tx}, err
}

type refusedTx struct{ driver.Tx }

var errRefused = &refusedError{}

type refusedError struct{}

func (*refusedError) Error() string { return "the commit is refused" }

func (r refusedTx) Commit() error { return cmp.Or(r.Tx.Rollback(), error(errRefused)) }

func (refusedTx) Rollback() error { return nil }

// Libraries such as GORM's dialects assert the types of errors.
func TestTheErrorOfACommitIsTheDriversOwn(t *testing.T) {
	routed, pools := shopOn(t, func(name string) driver.Connector { return refusing{answering(t, name)} })
	tx, err := routed.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id) VALUES (1)")
	if err := tx.Commit(); err != error(errRefused) { //nolint:errorlint // the error itself is compared
		t.Errorf("%T: %v", err, err)
	}
	noneInUse(t, pools)
}

func TestATransactionThatCannotBeginWaitsNoLongerThanItsStatement(t *testing.T) {
	routed, pools := keepingShop(t, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, note) VALUES (1, 'x')"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	noneInUse(t, pools)
}

// A driver may begin although the context has just ended.
func TestATransactionDoesNotBeginAfterTheEndOfItsStatement(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	routed, pools := keepingShop(t, func(own context.Context) error {
		end()
		<-own.Done()
		return nil
	})
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, note) VALUES (1, 'x')"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	noneInUse(t, pools)
}

func noneInUse(t *testing.T, pools []*sql.DB) {
	t.Helper()
	for _, pool := range pools {
		if n := pool.Stats().InUse; n != 0 {
			t.Errorf("%d connections are left in use", n)
		}
	}
}
