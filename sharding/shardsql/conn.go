// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
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

// CheckNamedValue leaves arguments as they are: the driver of the database that
// gets the statement is asked when it is known.
func (c *conn) CheckNamedValue(a *driver.NamedValue) error { return value(a) }

// Close gives back what the connection holds. database/sql has ended its transaction
// before.
func (c *conn) Close() error { return c.leaveHome() }

// IsValid is asked before the connection goes back into its pool, where it holds
// nothing.
func (c *conn) IsValid() bool { return c.leaveHome() == nil }

// Prepare is PrepareContext without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext returns the statement. The databases prepare it when it is
// executed for the first time, as only its arguments tell which of them does.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &statement{conn: c, text: query}, nil
}

// QueryContext sends the query where its rows are.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, nil, query, args)
}

// query is QueryContext for a statement that was prepared, or nil.
func (c *conn) query(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Rows, error) {
	o := c.database.observe(ctx, query)
	rows, err := follow(ctx, &c.session, o, query, args, func(p *plan.Plan, to plan.Route) (driver.Rows, error) {
		w, err := c.writing(ctx, st, p, to, args)
		switch {
		case err != nil:
			return nil, err
		case to.Kind == plan.Several || w.models != nil || w.kept != nil:
			return w.returned(ctx, w.parts(to))
		case to.Kind == plan.Copies:
			return w.copiesReturned(ctx, query, to.Target.Table)
		}
		return reading{&c.session, st, args, c.replicas(ctx, p)}.rows(ctx, to)
	})
	c.tx.note(err)
	return o.answered(rows, dialect.Advised(err))
}

// ExecContext sends the statement where its rows are. A query whose rows nobody
// wants is sent to all shards that would answer.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, nil, query, args)
}

// exec is ExecContext for a statement that was prepared, or nil.
func (c *conn) exec(ctx context.Context, st *statement, query string, args []driver.NamedValue) (driver.Result, error) {
	o := c.database.observe(ctx, query)
	if c.tx != nil && len(args) == 0 {
		if verb, name := savepointOf(query); verb != noSavepoint {
			o.atHome()
			return o.executed(c.tx.point(ctx, verb, name, query))
		}
	}
	result, err := follow(ctx, &c.session, o, query, args, func(p *plan.Plan, to plan.Route) (driver.Result, error) {
		w, err := c.writing(ctx, st, p, to, args)
		switch {
		case err != nil:
			return nil, err
		case to.Kind == plan.Scatter:
			return reading{session: &c.session, args: args}.drain(ctx, to.Shards)
		case to.Kind == plan.Several:
			return w.executed(ctx, to.Writes)
		case to.Kind == plan.Copies:
			return w.copies(ctx, query, to.Target.Table)
		}
		return w.one(ctx, to)
	})
	c.tx.note(err)
	return o.executed(result, dialect.Advised(err))
}

// route binds a plan. The text of a statement that stays at home is its own, and its
// target has no database.
func (s *session) route(ctx context.Context, p *plan.Plan, query string, args []driver.NamedValue) (plan.Route, error) {
	memory, _ := values.Get().(*[]any)
	defer values.Put(memory)
	list := slices.Grow(*memory, len(args))
	for _, a := range args {
		list = append(list, a.Value)
	}
	hint := sharding.HintOf(ctx)
	r, err := p.Bind(list, hint) // which keeps none of them
	if err == nil {
		err = s.preview(ctx, p, r, list, hint)
	}
	clear(list)
	*memory = list[:0]
	r.Pooled = r.Kind == plan.One || p.Quiet()
	switch {
	case err != nil:
		return plan.Route{}, err
	case r.Kind == plan.Home:
		r.Text = query
		return r, nil
	}
	return r, numbered(ctx, p)
}

// numbered refuses ids that an adapter made for shards, where the source of a migration
// serves again and numbers its rows itself.
func numbered(ctx context.Context, p *plan.Plan) error {
	table, column := p.Numbers()
	if column == "" {
		return nil
	}
	if h := writehint.Of(ctx, table); len(h.Fresh) == 0 || !strings.EqualFold(h.Column, column) {
		return nil
	}
	return &sharding.RouteError{Op: "insert", Table: table, Column: column, Err: writehint.ErrNumbered, Hint: "send it again without the ids"}
}

// values are memory for the arguments of a statement.
var values = sync.Pool{New: func() any { return new([]any) }}
