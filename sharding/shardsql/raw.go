package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
)

// A statement for one shard is sent on the driver's own connection, as database/sql would:
// its rows are the driver's then, and nothing is copied.

// way is how a driver is asked: for rows, or for a result.
type way[T any] struct {
	direct    func(driver.Conn, context.Context, string, []driver.NamedValue) (T, error) // driver.ErrSkip if the driver wants it prepared
	statement func(driver.Stmt, context.Context, []driver.NamedValue) (T, error)
}

var querying = way[driver.Rows]{
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

var executing = way[driver.Result]{
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

// call is a text with its arguments on a driver's connection.
type call struct {
	on     driver.Conn
	kept   *kept      // of the connection, nil where nobody holds it
	of     *statement // the prepared statement that sends it, or nil
	text   string
	args   []driver.NamedValue
	memory *arguments
}

// send does what database/sql does with a driver's connection. own is to be closed after
// the answer, where the driver needed a statement that nobody keeps.
func send[T any](ctx context.Context, w way[T], c call) (answer T, own driver.Stmt, err error) {
	if st := c.kept.find(c.of, c.text); st != nil {
		answer, err = with(ctx, w, c, st)
		return answer, nil, err
	}
	checked, err := c.memory.checked(c.on, nil, c.args)
	if err != nil {
		return answer, nil, err
	}
	if answer, err = w.direct(c.on, ctx, c.text, checked); !errors.Is(err, driver.ErrSkip) {
		return answer, nil, err
	}
	st, err := prepareRaw(ctx, c.on, c.text)
	if err != nil {
		return answer, nil, err
	}
	if answer, err = with(ctx, w, c, st); err != nil {
		return answer, nil, both(err, st.Close())
	}
	if c.kept.keep(c.of, c.text, st) {
		return answer, nil, nil
	}
	return answer, st, nil
}

// with executes a statement that is prepared.
func with[T any](ctx context.Context, w way[T], c call, st driver.Stmt) (answer T, err error) {
	checked, err := c.memory.checked(c.on, st, c.args)
	if err != nil {
		return answer, err
	}
	return w.statement(st, ctx, checked)
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

// unnamed asks a driver that knows neither names nor contexts.
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
