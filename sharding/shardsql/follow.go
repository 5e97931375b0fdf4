// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// The source of a sharding.Migration serves the table first, the shards serve it after the switch,
// and the source serves it again after a rollback. A switch or a rollback closes the old table
// before it opens the new one, and does not notify this process: a statement that comes too late
// fails because its table is missing. Such a statement did nothing, so it is planned and sent
// again, unless its text may contain several statements.

// execution is a statement with its route. Everything that executes a part of it has one.
type execution struct {
	session   *session
	statement *statement // the prepared statement, or nil
	args      []driver.NamedValue
	plan      *plan.Plan
	to        *plan.Route
	beside    bool // others are executed at the same time, which may use the connections of the session's transaction
}

// follow plans a statement and sends it, and repeats that when the statement finds its table
// closed.
func follow[T any](ctx context.Context, on *session, r request, send func(execution) (T, error)) (T, error) {
	waits := slotWait{home: on.home.SQL}
	for {
		var none T
		made, s, err := on.planned(ctx, r.text)
		if err != nil {
			return none, err
		}
		if r.isNamed() {
			made.Arrange(r.args)
		}
		p, to, err := on.bound(ctx, made.Plan, r.args)
		r.observed.planned(p, to, on.database)
		if err != nil {
			err = unbound(ctx, on, r, made, s, made.orCause(err, len(r.args)))
			if err = waits.outlast(ctx, on, p, s, err); err != nil {
				return none, err
			}
			continue
		}
		e := execution{session: on, statement: r.statement, args: r.args, plan: p, to: to}
		if err := e.admit(ctx, r.text, made.effects); err != nil {
			return none, err
		}
		done, err := none, on.lookUp(ctx, p, e.to, r.args)
		if err == nil {
			done, err = send(e)
		}
		if err == nil {
			markUsed(on)
			noteLocks(e, done)
			on.history.remember(on, p, e.to, r.text, made.effects)
			return done, nil
		}
		e.failed(err)
		if p.Single() && isRefusal(err) && on.reconsiders(ctx, made, s) {
			continue
		}
		if !p.Routed || !p.Single() {
			return none, err
		}
		err = on.awaitMove(ctx, s, sharding.SlotMoving(err))
		if err = waits.outlast(ctx, on, p, s, err); err != nil {
			return none, err
		}
	}
}

// admit refuses a statement that its session or its transaction must not send, and chooses the database of one that any can execute.
func (e *execution) admit(ctx context.Context, text string, does *effects.Effects) (err error) {
	if e.to, err = e.session.history.admit(e.session, e.to, text, does); err != nil {
		return err
	}
	return overtaken(ctx, *e, plan.First(e.plan))
}

// planned returns the plan of a text and the snapshot that it was made for. A transaction that may
// hold locks does not wait for a switch, because the switch may wait for these locks. Behind a BEGIN in a
// text, routes that were never read are read, as they are by BeginTx.
func (s *session) planned(ctx context.Context, query string) (*planned, *sharding.Snapshot, error) {
	router := s.database.router
	of := router.Snapshot()
	p, err := schemaReader{s, of}.plan(ctx, query)
	if err == nil && s.tx != nil {
		s.tx.planned = true
	}
	if err != nil || !p.Routed || s.tx.began() || s.history.isOpen() && !router.Unread() {
		return p, of, err
	}
	if err := router.Load(ctx); err != nil {
		return nil, nil, err
	}
	if now := router.Snapshot(); now != of {
		of = now
		p, err = schemaReader{s, of}.plan(ctx, query)
	}
	return p, of, err
}

// mayPullOut reports whether a refused query may be answered by executing its subqueries first. Then the refusal says nothing about
// columns or routes that are to be read again.
func mayPullOut(p *planned, refusal error) bool {
	return isRefusal(refusal) && !isOutdated(refusal) && len(p.subqueries()) > 0
}

// isRefusal reports whether a statement was refused; it then did nothing.
func isRefusal(err error) bool {
	var refusal *sharding.RouteError
	return errors.As(err, &refusal)
}

// reconsiders reports whether a refused statement must be planned again: because a table was altered, or
// because another database now serves its tables, as the source accepts statements that shards do not. For that
// it waits if columns could not be read because their table was closed.
// It reads nothing in a transaction that has begun, which may hold the only connection of the pool for
// that.
func (s *session) reconsiders(ctx context.Context, p *planned, of *sharding.Snapshot) bool {
	if s.tx.began() {
		return false
	}
	if (schemaReader{s, of}).altered(ctx, p.tables, refusedAge) {
		return true
	}
	switch {
	case !p.Routed:
		return false
	case s.database.router.Snapshot() != of: // slots have moved
		return true
	}
	changed, err := s.database.router.Refresh(ctx, of)
	if err == nil && changed {
		return true
	}
	return p.omitted != nil && s.awaitMove(ctx, of, p.omitted) == nil
}

