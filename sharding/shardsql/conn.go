// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// conn is a connection of the outer database.
type conn struct{ session }

var (
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
)

// CheckNamedValue does not convert arguments. The driver of the database that executes the
// statement converts them once the database is known.
func (c *conn) CheckNamedValue(a *driver.NamedValue) error { return inner.CallValuer(a) }

// Close closes the connection at home that the session still holds: database/sql does not return this one to its pool, for example
// because a program discards the state of its session, which no other session may get. It has ended its transaction before.
func (c *conn) Close() error {
	if c.home.SQL != nil {
		_ = c.home.SQL.Raw(func(any) error { return driver.ErrBadConn })
	}
	return c.releaseHome()
}

// IsValid is called before the connection returns to its pool, where it must hold no other
// connection.
func (c *conn) IsValid() bool { return c.releaseHome() == nil }

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext returns the statement. The databases prepare it at its first execution, because
// its arguments determine which databases execute it.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &statement{conn: c, text: query}, nil
}

// QueryContext sends the query to the databases that have its rows.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, nil, query, args)
}

// query implements QueryContext; st is the prepared statement, or nil.
func (c *conn) query(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Rows, error) {
	o := c.database.observe(ctx, query)
	if done, _, err := c.savepoint(ctx, o, query, args); done {
		return o.answered(&resultset.Held{}, err)
	}
	held := c.home.SQL
	rows, err := c.read(ctx, st, o, query, args)
	if err != nil {
		rows, err = replacing(c, held, err, func() (driver.Rows, error) { return c.read(ctx, st, o, query, args) })
	}
	return o.answered(rows, err)
}

// read sends a query, with the results of its subqueries or the elements of its arrays if necessary.
func (c *conn) read(ctx context.Context, st *statement, o *observation, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.ask(ctx, st, o, query, args)
	if err == nil || !isRefusal(err) {
		return rows, err
	}
	return rewritten(ctx, c, o, query, args, c.read, func() (driver.Rows, error) { return subqueries{c}.ask(ctx, st, o, query, args, err) })
}

// rewritten sends a statement that was refused in another form: an INSERT of the elements of arrays as an INSERT of rows, other
// statements by asking their subqueries first.
func rewritten[T any](ctx context.Context, c *conn, o *observation, query string, args []driver.NamedValue,
	send func(context.Context, *statement, *observation, string, []driver.NamedValue) (T, error), askFirst func() (T, error),
) (answer T, err error) {
	text, left, unnested, err := c.unnested(ctx, query, args)
	switch {
	case err != nil:
		return answer, err
	case !unnested:
		return askFirst()
	}
	o.whileOther(func() { answer, err = send(ctx, nil, o, text, left) })
	return answer, err
}

// unnested returns an INSERT of the elements of arrays as plan.Unnested does.
func (c *conn) unnested(ctx context.Context, query string, args []driver.NamedValue) (text string, left []driver.NamedValue, ok bool, err error) {
	made, _, err := c.planned(ctx, query)
	if err != nil || len(args) > 0 && args[0].Name != "" {
		return "", nil, false, err
	}
	text, list, ok := plan.Unnested(made.Plan, unwrapped(args))
	left = named(list)
	for i := range left {
		err = cmp.Or(err, inner.CallValuer(&left[i]))
	}
	return text, left, ok, err
}

func (c *conn) ask(ctx context.Context, st *statement, o *observation, query string, args []driver.NamedValue) (driver.Rows, error) {
	return follow(ctx, &c.session, o, query, args, func(p *plan.Plan, to *plan.Route) (driver.Rows, error) {
		if p.Statement.Verb != sqlparse.Select {
			if rows, done, err := c.returned(ctx, st, p, to, args); done {
				return rows, err
			}
		}
		r := reading{session: &c.session, of: st, args: args, from: c.replicas(ctx, p), singles: p.Singles}
		if st == once {
			r.of, r.each = nil, once
		}
		rows, err := r.rows(ctx, to)
		if logical := plan.Labels(p, to); logical != nil && err == nil {
			return resultset.Relabel(rows, logical), nil
		}
		return rows, err
	})
}

