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

// A table that is being migrated (see sharding.Migration) is served by its source
// first, by its shards after the switch, and by the source again after a rollback.
// Each of these closes the old place before it opens the new one, and nobody tells
// this process: a statement that comes too late fails because its table is missing.
// It has done nothing then, so it is planned and sent once more, unless its text may be
// several statements.

// follow plans a statement and sends it, and again whenever it finds its place closed.
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
		if to.Anywhere {
			to.Target.DB = on.tx.begunOn()
		}
		done, err := none, on.lookUp(ctx, p, to, args)
		if err == nil {
			done, err = send(p, to)
		}
		if err == nil {
			on.tx.used()
			return done, nil
		}
		if !p.Routed() || !p.Single() {
			return none, err
		}
		if isRefusal(err) && on.reconsiders(ctx, p, s) {
			continue
		}
		if err := on.moved(ctx, s, sharding.SlotMoving(err)); err != nil {
			return none, err
		}
	}
}

// planned returns the plan of a text and the snapshot that it was made for. In a
// transaction that holds locks already nobody waits for a switch, which may be
// waiting for these locks.
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

// isRefusal reports whether a statement was refused, and so has done nothing.
func isRefusal(err error) bool {
	var refusal *sharding.RouteError
	return errors.As(err, &refusal)
}

// reconsiders reports whether a statement that is refused is to be planned once more,
// as another place serves its tables: the source accepts what shards do not. In a
// transaction that has begun nothing is read, as it may hold the only connection of the
// pool that would be read through.
func (s *session) reconsiders(ctx context.Context, p *plan.Plan, of *sharding.Snapshot) bool {
	if !p.Routed() || s.tx.began() {
		return false
	}
	changed, err := s.database.router.Refresh(ctx, of)
	return err == nil && changed
}

// moved waits until another place serves the tables of a statement that failed, and
// returns nil then, or the error that the statement ends with. A transaction that has
// done nothing begins once more, wherever that place is.
func (s *session) moved(ctx context.Context, sent *sharding.Snapshot, failed error) error {
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

// begunOn returns the name of a database that the transaction has begun on, "" if that
// is the home database, or none.
func (t *transaction) begunOn() string {
	if !t.began() || t.has(t.session.database.home) != nil {
		return ""
	}
	return routerName(t.session.database.router, t.begun[0].pool)
}

// used notes that a statement of the transaction has been executed.
func (t *transaction) used() {
	if t != nil {
		t.done = true
	}
}

// restart ends a transaction that has done nothing on its database. It begins again
// with its next statement.
func (t *transaction) restart() error {
	begun := t.begun
	t.begun = nil
	return rollBack(begun)
}
