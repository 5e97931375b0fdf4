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

// inner is a connection of a pool behind the database.
type inner struct {
	conn *sql.Conn
	kept *kept // nil where one statement has the connection, and releases it
}

// kept is what belongs to a connection that a transaction, or a session at home, holds
// from statement to statement.
type kept struct{ prepared map[preparedFor]driver.Stmt }

// held returns the connection that c holds to a database: that of a transaction, or of
// its session at home.
func (c *conn) held(t *transaction, pool *sql.DB) (in inner, ok bool) {
	if b := t.has(pool); b != nil {
		return b.inner, true
	}
	return c.home, c.home.conn != nil && pool == c.database.home
}

// beside returns the connection that c holds to a database, or one of its pool. It begins
// neither a transaction nor a session there.
func (c *conn) beside(ctx context.Context, t *transaction, pool *sql.DB) (inner, error) {
	if in, ok := c.held(t, pool); ok {
		return in, nil
	}
	conn, err := c.database.connect(ctx, pool)
	return inner{conn: conn}, err
}

// inner returns the connection that a statement for a database is sent on. In a
// transaction that begins there. At home it is that of c's session, which stays with c
// until c goes back into its pool: on a *sql.Conn its variables, locks and temporary
// tables are there for the next statement.
func (c *conn) inner(ctx context.Context, pool *sql.DB) (inner, error) {
	if c.tx != nil {
		b, err := c.tx.join(ctx, pool)
		if err != nil {
			return inner{}, err
		}
		return b.inner, nil
	}
	in, err := c.beside(ctx, nil, pool)
	if err == nil && pool == c.database.home {
		in.kept = &c.atHome
		c.home = in
	}
	return in, err
}

// place returns the connection for a statement that goes to one place. What no row
// satisfies is asked beside a transaction that has not begun there: it neither binds the
// transaction to a database nor is refused for being on another one.
func (c *conn) place(ctx context.Context, to plan.Route, pool *sql.DB) (inner, error) {
	if to.Nowhere && c.tx != nil && c.tx.broken == nil {
		return c.beside(ctx, c.tx, pool)
	}
	return c.inner(ctx, pool)
}

// on returns what a question besides is asked on.
func (c *conn) on(pool *sql.DB) dialect.Querier {
	if in, ok := c.held(c.tx, pool); ok {
		return in.conn
	}
	return pool
}

// leaveHome ends c's session there.
func (c *conn) leaveHome() error {
	home := c.home
	if c.home = (inner{}); home.conn == nil {
		return nil
	}
	return home.leave()
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

func (d *database) poolOrHome(name string) *sql.DB {
	if name == "" {
		return d.home
	}
	return d.pool(name)
}

// release gives the connection back, unless somebody holds it.
func (i inner) release() error {
	if i.kept != nil {
		return nil
	}
	return i.conn.Close()
}

// leave gives a connection back that was held. One that has broken is closed already.
func (i inner) leave() error {
	var err error
	if len(i.kept.prepared) > 0 {
		err = i.conn.Raw(func(any) error { return i.kept.close(nil) })
	}
	if err = both(err, i.conn.Close()); errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// raw is sql.Conn.Raw. One that has broken goes on saying so, as a driver's own does:
// database/sql sends a prepared statement again, and tells the last error.
func (i inner) raw(f func(any) error) error {
	err := i.conn.Raw(f)
	if errors.Is(err, sql.ErrConnDone) {
		return driver.ErrBadConn
	}
	return err
}

// query returns rows that keep the connection until they are closed. of is the prepared
// statement that asks, or nil.
func (i inner) query(ctx context.Context, of *statement, text string, args []driver.NamedValue) (driver.Rows, error) {
	r := &rows{inner: i}
	err := i.raw(func(raw any) (err error) {
		r.Rows, r.statement, err = send(ctx, querying, call{raw.(driver.Conn), i.kept, of, text, args, &r.arguments})
		return err
	})
	if err != nil {
		return nil, both(err, i.release())
	}
	return r, nil
}

// exec is query for a statement without rows.
func (i inner) exec(ctx context.Context, of *statement, text string, args []driver.NamedValue) (result driver.Result, err error) {
	var memory arguments
	err = i.raw(func(raw any) error {
		r, own, err := send(ctx, executing, call{raw.(driver.Conn), i.kept, of, text, args, &memory})
		result = r
		if own != nil {
			err = both(err, own.Close())
		}
		return err
	})
	return result, both(err, i.release())
}

// run executes a text without arguments.
func (i inner) run(ctx context.Context, text string) error {
	_, err := i.exec(ctx, nil, text, nil)
	return err
}
