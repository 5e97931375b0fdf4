// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"errors"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// direction is what a pause needs to know about the side that stops to serve.
type direction struct {
	sides   []*backend.Database                     // whose tables are closed
	tables  func(*backend.Database) backend.Locking // that are locked there
	changes []*follow.Stream                        // of the changes made there
	refused func(left []follow.Entry) error         // is the error of changes that the other side does not take
	check   func(context.Context) error             // runs under the locks, when all changes are over
	close   func(context.Context) error             // runs after it, while the databases are still watched

	locking, draining, closing string // the steps, as an error names them
}

// pause is the time in which writers wait: the side that serves is locked, its last
// changes are brought over, and it is closed. Nothing before the first rename changes
// anything that another attempt would not do again.
type pause struct {
	*Stage
	*timing
	direction

	needs   time.Duration // from the first rename on
	forced  bool          // some tables may be closed already: the pause takes what it takes
	locked  map[*backend.Database]*backend.Session
	drained int64
	step    string
}

// newPause fails when what comes after the first rename does not fit into most.
func (l *Stage) newPause(most, needs time.Duration, forced bool) (*pause, error) {
	p := &pause{Stage: l, timing: newTiming(most, needs), needs: needs, forced: forced, locked: map[*backend.Database]*backend.Session{}}
	if forced {
		p.timing = unlimited(most)
		return p, nil
	}
	return p, l.enough(most, 0, needs)
}

// hold closes the side that serves to writers, brings the last changes over and runs the
// direction's check and close. The caller calls release, whatever came of it.
func (p *pause) hold(ctx context.Context) error {
	p.Hold(p.locked)
	err := p.watched(ctx, p.sides)
	if err != nil && ctx.Err() == nil && !p.forced && !p.began.IsZero() && p.over() {
		return p.tooLong(p.step, 0)
	}
	return err
}

// watched has the databases watched, so that no statement waits longer than the pause
// may last, and goes on when all of them are.
func (p *pause) watched(ctx context.Context, sides []*backend.Database) error {
	if len(sides) > 0 {
		side := sides[0]
		s, err := side.NewSession(ctx)
		if err != nil {
			return err
		}
		p.locked[side] = s
		return side.Watch(ctx, s, p.start, p.rest, func() error { return p.watched(ctx, sides[1:]) })
	}
	p.startClock()
	if err := p.getReady(ctx); err != nil {
		return err
	}
	return p.close(ctx)
}

// getReady does what has to be done within the pause before something is renamed.
func (p *pause) getReady(ctx context.Context) error {
	ctx, cancel := p.within(ctx)
	defer cancel()
	if err := p.lock(ctx); err != nil {
		return err
	}
	p.Observe(openjob.StepLocked, nil, 0)
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

// at notes what the pause does next, and fails when there is no time left for it.
func (p *pause) at(step string) error {
	p.step = step
	if !p.forced && p.over() {
		return context.DeadlineExceeded
	}
	return nil
}

// lock locks one database after another: in one order, so that two runners do not wait
// for each other.
func (p *pause) lock(ctx context.Context) error {
	for _, side := range p.sides {
		if err := p.at(p.locking); err != nil {
			return err
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

// drain brings over what is left, through the connections with the locks.
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
				return p.refused(done.Left) // nobody writes, and still these cannot be written
			}
			p.drained += done.Applied
			more = more || done.Applied > 0
		}
	}
	return nil
}

// release ends the locks that are still held. keep is whether what was done under them
// stays, where a lock is a transaction.
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

// result is what came of it up to now.
func (p *pause) result() Result {
	if p.began.IsZero() {
		return Result{}
	}
	took := p.spent()
	return Result{Pause: took, Over: max(0, took-p.max), Drained: p.drained, Epoch: p.Epoch()}
}
