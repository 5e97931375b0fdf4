package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// inner is a connection of a pool behind the database, in use by one statement or
// held by a transaction.
type inner struct {
	conn *sql.Conn
	kept bool // by a transaction: the statement does not release it
}

// inner returns a connection to a database for one statement: that of the
// transaction, or one of its pool.
func (c *conn) inner(ctx context.Context, pool string) (inner, error) {
	if c.tx != nil {
		return c.tx.on(ctx, pool)
	}
	if pool == "" || pool == c.database.homeName {
		return c.atHome(ctx)
	}
	conn, err := c.database.connect(ctx, c.database.poolOrHome(pool))
	if err != nil {
		return inner{}, err
	}
	return inner{conn: conn}, nil
}

// connect returns a connection of a pool, which is set up as the home database is. An
// error says which database could not be reached; what a database answers later is the
// driver's own error, as programs and libraries assert its type.
func (d *database) connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.nameOf(pool), err)
	}
	if err := d.agrees(ctx, pool, conn); err != nil {
		return nil, both(err, conn.Close())
	}
	return conn, nil
}

// both joins two errors. One alone stays what it is: programs and libraries assert the
// types of their driver's errors.
func both(err, other error) error {
	switch {
	case other == nil:
		return err
	case err == nil:
		return other
	}
	return errors.Join(err, other)
}

// place returns a connection for a statement that goes to one place. What no row
// satisfies is asked beside a transaction that has not begun there: it neither binds the
// transaction to a database nor is refused for being on another one.
func (c *conn) place(ctx context.Context, to plan.Route) (inner, error) {
	pool := c.database.poolOrHome(to.Target.DB)
	if !to.Nowhere || c.tx == nil || c.tx.broken != nil || c.tx.has(pool) != nil {
		return c.inner(ctx, to.Target.DB)
	}
	conn, own, err := c.session(ctx, pool)
	return inner{conn: conn, kept: !own}, err
}

// atHome returns the connection to the home database, which stays with c until c goes
// back into its pool: on a *sql.Conn a session goes on from statement to statement, with
// its variables, locks and temporary tables.
func (c *conn) atHome(ctx context.Context) (inner, error) {
	if c.home == nil {
		home, err := c.database.home.Conn(ctx)
		if err != nil {
			return inner{}, err
		}
		c.home = home
	}
	return inner{conn: c.home, kept: true}, nil
}

// session returns the connection of c's session at home, if it has one there, or else a
// connection of the pool, which is the caller's own.
func (c *conn) session(ctx context.Context, pool *sql.DB) (conn *sql.Conn, own bool, err error) {
	if c.home != nil && pool == c.database.home {
		return c.home, false, nil
	}
	conn, err = c.database.connect(ctx, pool)
	return conn, true, err
}

// on returns what a question besides is asked on.
func (c *conn) on(pool *sql.DB) dialect.Querier {
	switch b := c.tx.has(pool); {
	case b != nil:
		return b.inner.conn
	case c.home != nil && pool == c.database.home:
		return c.home
	}
	return pool
}

// leaveHome gives that connection back.
func (c *conn) leaveHome() error {
	home := c.home
	if c.home = nil; home == nil {
		return nil
	}
	if err := home.Close(); !errors.Is(err, sql.ErrConnDone) { // a broken one is closed already
		return err
	}
	return nil
}

func (d *database) poolOrHome(name string) *sql.DB {
	if name == "" {
		return d.home
	}
	return d.pool(name)
}

// release gives the connection back, unless a transaction goes on with it.
func (i inner) release() error {
	if i.kept {
		return nil
	}
	return i.conn.Close()
}

// query returns rows that keep the connection until they are closed.
func (i inner) query(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	r := &rows{inner: i}
	err := i.conn.Raw(func(raw any) (err error) {
		r.Rows, r.statement, err = queryRaw(ctx, raw.(driver.Conn), text, args, &r.arguments)
		return err
	})
	if err != nil {
		return nil, both(err, i.release())
	}
	return r, nil
}

func (i inner) exec(ctx context.Context, text string, args []driver.NamedValue) (result driver.Result, err error) {
	err = i.conn.Raw(func(raw any) (err error) {
		result, err = execRaw(ctx, raw.(driver.Conn), text, args)
		return err
	})
	if released := i.release(); err == nil {
		err = released
	}
	return result, err
}

// queryRaw does what database/sql does with a driver's connection. The statement is
// to be closed after the rows, where the driver needed one.
func queryRaw(ctx context.Context, on driver.Conn, text string, args []driver.NamedValue, memory *arguments) (driver.Rows, driver.Stmt, error) {
	if q, ok := on.(driver.QueryerContext); ok {
		checked, err := memory.checked(on, nil, args)
		if err != nil {
			return nil, nil, err
		}
		if rows, err := q.QueryContext(ctx, text, checked); !errors.Is(err, driver.ErrSkip) {
			return rows, nil, err
		}
	}
	st, err := prepareRaw(ctx, on, text)
	if err != nil {
		return nil, nil, err
	}
	rows, err := queryStatement(ctx, on, st, args, memory)
	if err != nil {
		return nil, nil, both(err, st.Close())
	}
	return rows, st, nil
}

func queryStatement(ctx context.Context, on driver.Conn, st driver.Stmt, args []driver.NamedValue, memory *arguments) (driver.Rows, error) {
	checked, err := memory.checked(on, st, args)
	if err != nil {
		return nil, err
	}
	if q, ok := st.(driver.StmtQueryContext); ok {
		return q.QueryContext(ctx, checked)
	}
	values, err := unnamed(ctx, checked)
	if err != nil {
		return nil, err
	}
	return st.Query(values) //nolint:staticcheck // drivers without contexts have nothing else
}

func execRaw(ctx context.Context, on driver.Conn, text string, args []driver.NamedValue) (result driver.Result, err error) {
	var memory arguments
	if e, ok := on.(driver.ExecerContext); ok {
		checked, err := memory.checked(on, nil, args)
		if err != nil {
			return nil, err
		}
		if result, err := e.ExecContext(ctx, text, checked); !errors.Is(err, driver.ErrSkip) {
			return result, err
		}
	}
	st, err := prepareRaw(ctx, on, text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := st.Close(); err == nil {
			err = closed
		}
	}()
	checked, err := memory.checked(on, st, args)
	if err != nil {
		return nil, err
	}
	if e, ok := st.(driver.StmtExecContext); ok {
		return e.ExecContext(ctx, checked)
	}
	values, err := unnamed(ctx, checked)
	if err != nil {
		return nil, err
	}
	return st.Exec(values) //nolint:staticcheck // drivers without contexts have nothing else
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

// unnamed returns the arguments of a driver that knows neither names nor contexts.
func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("shardsql: the driver does not support named parameters")
		}
		values[i] = a.Value
	}
	return values, nil
}
