// SPDX-License-Identifier: Apache-2.0

// Package secondpool opens a pool over a pool that routes nothing: the least that any database/sql
// driver over pools adds to a statement. Benchmarks compare routing with it.
package secondpool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// Open returns a pool that passes queries and statements to another pool. It supports neither prepared
// statements nor transactions.
func Open(pool *sql.DB) *sql.DB { return sql.OpenDB(connector{pool}) }

type connector struct{ pool *sql.DB }

func (c connector) Connect(context.Context) (driver.Conn, error) { return conn(c), nil }
func (c connector) Driver() driver.Driver                        { return c.pool.Driver() }

// conn is a connection of the outer pool. It holds no connection of the inner one.
type conn struct{ pool *sql.DB }

func (conn) Prepare(string) (driver.Stmt, error)      { return nil, errors.ErrUnsupported }
func (conn) Begin() (driver.Tx, error)                { return nil, errors.ErrUnsupported }
func (conn) Close() error                             { return nil }
func (conn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	in, err := c.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	all := &rows{conn: in}
	err = in.Raw(func(raw any) error {
		all.Rows, err = raw.(driver.QueryerContext).QueryContext(ctx, text, args)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return all, nil
}

func (c conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (result driver.Result, err error) {
	in, err := c.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	err = in.Raw(func(raw any) error {
		result, err = raw.(driver.ExecerContext).ExecContext(ctx, text, args)
		return err
	})
	return result, errors.Join(err, in.Close())
}

// rows hold their connection until they are closed.
type rows struct {
	driver.Rows

	conn *sql.Conn
}

func (r *rows) Close() error { return errors.Join(r.Rows.Close(), r.conn.Close()) }
