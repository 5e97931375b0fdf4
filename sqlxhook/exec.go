// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
)

// Result tells what a call wrote.
type Result struct {
	// IDs are the keys of the rows in the order of the argument, generated or
	// preset; nil when the rows' type has no keygen tag, or keys that are no
	// integers. With several tagged fields they are those of the first. Of an upsert
	// they are what was sent: a row that was there already keeps its own id, and the
	// one generated for it, here and in the struct, is no row's. Read it by the
	// unique key.
	IDs []int64
	// RowsAffected is the sum over all statements, as the database counts: an
	// upsert that changes a row counts 2 on MySQL.
	RowsAffected int64

	last sql.Result
}

// LastInsertId returns the last of IDs. Without IDs it is what the driver
// reports for the last statement, so that tables numbered by the database are
// as ever; PostgreSQL's drivers return an error then.
func (r Result) LastInsertId() (int64, error) {
	switch {
	case len(r.IDs) > 0:
		return r.IDs[len(r.IDs)-1], nil
	case r.last != nil:
		return r.last.LastInsertId()
	}
	return 0, fmt.Errorf("sqlxhook: no statement was executed: %w", ErrNoKey)
}

// call is one call under way: its rows are filled and its arguments taken.
type call struct {
	plan    *plan
	rows    rows
	args    args
	cuts    []int // behind which rows a batch is cut; nil when it is one statement
	filling filling
}

// prepare fills the rows and takes their arguments. On an error the rows are as
// they were.
func (c *call) prepare(ctx context.Context) error {
	p, r := c.plan, &c.rows
	if err := p.accepts(r); err != nil {
		return err
	}
	if err := c.filling.fill(ctx, p.keys, r); err != nil {
		return err
	}
	err := p.collect(&c.args, r)
	if err == nil {
		c.cuts, err = p.singly(r)
	}
	if err != nil {
		c.filling.undo(r)
		return err
	}
	if c.cuts == nil {
		c.cuts = p.cut(r.n, &c.args)
	}
	return nil
}

// exec sends the call's statements. Only what certainly did nothing is undone;
// sent reports whether that is not so.
func (c *call) exec(ctx context.Context, e Execer) (res Result, sent bool, err error) {
	res, sent, err = c.send(ctx, e)
	if err != nil && !sent {
		c.filling.undo(&c.rows)
		return Result{}, false, err
	}
	res.IDs = ids(c.plan.keys, &c.rows)
	return res, sent, err
}

// send executes the statements, in a transaction if they are several and e is
// no transaction. sent reports whether one may have done anything.
func (c *call) send(ctx context.Context, e Execer) (res Result, sent bool, err error) {
	db, pooled := e.(*sqlx.DB)
	if !pooled || c.cuts == nil {
		return c.sendAll(ctx, e)
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return Result{}, false, err
	}
	res, sent, err = c.sendAll(writehint.With(ctx, writehint.Hint{Table: c.plan.stmt.table, Single: true}), tx)
	if err == nil {
		return res, true, tx.Commit()
	}
	err = whole(err)
	rolled := tx.Rollback()
	if rolled != nil && !errors.Is(rolled, sql.ErrTxDone) {
		err = errors.Join(err, rolled)
	}
	return Result{}, sent && (rolled != nil || !undone(err)), err
}

// whole returns the cause of a PartialError, for batches of which nothing remains,
// so that it was partial is no news.
func whole(err error) error {
	var partial *PartialError
	if errors.As(err, &partial) {
		return partial.Err
	}
	return err
}

func (c *call) sendAll(ctx context.Context, e Execer) (Result, bool, error) {
	if c.cuts == nil {
		res, err := c.execute(ctx, e, 0, c.rows.n)
		if err == nil {
			c.number(0, res)
		}
		return res, err == nil || reached(err), err
	}
	var sum Result
	from := 0
	for _, to := range c.cuts {
		res, err := c.execute(ctx, e, from, to)
		if err != nil && from > 0 {
			return sum, true, &PartialError{Done: from, Err: err}
		}
		if err != nil {
			return Result{}, reached(err), err
		}
		c.number(from, res)
		sum.RowsAffected += res.RowsAffected
		sum.last = res.last
		from = to
	}
	return sum, true, nil
}

// hinted tells package shardsql which rows of a statement have ids that were made just
// now. If it minds rows that are there, it need not look for these; and the source of a
// migration that serves again may number them itself.
func (c *call) hinted(ctx context.Context, from, to int) context.Context {
	made, stmt, t := &c.filling.first, c.plan.stmt, c.plan.table
	if t != nil && c.plan.numbered != nil {
		return writehint.With(ctx, writehint.Hint{Table: stmt.table, Completes: true})
	}
	if t == nil || made.key == nil || !stmt.replaces && stmt.endsWithValues() && t.Unnumbered() == "" {
		return ctx
	}
	var fresh []int
	for _, row := range made.rows {
		if from <= row && row < to {
			fresh = append(fresh, row-from)
		}
	}
	return writehint.With(ctx, writehint.Hint{Table: stmt.table, Column: made.key.column, Fresh: fresh})
}

// execute sends the statement of rows from to to.
func (c *call) execute(ctx context.Context, e Execer, from, to int) (Result, error) {
	text, args := c.statement(from, to)
	ctx = c.hinted(ctx, from, to)
	if c.plan.defaults.returns(text) {
		return returned(ctx, e, text, args)
	}
	res, err := e.ExecContext(ctx, text, args...)
	if err != nil {
		return Result{}, err
	}
	n, err := res.RowsAffected()
	return Result{RowsAffected: n, last: res}, err
}

// reached reports whether a failed statement may have done anything. A handle that
// was closed before sends nothing.
func reached(err error) bool {
	return !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, sql.ErrConnDone) && !undone(err)
}

// undone reports whether err proves that the statement did nothing: its table is missing,
// or it was refused before it was sent.
func undone(err error) bool {
	var refused *sharding.RouteError
	return errors.As(err, &refused) || dialect.FaultOf(err) == dialect.NoTable
}

// query sends the call's only statement.
func (c *call) query(ctx context.Context, q Queryer) (*sqlx.Rows, error) {
	if c.cuts != nil {
		c.filling.undo(&c.rows)
		return nil, fmt.Errorf("%w: %d rows need %d statements, the first of %d rows, and a query is one; pass fewer", ErrTooManyRows, c.rows.n, len(c.cuts), c.cuts[0])
	}
	text, args := c.statement(0, c.rows.n)
	found, err := q.QueryxContext(c.hinted(ctx, 0, c.rows.n), text, args...)
	if err != nil && !reached(err) {
		c.filling.undo(&c.rows)
	}
	return found, err
}
