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

// request is a statement as the program sends it.
type request struct {
	statement *statement // the prepared statement, or nil
	observed  *observation
	text      string
	args      []driver.NamedValue
	final     bool // its refusal is the answer; otherwise its subqueries are tried to be executed first
}

// isNamed reports whether the arguments have names.
func (r request) isNamed() bool { return len(r.args) > 0 && r.args[0].Name != "" }

// query is QueryContext of a prepared statement, or of none.
func (c *conn) query(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Rows, error) {
	r := request{statement: st, observed: c.database.observe(ctx, query), text: query, args: args}
	if done, _, err := c.savepoint(ctx, r); done {
		return r.observed.answered(&resultset.Held{}, err)
	}
	rows, err := replacing(ctx, c, r, c.read)
	return r.observed.answered(rows, err)
}

// read sends a query, with the results of its subqueries or the elements of its arrays if necessary.
func (c *conn) read(ctx context.Context, r request) (driver.Rows, error) {
	rows, err := c.queryAsIs(ctx, r)
	if err == nil || !mayRewrite(err) {
		return rows, err
	}
	return rewritten(ctx, c, r, c.read, func() (driver.Rows, error) { return subqueries{c}.query(ctx, r, err) })
}

// rewritten sends a statement that was refused in another form: an INSERT of the elements of arrays as an INSERT of rows, other
// statements by asking their subqueries first.
func rewritten[T any](ctx context.Context, c *conn, r request, send func(context.Context, request) (T, error), askFirst func() (T, error)) (answer T, err error) {
	rows, unnested, err := c.unnested(ctx, r)
	switch {
	case err != nil:
		return answer, err
	case !unnested:
		return askFirst()
	}
	r.observed.whileOther(func() { answer, err = send(ctx, rows) })
	return answer, err
}

// unnested returns an INSERT of the elements of arrays as plan.Unnested does.
func (c *conn) unnested(ctx context.Context, r request) (rows request, ok bool, err error) {
	made, _, err := c.planned(ctx, r.text)
	if err != nil || r.isNamed() {
		return request{}, false, err
	}
	text, list, ok := plan.Unnested(made.Plan, unwrapped(r.args))
	rows = request{observed: r.observed, text: text, args: named(list)}
	for i := range rows.args {
		err = cmp.Or(err, inner.CallValuer(&rows.args[i]))
	}
	return rows, ok, err
}

func (c *conn) queryAsIs(ctx context.Context, r request) (driver.Rows, error) {
	return follow(ctx, &c.session, r, func(e execution) (driver.Rows, error) {
		p, to := e.plan, e.to
		if !p.Statement.ReadsOnly() {
			if rows, done, err := e.returned(ctx); done {
				return rows, err
			}
		}
		read := reading{execution: e, from: c.replicas(ctx, p)}
		if read.from != nil && areMoving(e) { // a copy may lack rows that have moved
			read.from = nil
		}
		if r.statement == once {
			read.statement, read.each = nil, once
		}
		rows, err := read.rows(ctx)
		if err != nil {
			return nil, err
		}
		if p.Routed && p.Single() && p.Statement.Verb != sqlparse.Select {
			if rows, err = readWritten(rows, func() error { return refusedAfter(e) }); err != nil {
				return nil, err
			}
		}
		if logical := plan.Labels(p, to); logical != nil {
			rows = resultset.Relabel(rows, logical)
		}
		return rows, nil
	})
}

// returned executes a write that returns rows, unless one database can execute it like a query.
func (e execution) returned(ctx context.Context) (rows driver.Rows, done bool, err error) {
	w, err := e.writing(ctx)
	switch {
	case err != nil:
	case e.to.Kind == plan.Several || e.to.Kind == plan.Copies || w.models != nil || w.kept != nil || needsTransaction(e, true):
		rows, err = w.returned(ctx)
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

// exec is ExecContext of a prepared statement, or of none.
func (c *conn) exec(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Result, error) {
	r := request{statement: st, observed: c.database.observe(ctx, query), text: query, args: args}
	if done, result, err := c.savepoint(ctx, r); done {
		return r.observed.executed(result, err)
	}
	result, err := replacing(ctx, c, r, c.send)
	return r.observed.executed(result, err)
}

func (c *conn) send(ctx context.Context, r request) (driver.Result, error) {
	result, err := follow(ctx, &c.session, r, func(e execution) (driver.Result, error) {
		if e.to.Kind == plan.Scatter {
			return reading{execution: e}.drain(ctx)
		}
		w, err := e.writing(ctx)
		switch {
		case err != nil:
			return nil, err
		case e.to.Kind == plan.Several, e.to.Kind == plan.Copies:
			return w.executed(ctx)
		}
		return w.one(ctx)
	})
	if err == nil || !mayRewrite(err) {
		return result, err
	}
	return rewritten(ctx, c, r, c.send, func() (driver.Result, error) { return subqueries{c}.drain(ctx, r, err) })
}

// A server that restarts breaks all connections of its pool. database/sql sends a statement on two of one table's
// pool, and then on a new connection. It cannot know that of the pools behind an outer connection.

// replacing sends a statement, and again while it fails because its connections were broken before it. It returns the last
// error with advice.
func replacing[T any](ctx context.Context, c *conn, r request, send func(context.Context, request) (T, error)) (T, error) {
	held := c.home.SQL
	answer, err := send(ctx, r)
	if err == nil {
		return answer, nil
	}
	left := 0
	if c.tx == nil && errors.Is(err, driver.ErrBadConn) {
		left = c.database.idle() + 1
	}
	for ; left > 0 && c.isReplaced(held, err); left-- {
		answer, err = send(ctx, r)
	}
	if !c.inside || !errors.Is(err, sharding.ErrSlotMoving) { // the statement to which it belongs begins again as a whole
		c.tx.RecordError(err)
	}
	return answer, dialect.Advised(err)
}

// isReplaced reports whether the next attempt has other connections; held is the one at home before the statement.
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
		err = admitFanOut(s.database.router, to)
	}
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
