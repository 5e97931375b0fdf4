// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/server"
)

func TestACommitIsGivenUpTenSecondsAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Int64
		part := func() *txPart {
			return &txPart{detach: func() bool { return true }, ends: func() { ended.Add(1) }}
		}
		attach, err := detach(ctx, []*txPart{part(), part()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // a COMMIT takes as long as it takes
		cancel()
		time.Sleep(endTimeout - time.Millisecond)
		synctest.Wait()
		if n := ended.Load(); n > 0 {
			t.Errorf("%d parts were ended early", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := ended.Load(); n != 2 {
			t.Errorf("%d of 2 parts were ended", n)
		}
		if attach() {
			t.Error("the context has ended, and the parts are attached to it")
		}
	})
}

// closing is a database whose driver has closed the connection when a statement is executed.
type closing struct{ ended func() }

func (c closing) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (closing) Driver() driver.Driver                          { return nil }
func (closing) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrBadConn }
func (closing) Close() error                                   { return nil }
func (closing) Begin() (driver.Tx, error)                      { return nil, driver.ErrBadConn }

func (c closing) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	c.ended()
	return nil, driver.ErrBadConn
}

// pgx closes the connection of a transaction whose context ends. A program would otherwise take the end of its own context for the failure
// of a database.
func TestACommitThatFindsItsConnectionClosedByTheEndOfItsContextFailsWithTheErrorOfTheContext(t *testing.T) {
	postgres, err := dialect.Named("postgres")
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pool := sql.OpenDB(closing{func() {
			if ends {
				cancel()
			}
		}})
		defer func() { _ = pool.Close() }()
		conn, err := pool.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		m, err := sharding.Spread([]string{"a"}, 1, "orders_%d")
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(sharding.DBs{"a": pool}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(1), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		part := &txPart{pool: pool, inner: inner.Conn{SQL: conn}}
		part.inner.Kept = &part.kept
		tx := &transaction{ctx: ctx, session: &session{database: &database{router: router, server: &server.Server{Server: dialect.Server{Dialect: postgres}}}}, parts: []*txPart{part, part}}
		if err := tx.checkAlive(); err == nil || errors.Is(err, context.Canceled) != ends || !errors.Is(err, errLost) {
			t.Errorf("the context has ended: %v, and the error is %v", ends, err)
		}
	}
}
