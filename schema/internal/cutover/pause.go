// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// direction is the data that a pause needs about the side that stops serving.
type direction struct {
	sides   []*backend.Database                     // databases whose tables are closed
	tables  func(*backend.Database) backend.Locking // the tables that are locked there
	changes []*follow.Stream                        // of the changes made there
	refused func(left []follow.Entry) error         // makes the error for changes that the other side refuses
	check   func(context.Context) error             // runs under the locks, when all changes are over
	close   func(context.Context) error             // runs after it, while the databases are still watched

	locking, draining, closing string // the steps, as an error names them
}

// pause is the time in which writers wait: the serving side is locked, its last changes are
// copied, and it is closed. Whatever it does before the first rename can be repeated by
// another attempt.
type pause struct {
	*Stage
	*timing
	direction

	needs   time.Duration // from the first rename on
	forced  bool          // some tables may be closed already, so the pause has no limit
	locked  map[*backend.Database]*backend.Session
	drained int64
	step    string
}

// newPause fails when the work from the first rename on does not fit into most.
func (l *Stage) newPause(most, needs time.Duration, forced bool) (*pause, error) {
	p := &pause{Stage: l, timing: newTiming(most, needs), needs: needs, forced: forced, locked: map[*backend.Database]*backend.Session{}}
	if forced {
		p.timing = unlimited(most)
		return p, nil
	}
	return p, l.enough(most, 0, needs)
}

// hold locks the serving side, copies the last changes and runs the direction's check and
// close. The caller must call release, also after an error.
func (p *pause) hold(ctx context.Context) error {
	p.Hold(p.locked)
	err := p.watched(ctx, p.sides)
	if err != nil && ctx.Err() == nil && !p.forced && !p.began.IsZero() && p.over() {
		return p.tooLong(p.step, 0)
	}
	return err
}

// watched starts a Watch on each database, so that no statement waits longer than the pause
// may last, and continues when all are running.
func (p *pause) watched(ctx context.Context, sides []*backend.Database) error {
	if len(sides) > 0 {
		side := sides[0]
		s, err := side.NewSession(ctx)
		if err != nil {
			return err
		}
		p.locked[side] = s
		return side.Watch(ctx, s, p.start, p.lockRest, func() error { return p.watched(ctx, sides[1:]) })
	}
	p.startClock()
	if err := p.getReady(ctx); err != nil {
		return err
	}
	return p.close(ctx)
}

// getReady does everything that comes before the first rename.
func (p *pause) getReady(ctx context.Context) error {
	ctx, cancel := p.within(ctx)
	defer cancel()
	if err := p.lock(ctx); err != nil {
		return err
	}
	p.Observe(openjob.StepLocked, nil, 0)
	if err := p.unprepared(ctx); err != nil {
		return err
	}
	if err := p.drain(ctx); err != nil {
		return err
	}
	if err := p.check(ctx); err != nil {
		return err
	}
	p.Observe(openjob.StepDrained, nil, p.drained)
	if err := p.at(p.closing); err != nil || p.forced {
		return err
	}
	return p.enough(p.max, p.spent(), p.needs)
}

// at notes the next step, and fails when there is no time left for it.
func (p *pause) at(step string) error {
	p.step = step
	if !p.forced && p.over() {
		return context.DeadlineExceeded
	}
	return nil
}

// lock locks the databases, and repeats that for as long as the pause allows when a lock of a further
// database was not to be had soon. A transaction of the application may have written there, and wait for a read
// on a database that is locked already. No server sees this circle, and no order of the databases prevents it, because
// transactions read other shards in any order. When all locks are released, the transaction goes on.
func (p *pause) lock(ctx context.Context) error {
	for wait := min(max(p.most/16, leastFurtherWait), mostFurtherWait); ; wait = min(wait*3/2, mostFurtherWait) {
		err := p.lockEach(ctx, wait)
		circle := err != nil && ctx.Err() == nil && p.lockRest() <= 0 && !p.over()
		p.unlimitLock()
		if !circle {
			return err
		}
		if err := p.letGo(ctx); err != nil {
			return err
		}
	}
}

// lockEach locks the databases one after another, always in the same order, so that two runners
// do not deadlock. It waits for each but the first no longer than further.
func (p *pause) lockEach(ctx context.Context, further time.Duration) error {
	for i, side := range p.sides {
		if err := p.at(p.locking); err != nil {
			return err
		}
		if i > 0 {
			p.limitLock(further)
		}
		s := p.locked[side]
		if err := side.Lock(ctx, s, p.tables(side), p.rest()); err != nil {
			return err
		}
		if err := p.CheckEpoch(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// letGo releases the locks, under which nothing was done yet.
func (p *pause) letGo(ctx context.Context) error {
	for _, side := range p.sides {
		s := p.locked[side]
		backend.EndKills(ctx, s)
		if !s.Locked {
			continue
		}
		if err := side.Unlock(ctx, s, false); err != nil {
			return err
		}
	}
	return nil
}

// unprepared waits for prepared transactions under the locks, before the last changes are copied: these may be among them. Half of the
// time is left for the steps after it, also for giving up.
func (p *pause) unprepared(ctx context.Context) error {
	for _, side := range p.sides {
		if err := p.at("waiting for prepared transactions"); err != nil {
			return err
		}
		if err := unprepared(ctx, p.Source, p.locked[side], min(p.rest()/2, backend.PreparedPatience)); err != nil {
			return err
		}
	}
	return nil
}

// unprepared waits until the transactions have ended that are prepared on a database. A user of a shard may lack the right to list them on
// MySQL, where each keeps the locks of its tables.
func unprepared(ctx context.Context, source *backend.Database, s *backend.Session, most time.Duration) error {
	err := s.Database.Unprepared(ctx, s, most, nil)
	switch {
	case err == nil, s.Database != source && backend.IsMySQL(err, "1401", "1227"):
		return nil
	}
	return fmt.Errorf("%s: %w", s.Database.Label, err)
}

// drain copies the remaining changes, through the connections that hold the locks.
func (p *pause) drain(ctx context.Context) error {
	for more := true; more; {
		more = false
		for _, st := range p.changes {
			if err := p.at(p.draining); err != nil {
				return err
			}
			done, err := st.Pass(ctx)
			if err != nil {
				return err
			}
			if done.Applied == 0 && len(done.Left) > 0 {
				return p.refused(done.Left) // nobody writes any more, so these changes will stay refused
			}
			p.drained += done.Applied
			more = more || done.Applied > 0
		}
	}
	return nil
}

// release releases the locks that are still held. keep says whether to commit the work done
// under them, where a lock is a transaction.
func (p *pause) release(ctx context.Context, keep bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var errs []error
	for side, s := range p.locked {
		if s.Locked {
			errs = append(errs, side.Unlock(ctx, s, keep)) // closing it ends the lock as well
		}
		s.Close()
	}
	clear(p.locked)
	p.Hold(nil)
	return errors.Join(errs...)
}

func (p *pause) tooLong(step string, needs time.Duration) error {
	return p.conf.TooLong(p.max, step, needs)
}

// result is the result so far.
func (p *pause) result() Result {
	if p.began.IsZero() {
		return Result{}
	}
	took := p.spent()
	return Result{Pause: took, Over: max(0, took-p.max), Drained: p.drained, Epoch: p.Epoch()}
}