// returned executes a write that returns rows, unless one database can execute it like a query.
func (c *conn) returned(ctx context.Context, st *statement, p *plan.Plan, to *plan.Route, args []driver.NamedValue) (rows driver.Rows, done bool, err error) {
	w, err := c.writing(ctx, st, p, to, args)
	switch {
	case err != nil:
	case to.Kind == plan.Several || w.models != nil || w.kept != nil:
		rows, err = w.returned(ctx, w.parts(to))
	case to.Kind == plan.Copies:
		rows, err = w.copiesReturned(ctx, to)
	default:
		return nil, false, nil
	}
	return rows, true, err
}

// ExecContext sends the statement to the databases that have its rows. A query whose rows are not
// read is executed on all its shards.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, nil, query, args)
}

// exec implements ExecContext; st is the prepared statement, or nil.
func (c *conn) exec(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Result, error) {
	o := c.database.observe(ctx, query)
	if done, result, err := c.savepoint(ctx, o, query, args); done {
		return o.executed(result, err)
	}
	held := c.home.SQL
	result, err := c.send(ctx, st, o, query, args)
	if err != nil {
		result, err = replacing(c, held, err, func() (driver.Result, error) { return c.send(ctx, st, o, query, args) })
	}
	return o.executed(result, err)
}

func (c *conn) send(ctx context.Context, st *statement, o *observation, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := follow(ctx, &c.session, o, query, args, func(p *plan.Plan, to *plan.Route) (driver.Result, error) {
		w, err := c.writing(ctx, st, p, to, args)
		switch {
		case err != nil:
			return nil, err
		case to.Kind == plan.Scatter:
			return reading{session: &c.session, args: args}.drain(ctx, to)
		case to.Kind == plan.Several:
			return w.executed(ctx, to.Writes)
		case to.Kind == plan.Copies:
			return copies(ctx, w, w.copied(to), to.Target.Table, affected)
		}
		return w.one(ctx, to)
	})
	if err == nil || !isRefusal(err) {
		return result, err
	}
	return rewritten(ctx, c, o, query, args, c.send, func() (driver.Result, error) { return subqueries{c}.drain(ctx, o, query, args, err) })
}

// A server that restarts breaks all connections of its pool. database/sql sends a statement on two of one table's
// pool, and then on a new connection. It cannot know that of the pools behind an outer connection.

// replacing sends a statement that has failed again while its connections were broken before it. held is the connection at
// home that the session had before it. It returns the last error with advice.
func replacing[T any](c *conn, held *sql.Conn, err error, send func() (T, error)) (answer T, _ error) {
	for left := c.replaceable(err); left > 0 && c.isReplaced(held, err); left-- {
		answer, err = send()
	}
	c.tx.RecordError(err)
	return answer, dialect.Advised(err)
}

// replaceable returns how often a statement may be sent again whose connection was broken before it.
func (c *conn) replaceable(err error) int {
	if err == nil || c.tx != nil || !errors.Is(err, driver.ErrBadConn) {
		return 0
	}
	return c.database.idle() + 1
}

// isReplaced reports whether the next attempt has other connections; held is the one at home that the session had
// before the statement.
func (c *conn) isReplaced(held *sql.Conn, err error) bool {
	if !errors.Is(err, driver.ErrBadConn) || isUnreachable(err) {
		return false
	}
	if held == nil {
		_ = leaveHome(&c.session) // the error of a broken connection does not matter
		return true
	}
	return c.home.Valid()
}

func (s *session) route(ctx context.Context, p *plan.Plan, args []driver.NamedValue) (*plan.Route, error) {
	list := s.memory.TakeValues(len(args))
	for _, a := range args {
		list = append(list, a.Value)
	}
	hint := sharding.HintOf(ctx)
	to, err := p.Bind(list, hint) // it does not keep the list
	if err == nil {
		err = s.preview(ctx, p, to, list, hint)
	}
	s.memory.KeepValues(list)
	if err == nil && to.Kind != plan.Home {
		err = numbered(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return to, nil
}

// numbered refuses ids that an adapter generated for shards if the source of a migration serves the
// table again and numbers its rows itself.
func numbered(ctx context.Context, p *plan.Plan) error {
	table, column := p.Numbers()
	if column == "" {
		return nil
	}
	if h := writehint.Of(ctx, table); len(h.Fresh) == 0 || !strings.EqualFold(h.Column, column) {
		return nil
	}
	return &sharding.RouteError{Op: "insert", Table: table, Column: column, Err: writehint.ErrNumbered, Hint: "send the INSERT again without the ids"}
}
