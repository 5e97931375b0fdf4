// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/preflight"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// RolledBack fails unless the source serves after an earlier rollback.
func (l *Stage) RolledBack(ctx context.Context, phase proto.Phase) error {
	repair, err := l.Repair(ctx)
	switch {
	case err != nil:
		return err
	case repair != proto.Nothing:
		return fmt.Errorf("%w: a switch was cut off; finish it with Cutover first", lead.ErrPhase)
	case !l.Tables.HaveServed():
		return fmt.Errorf("%w: the job is %s, and was not switched: there is nothing to roll back, the source serves", lead.ErrPhase, phase)
	}
	return nil
}

// Rollback makes the source serve again, or finishes an earlier attempt. The phase must be
// proto.Switched or proto.Returning.
func (l *Stage) Rollback(ctx context.Context, phase proto.Phase, maxPause time.Duration) (Result, error) {
	if phase == proto.Switched {
		if err := l.readyToReturn(ctx, maxPause); err != nil {
			return Result{}, err
		}
	}
	needs, err := l.rehearseRollback(ctx)
	if err != nil {
		return Result{}, err
	}
	p, err := l.newPause(maxPause, needs.all, phase == proto.Returning)
	if err != nil {
		return Result{}, err
	}
	r := &rollback{pause: p, needs: needs, phase: phase}
	nothing := func(context.Context) error { return nil }
	p.direction = direction{
		sides: l.Shards, tables: r.lockedTables, changes: l.streams.Backward(),
		refused: r.refusedBy, check: nothing, close: nothing,
		locking: "waiting for the locks on the shards", draining: "bringing the last changes back", closing: "closing the shards",
	}
	err = r.hold(ctx)
	if err == nil {
		err = r.seal(ctx)
	}
	_ = r.release(ctx, false) // seal has released the locks of the databases that it closed
	if err != nil {
		return r.result(), err
	}
	if r.isLate() {
		err := r.undo(ctx)
		return r.result(), err
	}
	if err := r.reinstate(ctx); err != nil {
		return r.result(), err
	}
	return r.result(), l.DropBackCapture(ctx)
}

// rollback is the state of a rollback while writers wait.
type rollback struct {
	*pause

	needs rollbackNeeds
	phase proto.Phase
}

func (r *rollback) lockedTables(side *backend.Database) backend.Locking {
	all := backend.Locking{Own: []string{r.BackTable(), backend.ShardFenceTable}}
	for _, to := range r.TargetsOn(side) {
		all.Tables = append(all.Tables, to.Present())
	}
	return all
}

func (r *rollback) refusedBy(left []follow.Entry) error {
	e := left[0]
	return r.Tables[e.Table].RowError(e.ID, fmt.Errorf("%w: two shards have this row, or an equal value that a unique key of the source refuses; change one of them", backend.ErrNotReady))
}

// isLate reports whether the remaining steps would exceed the pause while opening the
// shards again is still possible.
func (r *rollback) isLate() bool {
	return !r.forced && r.spent()+r.needs.reinstating > r.max
}

// undo opens the shards again, before the source's tables accept writes. Only their names
// had closed them.
func (r *rollback) undo(ctx context.Context) error {
	if err := r.unseal(ctx); err != nil {
		return err
	}
	err := r.OnSource(ctx, func(s *backend.Session) error { return r.Enter(ctx, s, proto.Returning, proto.Switched) })
	if err != nil {
		return err
	}
	return r.tooLong("opening the source's tables, which was undone", r.needs.reinstating)
}

// seal closes the shards.
func (r *rollback) seal(ctx context.Context) error {
	if r.phase == proto.Switched {
		err := r.OnSource(ctx, func(s *backend.Session) error { return r.Enter(ctx, s, proto.Switched, proto.Returning) })
		if err != nil {
			return err
		}
	}
	r.Observe(openjob.StepSealing, nil, 0)
	err := r.EachDatabase(ctx, func(ctx context.Context, side *backend.Database, all []*openjob.Target) error {
		s := r.locked[side]
		for _, to := range all {
			if to.Sealed {
				continue
			}
			if err := s.Exec(ctx, side.Rename(to.Name, backend.Sealed(to.Name))); err != nil {
				return err
			}
			to.Sealed = true
		}
		return side.Unlock(ctx, s, true)
	})
	if err != nil {
		return err
	}
	r.Observe(openjob.StepSealed, nil, 0)
	return nil
}

// reinstate opens the source's tables. From the first one on, triggers note their changes
// again.
func (r *rollback) reinstate(ctx context.Context) error {
	for _, t := range r.Tables {
		err := r.Define(ctx, r.Source, func(s *backend.Session) error { return r.reinstateTable(ctx, s, t) })
		if err != nil {
			return err
		}
		t.Name = t.Conf.Name
	}
	err := r.OnSource(ctx, func(s *backend.Session) error {
		if err := r.Identify(ctx, s); err != nil {
			return err
		}
		if err := r.SetRoute(ctx, s, r.routeBack()); err != nil {
			return err
		}
		return r.Enter(ctx, s, proto.Returning, proto.Following)
	})
	if err == nil {
		r.Observe(openjob.StepReinstated, nil, 0)
	}
	return err
}

// routeBack keeps the generators in use, if their keys mean the same on the source: after a
// switch, processes hold ids that they have not used yet.
func (r *rollback) routeBack() sharding.Route {
	for _, t := range r.Tables {
		if !idmap.Keeps(t.Conf.IDs) {
			return sharding.OnSource
		}
	}
	return sharding.Returned
}