// unbound returns nil for a statement without a route that must be planned again, and otherwise its final error. A search may
// have found its table closed.
func unbound(ctx context.Context, s *session, r request, p *planned, of *sharding.Snapshot, failed error) error {
	switch {
	case !r.final && mayPullOut(p, failed):
		return failed
	case s.reconsiders(ctx, p, of):
		return nil
	case p.Routed && p.Single():
		return s.awaitMove(ctx, of, failed)
	}
	return failed
}

// awaitMove waits until another database serves the tables of a failed statement, and then returns nil.
// Otherwise it returns the statement's final error. A transaction that has executed nothing begins
// again on the database that now serves the tables.
func (s *session) awaitMove(ctx context.Context, sent *sharding.Snapshot, failed error) error {
	if dialect.FaultOf(failed) != dialect.NoTable || errors.Is(failed, sharding.ErrSlotMoving) {
		return failed
	}
	if !mayBeginAgain(s) {
		return s.database.router.Closed(sent, failed)
	}
	if err := startAgain(s.tx); err != nil {
		return errors.Join(failed, err)
	}
	_, err := s.database.router.Moved(ctx, sent, failed)
	return err
}

// slotWait is how a statement waits while slots that it needs are moving. The zero value has not waited yet.
type slotWait struct {
	home  *sql.Conn // that the session had at home before the statement
	began time.Time
	again time.Duration // after which a statement is sent again that a shard's database has refused
}

// outlast waits until a statement that was refused because slots are moving may be planned again, and returns nil. It returns
// any other error, and nil, as it is. A switch holds slots for a moment, and the map says for how long to wait for
// that; slots that are shared are not waited for, as they stay so until all of their rows are copied. A statement on a lookup table
// does not wait, because the statement to which it belongs may have locked rows: that one begins again.
func (w *slotWait) outlast(ctx context.Context, s *session, p *plan.Plan, sent *sharding.Snapshot, failed error) error {
	if failed == nil || !errors.Is(failed, sharding.ErrSlotMoving) {
		return failed
	}
	t := plan.First(p)
	var refusal *sharding.RouteError
	isHeld := errors.As(failed, &refusal)
	if isHeld {
		if of, known := sent.Lookup(refusal.Table); known { // it may be a lookup table
			t = of
		}
	}
	if t == nil || t.Map.Patience() <= 0 || s.inside || !mayBeginAgain(s) {
		return failed
	}
	var committed *sharding.PartialCommitError
	isPresent := s.database.router.Snapshot() == sent
	if isHeld && len(t.Map.Held()) == 0 && isPresent || errors.As(failed, &committed) || !p.Single() {
		return failed
	}
	if err := startAgain(s.tx); err != nil {
		return errors.Join(failed, err)
	}
	if w.home == nil { // others need it meanwhile, such as the store of the map
		_ = leaveHome(s) // the error of a broken connection does not matter
	}
	if w.began.IsZero() {
		w.began = time.Now()
	}
	limited, cancel := context.WithDeadline(ctx, w.began.Add(t.Map.Patience()))
	defer cancel()
	var resend <-chan time.Time // nil for never: the router itself has refused the statement
	if !isHeld {
		w.again = min(max(2*w.again, 20*time.Millisecond), time.Second)
		soon := time.NewTimer(w.again)
		defer soon.Stop()
		resend = soon.C
	}
	if s.tx != nil {
		defer context.AfterFunc(s.tx.ctx, cancel)()
	}
	select {
	case <-s.database.router.Replaced(sent):
	case <-resend:
	case <-limited.Done():
		cause := context.Cause(ctx)
		if s.tx != nil {
			cause = cmp.Or(cause, context.Cause(s.tx.ctx))
		}
		return &waitedError{failed, cause, time.Since(w.began)}
	}
	return nil
}

// waitedError is that slots were still moving at the end of a wait. Nothing is tried any more.
type waitedError struct {
	failed, cause error // cause is nil at the end of the patience
	waited        time.Duration
}

func (e *waitedError) Error() string {
	text := fmt.Sprintf("%v; waited %s", e.failed, e.waited.Round(time.Millisecond))
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *waitedError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.failed}
	}
	return []error{e.failed, e.cause}
}

