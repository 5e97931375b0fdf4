// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// The source of a sharding.Migration serves the table first, the shards serve it after the switch,
// and the source serves it again after a rollback. A switch or a rollback closes the old table
// before it opens the new one, and does not notify this process: a statement that comes too late
// fails because its table is missing. Such a statement did nothing, so it is planned and sent
// again, unless its text may contain several statements.

// follow plans a statement and sends it, and repeats that when the statement finds its table
// closed.
func follow[T any](ctx context.Context, on *session, o *observation, query string, args []driver.NamedValue, send func(*plan.Plan, plan.Route) (T, error)) (T, error) {
	for {
		var none T
		p, s, err := on.planned(ctx, query)
		if err != nil {
			return none, err
		}
		if len(args) > 0 && args[0].Name != "" {
			p.Arrange(args)
		}
		p, to, err := on.bound(ctx, p, query, args)
		o.planned(p, to, on.database)
		if err != nil {
			if on.reconsiders(ctx, p, s) {
				continue
			}
			return none, err
		}
		if err := on.history.admit(on, &to, query); err != nil {
			return none, err
		}
		done, err := none, on.lookUp(ctx, p, to, args)
		if err == nil {
			done, err = send(p, to)
		}
		if err == nil {
			on.tx.markUsed()
			on.history.remember(on, p, to, query)
			return done, nil
		}
		if !p.Routed() || !p.Single() {
			return none, err
		}
		if isRefusal(err) && on.reconsiders(ctx, p, s) {
			continue
		}
		if err := on.awaitMove(ctx, s, sharding.SlotMoving(err)); err != nil {
			return none, err
		}
	}
}

// planned returns the plan of a text and the snapshot that it was made for. A transaction that may
// hold locks does not wait for a switch, because the switch may wait for these locks.
func (s *session) planned(ctx context.Context, query string) (*plan.Plan, *sharding.Snapshot, error) {
	router := s.database.router
	of := router.Snapshot()
	p, err := s.database.plan(ctx, of, query, s.on)
	if err != nil || !p.Routed() || s.tx.began() {
		return p, of, err
	}
	if err := router.Load(ctx); err != nil {
		return nil, nil, err
	}
	if now := router.Snapshot(); now != of {
		of = now
		p, err = s.database.plan(ctx, of, query, s.on)
	}
	return p, of, err
}

// isRefusal reports whether a statement was refused; it then did nothing.
func isRefusal(err error) bool {
	var refusal *sharding.RouteError
	return errors.As(err, &refusal)
}

// reconsiders reports whether a refused statement must be planned again because another database
// now serves its tables: the source accepts statements that shards do not. It reads no route in a
// transaction that has begun, which may hold the only connection of the pool for that.
func (s *session) reconsiders(ctx context.Context, p *plan.Plan, of *sharding.Snapshot) bool {
	if !p.Routed() || s.tx.began() {
		return false
	}
	changed, err := s.database.router.Refresh(ctx, of)
	return err == nil && changed
}

// awaitMove waits until another database serves the tables of a failed statement, and then returns nil.
// Otherwise it returns the statement's final error. A transaction that has executed nothing begins
// again on the database that now serves the tables.
func (s *session) awaitMove(ctx context.Context, sent *sharding.Snapshot, failed error) error {
	if dialect.FaultOf(failed) != dialect.NoTable || errors.Is(failed, sharding.ErrSlotMoving) {
		return failed
	}
	if s.tx.began() {
		if s.tx.done {
			return s.database.router.Closed(sent, failed)
		}
		if err := s.tx.restart(); err != nil {
			return errors.Join(failed, err)
		}
	}
	_, err := s.database.router.Moved(ctx, sent, failed)
	return err
}

// began reports whether a transaction has begun on a database.
func (t *transaction) began() bool { return t != nil && len(t.begun) > 0 }

// begunOn returns the name of a database on which the transaction has begun, "" if that is the home
// database or none.
func (t *transaction) begunOn() string {
	if !t.began() || t.has(t.session.database.home) != nil {
		return ""
	}
	return routerName(t.session.database.router, t.begun[0].pool)
}

// markUsed records that a statement of the transaction was executed.
func (t *transaction) markUsed() {
	if t != nil {
		t.done = true
	}
}

// restart ends a transaction that has executed nothing on its database. It begins again with its
// next statement.
func (t *transaction) restart() error {
	begun := t.begun
	t.begun = nil
	return rollBack(begun)
}
