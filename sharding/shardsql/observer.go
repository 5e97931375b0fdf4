// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// Observer is told what becomes of statements, for logs, metrics and spans; its function
// may be nil, which costs nothing. It is called by whoever executes the statement, so by
// several goroutines at once, and the statement goes on when it returns. It may not use
// the connection or the transaction of the statement.
type Observer struct {
	// Statement: a statement has ended. It is called once for each: when it was refused
	// or failed, when it was executed, and of rows when they are closed, which database/sql
	// does behind the last one. ctx is that of the statement. BEGIN, COMMIT and ROLLBACK
	// are no statements. One that database/sql sends again, as its connection had broken
	// (driver.ErrBadConn), is told once more.
	Statement func(ctx context.Context, s Statement)
}

// Statement is what an [Observer] is told of a statement.
type Statement struct {
	// Text is as the program wrote it, with logical names.
	Text string
	// Fingerprint is the text without values: statements that differ in these alone have
	// the same one. It is "" where the home database could not be asked how it reads SQL,
	// and of savepoints.
	Fingerprint string
	// Kind is Refused where the statement was refused by a *sharding.RouteError, whether it
	// could be told from its text or was found by looking for rows, and "" where it failed
	// before its kind was known. A savepoint is a statement at home.
	Kind Kind
	// Table is the first table of the router that the statement names, or "".
	Table string
	// Targets are the shards, or the databases of the copies, that it was sent to; none
	// of a statement at home.
	Targets []sharding.Target
	// Rows is how many were read, or affected.
	Rows int64
	// Retries is how often it was planned once more, as its table had moved meanwhile.
	Retries int
	// Took is the time from its begin to its end; of rows, until they were closed.
	Took time.Duration
	// Err is what the program got, nil if it succeeded. Rows that were left when the
	// context ended have its error.
	Err error
}

// observation is a statement on its way to an Observer, nil where there is none.
type observation struct {
	tell  func(ctx context.Context, s Statement)
	ctx   context.Context //nolint:containedctx // of the statement, until its rows are closed
	begin time.Time
	of    Statement
}

func (d *database) observe(ctx context.Context, text string) *observation {
	if d.observer.Statement == nil {
		return nil
	}
	return &observation{tell: d.observer.Statement, ctx: ctx, begin: time.Now(), of: Statement{Text: text}}
}

func (o *observation) atHome() {
	if o != nil {
		o.of.Kind = Home
	}
}

// planned is called each time that the statement is planned.
func (o *observation) planned(p *plan.Plan, to plan.Route, d *database) {
	if o == nil {
		return
	}
	if o.of.Fingerprint != "" {
		o.of.Retries++
	}
	o.of.Fingerprint, o.of.Table = p.Fingerprint(), p.Table()
	o.of.Kind, o.of.Targets = kinds[to.Kind], d.targets(to)
}

// targets returns where a statement goes, nil at home.
func (d *database) targets(to plan.Route) (all []sharding.Target) {
	switch to.Kind {
	case plan.One:
		all = append(all, to.Target)
	case plan.Scatter:
		for _, s := range to.Shards.Targets {
			all = append(all, s.Target)
		}
	case plan.Several:
		for _, part := range to.Writes.Parts {
			all = append(all, part.Target)
		}
	case plan.Copies:
		for _, l := range d.copied("", to.Target.Table, nil) {
			all = append(all, l.target)
		}
	}
	return all
}

var kinds = map[plan.Kind]Kind{plan.Home: Home, plan.One: One, plan.Scatter: Scatter, plan.Several: Several, plan.Copies: Copies}

// refused notes that the statement was refused, if that is why it failed.
func (o *observation) refused(err error) {
	if isRefusal(err) {
		o.of.Kind, o.of.Targets = Refused, nil
	}
}

// end tells the observer.
func (o *observation) end(err error) {
	o.of.Took, o.of.Err = time.Since(o.begin), err
	o.tell(o.ctx, o.of)
}

// executed is the end of a statement without rows.
func (o *observation) executed(r driver.Result, err error) (driver.Result, error) {
	if o != nil {
		if r != nil {
			o.of.Rows, _ = r.RowsAffected() // some drivers cannot tell
		}
		o.refused(err)
		o.end(err)
	}
	return r, err
}

// answered is the end of a query that failed, and else the begin of its rows.
func (o *observation) answered(r driver.Rows, err error) (driver.Rows, error) {
	switch {
	case o == nil:
		return r, err
	case err != nil:
		o.refused(err)
		o.end(err)
		return nil, err
	}
	return &observedRows{rows: rows{Rows: r}, observation: o}, nil
}

// observedRows tell an observer when they are closed.
type observedRows struct {
	rows

	observation *observation
	err         error // io.EOF behind the last row
}

func (r *observedRows) Next(dest []driver.Value) error {
	r.err = r.Rows.Next(dest)
	if r.err == nil {
		r.observation.of.Rows++
	}
	return r.err
}

func (r *observedRows) Close() error {
	err := r.Rows.Close()
	switch {
	case isEOF(r.err):
		r.observation.end(err)
	case r.err == nil && err == nil:
		r.observation.end(r.observation.ctx.Err())
	default:
		r.observation.end(errors.Join(r.err, err))
	}
	return err
}
