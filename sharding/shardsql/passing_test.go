// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// passing is the least that a driver over a pool can do: it passes a text and its arguments to the
// driver of the pool, on a connection that it keeps until the rows are closed.
type passing struct{ pool *sql.DB }

func (p passing) Connect(context.Context) (driver.Conn, error) { return passingConn(p), nil }
func (p passing) Driver() driver.Driver                        { return p.pool.Driver() }

type passingConn struct{ pool *sql.DB }

func (passingConn) Prepare(string) (driver.Stmt, error)      { panic("unused") }
func (passingConn) Begin() (driver.Tx, error)                { panic("unused") }
func (passingConn) Close() error                             { return nil }
func (passingConn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c passingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	conn, err := c.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	made := &passingRows{conn: conn}
	err = conn.Raw(func(inner any) error {
		made.Rows, err = inner.(driver.QueryerContext).QueryContext(ctx, text, args)
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return made, nil
}

type passingRows struct {
	driver.Rows
	conn *sql.Conn
}

func (r *passingRows) Close() error {
	err := r.Rows.Close()
	_ = r.conn.Close()
	return err
}
