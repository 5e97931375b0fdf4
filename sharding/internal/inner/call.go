// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/shardid/shardid/internal/dialect"
)

// operation is a kind of execution by a driver: a query, or a statement without rows.
type operation[T any] struct {
	direct    func(driver.Conn, context.Context, string, []driver.NamedValue) (T, error) // driver.ErrSkip if the driver must prepare the text
	statement func(driver.Stmt, context.Context, []driver.NamedValue) (T, error)
}

var querying = operation[driver.Rows]{
	direct: func(on driver.Conn, ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
		if q, ok := on.(driver.QueryerContext); ok {
			return q.QueryContext(ctx, text, args)
		}
		return nil, driver.ErrSkip
	},
	statement: func(st driver.Stmt, ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
		if q, ok := st.(driver.StmtQueryContext); ok {
			return q.QueryContext(ctx, args)
		}
		return unnamed(ctx, args, st.Query) //nolint:staticcheck // drivers without contexts have nothing else
	},
}

var executing = operation[driver.Result]{
	direct: func(on driver.Conn, ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
		if e, ok := on.(driver.ExecerContext); ok {
			return e.ExecContext(ctx, text, args)
		}
		return nil, driver.ErrSkip
	},
	statement: func(st driver.Stmt, ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
		if e, ok := st.(driver.StmtExecContext); ok {
			return e.ExecContext(ctx, args)
		}
		return unnamed(ctx, args, st.Exec) //nolint:staticcheck // drivers without contexts have nothing else
	},
}

// call is an execution of a text with its arguments, as database/sql executes it on a driver's
// connection. It may be used again.
type call[T any] struct {
	operation operation[T]
	ctx       context.Context //nolint:containedctx // run's, which gets no arguments from sql.Conn.Raw
	kept      *Kept           // of the connection; nil if it is not held
	of        *Statement      // the prepared statement that is executed, or nil
	text      string
	args      []driver.NamedValue
	arguments arguments
	result    T
	own       driver.Stmt     // needed by the driver and not kept; the caller closes it after the rows
	raw       func(any) error // run, as a function that is made once
}

func (c *call[T]) send(ctx context.Context, on Conn, of *Statement, text string, args []driver.NamedValue) (T, error) {
	if c.raw == nil {
		c.raw = c.run
	}
	c.ctx, c.kept, c.of, c.text, c.args = ctx, on.Kept, of, text, args
	c.arguments.own = on.Memory != nil
	err := on.Raw(c.raw)
	return c.result, err
}

// reset forgets an execution, and keeps the operation and the function.
func (c *call[T]) reset() {
	var none T
	c.ctx, c.kept, c.of, c.text, c.args, c.result, c.own = nil, nil, nil, "", nil, none, nil
	c.arguments = arguments{}
}

func (c *call[T]) run(raw any) (err error) {
	on := raw.(driver.Conn)
	if st := c.kept.find(c.of, c.text); st != nil {
		return c.with(on, st)
	}
	checked, err := c.arguments.checked(on, nil, c.args)
	if err != nil {
		return err
	}
	if c.of == nil || len(c.args) > 0 && !c.of.Prepares {
		if c.result, err = c.operation.direct(on, c.ctx, c.text, checked); !errors.Is(err, driver.ErrSkip) {
			return err
		}
	}
	st, err := prepareRaw(c.ctx, on, c.text)
	if err != nil {
		return err
	}
	if err := c.with(on, st); err != nil {
		return dialect.JoinErrors(err, st.Close())
	}
	if !c.kept.keep(c.of, c.text, st) {
		c.own = st
	}
	return nil
}

func (c *call[T]) with(on driver.Conn, st driver.Stmt) error {
	checked, err := c.arguments.checked(on, st, c.args)
	if err != nil {
		return err
	}
	c.result, err = c.operation.statement(st, c.ctx, checked)
	return err
}

func prepareRaw(ctx context.Context, on driver.Conn, text string) (driver.Stmt, error) {
	if p, ok := on.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, text)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return on.Prepare(text)
}

// unnamed calls a driver that supports neither named arguments nor contexts.
func unnamed[T any](ctx context.Context, args []driver.NamedValue, ask func([]driver.Value) (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return none, errors.New("shardsql: the driver does not support named parameters")
		}
		values[i] = a.Value
	}
	return ask(values)
}
