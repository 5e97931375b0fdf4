// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// connect returns a connection of a pool, after a check that its settings are those of the home
// database. If a database cannot be reached, the error names it. Later errors of a database are the
// driver's own, because programs and libraries assert their types.
func (d *database) connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.replicas.leaveOut(ctx, pool, err, d.observer)
		}
		return nil, &unreachableError{d.nameOf(pool), err}
	}
	if err := d.checkSettings(ctx, pool, conn); err != nil {
		return nil, dialect.JoinErrors(err, conn.Close())
	}
	return conn, nil
}

// unreachableError is that of a pool that returned no connection.
type unreachableError struct {
	database string
	cause    error
}

func (e *unreachableError) Error() string { return e.database + ": " + e.cause.Error() }

func (e *unreachableError) Unwrap() error { return e.cause }

func isUnreachable(err error) bool {
	var e *unreachableError
	return errors.As(err, &e)
}

func (d *database) poolOrHome(name string) *sql.DB {
	if name == "" {
		return d.home
	}
	return d.router.DB(name)
}

// textArgs returns the arguments of a text that goes to one database.
func textArgs(to *plan.Route, args []driver.NamedValue) []driver.NamedValue {
	if to.Args == nil {
		return args
	}
	return chosen(args, to.Args)
}