// reinstated reports whether a table has its name back. If it still has the retired one, a table of
// its name is somebody else's.
func reinstated(ctx context.Context, s *backend.Session, t *openjob.Table) (bool, error) {
	back, err := s.Database.Exists(ctx, s, t.Conf.Name)
	if err != nil || !back {
		return false, err
	}
	old, err := s.Database.Exists(ctx, s, backend.Retired(t.Conf.Name))
	if err == nil && old {
		err = fmt.Errorf("%w: the rows are in %s, so somebody has created %s since the switch: drop it if nobody needs its rows, or rename it", openjob.ErrUnclear, backend.Retired(t.Conf.Name), t.Conf.Name)
	}
	return true, err
}

func (r *rollback) reinstateTable(ctx context.Context, s *backend.Session, t *openjob.Table) error {
	back, err := reinstated(ctx, s, t)
	if err != nil || back {
		return err
	}
	if err := s.MakeTriggers(ctx, s.Database.Capture(r.Capture(t))); err != nil {
		return err
	}
	// These triggers are dropped only now: changes that foreign keys cascade from other tables
	// must be noted.
	if err := s.DropTriggers(ctx, s.Database.Barrier(r.Capture(t))); err != nil {
		return err
	}
	if err := r.raiseCounter(ctx, s, t); err != nil {
		return err
	}
	numbered := "" // the column that the source itself goes on to number
	if r.routeBack() != sharding.Returned {
		numbered = t.Key
	}
	if err := backend.TakeNumbers(ctx, s, t.Name, numbered); err != nil {
		return err
	}
	return s.Exec(ctx, s.Database.Rename(t.Name, t.Conf.Name))
}

// raiseCounter keeps the source from giving an id again that a rollback has inserted.
// PostgreSQL's sequences do not see explicit ids.
func (r *rollback) raiseCounter(ctx context.Context, s *backend.Session, t *openjob.Table) (err error) {
	var highest int64
	switch {
	case t.IDs.IsDrawn() && t.IDs.Of == &t.Table:
		highest, err = r.MapTable().Highest(ctx, s, t.IDs)
	case s.Database.Name() == "postgres":
		highest, err = s.Number(ctx, "SELECT MAX("+s.Database.Quote(t.Key)+") FROM "+s.Database.Quote(t.Name))
	}
	if err != nil || highest == 0 {
		return err
	}
	counter, err := s.Database.Counter(ctx, s, t.Name)
	if err != nil || highest <= counter {
		return err
	}
	return s.Database.SetCounter(ctx, s, t.Name, highest)
}

// unseal gives closed shards their names back.
func (l *Stage) unseal(ctx context.Context) error {
	return l.EachDatabase(ctx, func(ctx context.Context, side *backend.Database, all []*openjob.Target) error {
		return l.Define(ctx, side, func(s *backend.Session) error { return unsealOn(ctx, s, all) })
	})
}

func unsealOn(ctx context.Context, s *backend.Session, all []*openjob.Target) error {
	var closed []backend.Rename
	for _, to := range all {
		// An earlier attempt may have opened it, or closed it without receiving the answer.
		if err := to.Look(ctx, s); err != nil {
			return err
		}
		if to.Sealed {
			closed = append(closed, backend.Rename{From: backend.Sealed(to.Name), To: to.Name})
		}
	}
	if err := s.ExecAll(ctx, s.Database.RenameAll(closed)); err != nil {
		return err
	}
	for _, to := range all {
		to.Sealed = false
	}
	return nil
}

// DropBackCapture drops the triggers that note changes of the shards.
func (l *Stage) DropBackCapture(ctx context.Context) error {
	return l.Tables.EachTarget(ctx, l.Define, func(s *backend.Session, t *openjob.Table, i int) error {
		return s.DropTriggersNamed(ctx, l.TriggerName(fmt.Sprintf("b%d_", t.Number), i, ""), nil)
	})
}

// DropOwnTriggers drops the copies of the source's own triggers on the shards.
func (l *Stage) DropOwnTriggers(ctx context.Context) error {
	return l.Tables.EachTarget(ctx, l.Define, func(s *backend.Session, t *openjob.Table, i int) error {
		return s.DropTriggers(ctx, l.Tables.OwnTriggers(t, i))
	})
}

// readyToReturn applies the changes of the shards to the source, and fails when the source could not
// serve.
func (l *Stage) readyToReturn(ctx context.Context, maxPause time.Duration) error {
	if err := l.checkShards(ctx); err != nil {
		return err
	}
	if err := l.conf.MoveIn(ctx, proto.Switched); err != nil {
		return err
	}
	if err := l.CloseRetired(ctx); err != nil {
		return err
	}
	if err := namesFree(ctx, l.Job); err != nil {
		return err
	}
	return follow.CatchUp(ctx, maxPause, lead.Serving(l.Leader), l.streams.Backward()...)
}

// namesFree fails when a table cannot get its name back.
func namesFree(ctx context.Context, j *openjob.Job) error {
	return j.Source.Do(ctx, func(s *backend.Session) error {
		for _, t := range j.Tables {
			if _, err := reinstated(ctx, s, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkShards fails when other servers may have written rows of the shards, or prepared transactions have changed some.
func (l *Stage) checkShards(ctx context.Context) error {
	return l.EachDatabase(ctx, func(ctx context.Context, side *backend.Database, _ []*openjob.Target) error {
		return side.Do(ctx, func(s *backend.Session) error {
			if err := preflight.CheckReplicas(ctx, s); err != nil {
				return err
			}
			return unprepared(ctx, l.Source, s, backend.PreparedPatience)
		})
	})
}
