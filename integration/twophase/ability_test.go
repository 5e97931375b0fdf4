// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// cancelling makes connections on which the first queries for a setting are canceled.
type cancelling struct {
	driver.Connector

	left *atomic.Int64
}

func (c cancelling) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &cancellingConn{conn.(wholeConn), c.left}, nil
}

type cancellingConn struct {
	wholeConn

	left *atomic.Int64
}

func (c *cancellingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(query, "max_prepared_transactions") && c.left.Add(-1) >= 0 {
		return nil, &pgconn.PgError{Code: "57014", Message: "canceling statement due to user request"}
	}
	return c.wholeConn.QueryContext(ctx, query, args)
}

// A refusal would tell the program that its transactions can never span databases.
func TestADatabaseThatCannotBeAskedWhetherItPreparesTransactionsIsNoRefusal(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	b := openBank(t, p, p)
	must(t, twophase.Create(t.Context(), b.router, nil))
	left := &atomic.Int64{}
	open := func(name string) *sql.DB {
		plain := p.Open(t, name)
		connector, err := plain.Driver().(driver.DriverContext).OpenConnector(p.DSN(name))
		must(t, err)
		db := sql.OpenDB(cancelling{connector, left})
		t.Cleanup(func() { must(t, db.Close()) })
		return db
	}
	asked, err := newBank(t.Context(), open("bank_east"), open("bank_west"))
	must(t, err)
	t.Cleanup(func() { must(t, asked.routed.Close()) })
	left.Store(100)
	err = asked.transfer(t.Context(), 2, 0, 1)
	var canceled *pgconn.PgError
	var refused *sharding.RouteError
	if !errors.As(err, &canceled) || errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	left.Store(0)
	must(t, asked.transfer(t.Context(), 2, 0, 1))
}
