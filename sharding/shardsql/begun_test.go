// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
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
	dbs := sharding.DBs{}
	for _, name := range []string{"a", "b"} {
		dbs[name] = sql.OpenDB(keeping{asking{filepath.Join(t.TempDir(), name+".db"), func(context.Context, string) error { return nil }}, begin})
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
