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

// Result describes what a call wrote.
type Result struct {
	// IDs are the keys of the rows in the order of the argument, generated or preset. IDs is
	// nil when the row type has no keygen tag, or when its keys are no integers. With
	// several tagged fields, IDs are the keys of the first. After an upsert, IDs are the ids
	// that were sent: a row that existed before keeps its own id, and the id generated for
	// it (in IDs and in the struct) belongs to no row. Read such a row by its unique key.
	IDs []int64
	// RowsAffected is the sum over all statements, as the database counts: MySQL counts 2
	// for an upsert that changes a row.
	RowsAffected int64

	last sql.Result
}

// LastInsertId returns the last of IDs. Without IDs it returns what the driver reports for
// the last statement, so that tables numbered by the database work as before. The drivers of
// PostgreSQL return an error in that case.
func (r Result) LastInsertId() (int64, error) {
	switch {
	case len(r.IDs) > 0:
		return r.IDs[len(r.IDs)-1], nil
	case r.last != nil:
		return r.last.LastInsertId()
	}
	return 0, fmt.Errorf("sqlxhook: no statement was executed: %w", ErrNoKey)
}

// call is the state of one call: its rows, the keys filled in them, and its arguments.
type call struct {
	plan   *plan
	rows   rows
	args   args
	cuts   []int // the row numbers at which a batch is cut; nil when it is one statement
	filled filledKeys
}

// prepare fills the keys of the rows and reads their arguments. On an error the rows are
// unchanged.
func (c *call) prepare(ctx context.Context) error {
	p, r := c.plan, &c.rows
	if err := p.accepts(r); err != nil {
		return err
	}
	if err := c.filled.fill(ctx, p.keys, r); err != nil {
		return err
	}
	err := p.collect(&c.args, r)
	if err == nil {
		c.cuts, err = p.onePerStatement(r)
	}
	if err != nil {
		c.filled.undo(r)
		return err
	}
	if c.cuts == nil {
		c.cuts = p.cut(r.n, &c.args)
	}
	return nil
}

// exec sends the call's statements. It takes the generated keys out of the rows again only
// if it is certain that no statement did anything. sent reports the opposite: that one may
// have.
func (c *call) exec(ctx context.Context, e Execer) (res Result, sent bool, err error) {
	res, sent, err = c.send(ctx, e)
	if err != nil && !sent {
		c.filled.undo(&c.rows)
		return Result{}, false, err
	}
	res.IDs = ids(c.plan.keys, &c.rows)
	return res, sent, err
}

// send executes the statements. It begins a transaction if there are several statements and
// e is an *sqlx.DB. sent reports whether a statement may have done anything.
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
	var partial *PartialError
	if errors.As(err, &partial) {
		err = partial.Err // none of its rows remain
	}
	rolled := tx.Rollback()
	if rolled != nil && !errors.Is(rolled, sql.ErrTxDone) {
		err = errors.Join(err, rolled)
	}
	return Result{}, sent && (rolled != nil || !didNothing(err)), err
}

// sendAll executes the statements on e, one after another.
func (c *call) sendAll(ctx context.Context, e Execer) (Result, bool, error) {
	cuts := c.cuts
	if cuts == nil {
		cuts = []int{c.rows.n}
	}
	var sum Result
	from := 0
	for _, to := range cuts {
		res, err := c.execute(ctx, e, from, to)
		if err != nil && from > 0 {
			return sum, true, &PartialError{Done: from, Err: err}
		}
		if err != nil {
			return Result{}, mayHaveActed(err), err
		}
		c.storeNumber(from, res)
		sum.RowsAffected += res.RowsAffected
		sum.last = res.last
		from = to
	}
	return sum, true, nil
}

// withHint tells package shardsql which rows of a statement have newly generated ids. A
// statement that looks for existing rows need not look for these ids. And if the source of a
// migration serves again, it may number these rows itself.
func (c *call) withHint(ctx context.Context, from, to int) context.Context {
	made, stmt, t := &c.filled.first, c.plan.stmt, c.plan.table
	if t != nil && c.plan.numbered != nil {
		return writehint.With(ctx, writehint.Hint{Table: stmt.table, Fills: true})
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

// execute sends the statement for rows[from:to].
func (c *call) execute(ctx context.Context, e Execer, from, to int) (Result, error) {
	text, args := c.statement(from, to)
	ctx = c.withHint(ctx, from, to)
	if d := c.plan.defaults; d != nil && d.returnsKey && d.text == text {
		return execReturning(ctx, e, text, args)
	}
	res, err := e.ExecContext(ctx, text, args...)
	if err != nil {
		return Result{}, err
	}
	n, err := res.RowsAffected()
	return Result{RowsAffected: n, last: res}, err
}

// mayHaveActed reports whether a failed statement may have done anything. A transaction or
// connection that was closed before the call sends nothing.
func mayHaveActed(err error) bool {
	return !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, sql.ErrConnDone) && !didNothing(err)
}

// didNothing reports whether err proves that the statement did nothing: either its table is
// missing, or it was refused before it was sent.
func didNothing(err error) bool {
	var refused *sharding.RouteError
	return errors.As(err, &refused) || dialect.FaultOf(err) == dialect.NoTable
}

// query sends the call's only statement, which returns rows.
func (c *call) query(ctx context.Context, q Queryer) (*sqlx.Rows, error) {
	if c.cuts != nil {
		c.filled.undo(&c.rows)
		return nil, fmt.Errorf("%w: %d rows need %d statements, the first of %d rows, and a query is one; pass fewer", ErrTooManyRows, c.rows.n, len(c.cuts), c.cuts[0])
	}
	text, args := c.statement(0, c.rows.n)
	found, err := q.QueryxContext(c.withHint(ctx, 0, c.rows.n), text, args...)
	if err != nil && !mayHaveActed(err) {
		c.filled.undo(&c.rows)
	}
	return found, err
}