// mayRewrite reports whether a refused statement may be sent in another form.
func mayRewrite(err error) bool {
	var waited *waitedError
	return isRefusal(err) && !errors.As(err, &waited)
}

// mayBeginAgain reports whether the session has no transaction that has begun, or one of its own that has executed nothing. After a BEGIN in
// a text it is false, because it is not known what that transaction has locked.
func mayBeginAgain(s *session) bool {
	if s.history.isOpen() {
		return false
	}
	return s.tx == nil || s.tx.ended() == nil && (!s.tx.began() || !s.inside && !s.tx.done)
}

// startAgain rolls back what a transaction that may begin again has begun.
func startAgain(t *transaction) error {
	if !t.began() {
		return nil
	}
	parts := t.parts
	t.parts, t.times = nil, nil
	return rollBack(parts)
}

// began reports whether a transaction has begun on a database.
func (t *transaction) began() bool { return t != nil && len(t.parts) > 0 }

// begunOn returns the name of a database on which the transaction has begun, "" if that is the home
// database or none.
func (t *transaction) begunOn() string {
	if !t.began() || t.has(t.session.database.home) != nil {
		return ""
	}
	return routerName(t.session.database.router, t.parts[0].pool)
}

// failed records that the statement failed. Some of several in one text may have been executed.
func (e *execution) failed(err error) {
	e.session.history.fail(e.session, e.to, err)
	if !e.plan.Single() && !isRefusal(err) {
		markUsed(e.session)
	}
}

// markUsed records that a statement of the session's own transaction was executed.
func markUsed(s *session) {
	if s.tx != nil && !s.inside {
		s.tx.done = true
	}
}

// bound returns the plan with the results of lookup tables, and its route. A statement for several
// databases that reads the clock is planned again with the time of one of them.
func (s *session) bound(ctx context.Context, p *plan.Plan, args []driver.NamedValue) (*plan.Plan, *plan.Route, error) {
	if s.database.server.Name() == "postgres" {
		if err := plan.Surplus(p, len(args)); err != nil {
			return p, nil, err
		}
	}
	for timed := false; ; timed = true {
		found, owners, err := s.withLookups(ctx, p, args)
		if err != nil {
			return p, nil, err
		}
		to, err := s.route(ctx, found, args)
		if err == nil && owners != nil {
			err = (search{s}).strangers(ctx, owners, to)
		}
		if err == nil && len(p.Zones) > 0 {
			err = (zones{s}).check(ctx, p, args, s.database.pools(to))
		}
		if err == nil || timed || len(p.Instants) == 0 || !isRefusal(err) {
			return found, to, err
		}
		if p, err = (clock{s}).inText(ctx, p); err != nil {
			return found, nil, err
		}
	}
}

// NOW() has one value in a statement on one table. Several databases would each compute their own.
// So one of them is asked for the time, which is then written into the text of all.

// clock is the time of one database for the statements of a session.
type clock struct{ *session }

// inText returns the plan of a statement with the time of the database on which the transaction has
// begun, or otherwise of the home database.
func (s clock) inText(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	pool := s.database.home
	if s.tx.began() {
		pool = s.tx.parts[0].pool
	}
	times, err := s.times(ctx, pool, p.Instants)
	if err != nil {
		return nil, fmt.Errorf("shardsql: the time of %s: %w", s.database.nameOf(pool), err)
	}
	all := make([]string, len(p.Instants))
	for i, one := range p.Instants {
		all[i] = times[one.Query]
	}
	return plan.At(p, all), nil
}

// times returns the values of expressions that read the clock, by their queries. On PostgreSQL each of them stays the
// same in a transaction.
func (s clock) times(ctx context.Context, pool *sql.DB, instants []analysis.Instant) (map[string]string, error) {
	known := map[string]string{}
	if s.tx != nil && s.database.server.Name() == "postgres" {
		if s.tx.times == nil {
			s.tx.times = known
		}
		known = s.tx.times
	}
	var queries []string
	for _, one := range instants {
		if known[one.Query] == "" && !slices.Contains(queries, one.Query) {
			queries = append(queries, one.Query)
		}
	}
	if len(queries) == 0 {
		return known, nil
	}
	texts, into := make([]string, len(queries)), make([]any, len(queries))
	for i := range texts {
		into[i] = &texts[i]
	}
	if err := s.on(pool).QueryRowContext(ctx, "SELECT "+strings.Join(queries, ", ")).Scan(into...); err != nil {
		return nil, err
	}
	for i, q := range queries {
		known[q] = texts[i]
	}
	return known, nil
}
