// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Observer is told about statements, for logs, metrics and spans. A nil function costs nothing. The
// goroutine that executes the statement calls the function, so several goroutines may call it at
// once, and the statement continues when it returns. It must not use the connection or the
// transaction of the statement.
type Observer struct {
	// Statement is called once for each statement that has ended: when it was refused, when it
	// failed, when it was executed, and for a query when its rows are closed, which database/sql
	// does after the last row. ctx is the statement's context. BEGIN, COMMIT and ROLLBACK are not
	// statements. If database/sql sends a statement again because its connection had broken
	// (driver.ErrBadConn), Statement is called again.
	Statement func(ctx context.Context, s Statement)

	// ReplicaDown is called when a copy could not be reached, so that it is not asked for five
	// seconds. database and replica are its place in Config.Replicas, ctx is the context of the
	// query that asked for a connection, and err is the pool's error. The query itself succeeds if
	// another copy or the database answers.
	ReplicaDown func(ctx context.Context, database string, replica int, err error)
}

// Statement describes a statement to an [Observer].
type Statement struct {
	// Text is the program's text, with logical names.
	Text string
	// Fingerprint is the text without values: statements that differ only in their values have the
	// same fingerprint. It is "" for savepoints, and if the home database could not be asked for
	// its SQL dialect.
	Fingerprint string
	// Kind is Refused if the statement was refused with a *sharding.RouteError, either by its text
	// or after a search for rows. It is "" if the statement failed before its kind was known. A
	// savepoint has the kind Home. A statement whose shards a lookup table names has the kind of what
	// follows the lookup, and the query of the lookup table is another statement.
	Kind Kind
	// Table is the first table of the router that the statement names, or "".
	Table string
	// Targets are the shards, or the databases of the copies, to which it was sent; none for a
	// statement at home. Those of subqueries that were executed first are not among them: such a
	// subquery is part of its statement.
	Targets []sharding.Target
	// Rows is the number of rows read or affected.
	Rows int64
	// Retries is how often it was planned again because its table had moved or been altered.
	Retries int
	// Took is the time from the statement's start to its end, or until its rows were closed.
	Took time.Duration
	// Err is the error that the program got, nil if the statement succeeded. If the context ended
	// before all rows were read, it is the context's error.
	Err error
}

// observation is a statement that will be reported to an Observer, nil if there is no Observer.
type observation struct {
	tell      func(ctx context.Context, s Statement)
	ctx       context.Context //nolint:containedctx // the statement's, needed until its rows are closed
	begin     time.Time
	statement Statement
}

func (d *database) observe(ctx context.Context, text string) *observation {
	if d.observer.Statement == nil {
		return nil
	}
	return &observation{tell: d.observer.Statement, ctx: ctx, begin: time.Now(), statement: Statement{Text: text}}
}

func (o *observation) atHome() {
	if o != nil {
		o.statement.Kind = Home
	}
}

// planned is called each time that the statement is planned. to is nil if it has no route.
func (o *observation) planned(p *plan.Plan, to *plan.Route, d *database) {
	if o == nil {
		return
	}
	if o.statement.Fingerprint != "" {
		o.statement.Retries++
	}
	o.statement.Fingerprint, o.statement.Table = p.Fingerprint(), p.Table()
	o.statement.Kind, o.statement.Targets = "", nil
	if to != nil {
		o.statement.Kind, o.statement.Targets = Kind(to.Kind.String()), d.targets(to)
	}
}

// whileOther calls do, which executes another text for the statement, and describes the statement by its own text again.
func (o *observation) whileOther(do func()) {
	if o == nil {
		do()
		return
	}
	own := o.statement
	do()
	o.statement.Fingerprint, o.statement.Table, o.statement.Retries = own.Fingerprint, own.Table, own.Retries
}

// ended ends the observation of a statement that has no open rows, as Refused if err is a refusal.
func (o *observation) ended(err error) {
	if isRefusal(err) {
		o.statement.Kind, o.statement.Targets = Refused, nil
	}
	o.end(err)
}

func (o *observation) end(err error) {
	o.statement.Took, o.statement.Err = time.Since(o.begin), err
	o.tell(o.ctx, o.statement)
}

// executed ends the observation of a statement without rows.
func (o *observation) executed(r driver.Result, err error) (driver.Result, error) {
	if o != nil {
		if r != nil {
			o.statement.Rows, _ = r.RowsAffected() // some drivers do not report it
		}
		o.ended(err)
	}
	return r, err
}

// answered ends the observation of a failed query; otherwise it wraps the rows.
func (o *observation) answered(r driver.Rows, err error) (driver.Rows, error) {
	switch {
	case o == nil:
		return r, err
	case err != nil:
		o.ended(err)
		return nil, err
	}
	return &observedRows{Described: resultset.Described{Rows: r}, observation: o}, nil
}

// observedRows call an observer when they are closed.
type observedRows struct {
	resultset.Described

	observation *observation
	err         error // io.EOF after the last row
}

func (r *observedRows) Next(dest []driver.Value) error {
	r.err = r.Rows.Next(dest)
	if r.err == nil {
		r.observation.statement.Rows++
	}
	return r.err
}

func (r *observedRows) Close() error {
	err := r.Rows.Close()
	switch {
	case resultset.IsEOF(r.err):
		r.observation.end(err)
	case r.err == nil && err == nil:
		r.observation.end(r.observation.ctx.Err())
	default:
		r.observation.end(errors.Join(r.err, err))
	}
	return err
}
