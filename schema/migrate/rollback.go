package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/migrate/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// Rollback makes the source the place of the tables again, with everything that
// was written to the shards since the switch: under locks on all shards it brings
// the last changes back, renames the shards to <name>_sealed, so that nobody can
// write to them any more, renames the retired tables back and flips the route.
// The job then follows the source again, and may be switched again.
//
// When that would keep writers waiting for longer than maxPause, everything stays
// as it is and the error is a *PauseError. A rollback that was cut off after it
// closed a shard is finished by the next Rollback.
func (j *Job) Rollback(ctx context.Context, maxPause time.Duration) (done Switch, err error) {
	if maxPause <= 0 {
		return done, fmt.Errorf("%w: maxPause: %s is not above zero", ErrConfig, maxPause)
	}
	err = j.leading(ctx, func(l *lead) error {
		phase, err := l.readPhase(ctx)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Copying, proto.Following:
			if repair, err := l.repair(ctx); err != nil || repair == proto.Nothing {
				return err // the source serves
			}
			return fmt.Errorf("%w: a switch was cut off; finish it with Cutover first", ErrPhase)
		case proto.Switched, proto.Returning:
			done, err = l.rollback(ctx, phase, maxPause)
			return err
		}
		return fmt.Errorf("%w: the job is %q; there is no way back", ErrPhase, phase)
	})
	return done, err
}

func (l *lead) rollback(ctx context.Context, phase proto.Phase, maxPause time.Duration) (Switch, error) {
	if phase == proto.Switched {
		if err := l.moveIn(ctx, phase); err != nil {
			return Switch{}, err
		}
		if err := l.closeRetired(ctx); err != nil {
			return Switch{}, err
		}
		if err := l.catchUpBackward(ctx); err != nil {
			return Switch{}, err
		}
	}
	r := &retreat{lead: l, max: maxPause, began: time.Now(), phase: phase, forced: phase == proto.Returning}
	defer r.release(ctx)
	if err := r.guarded(ctx, 0); err != nil {
		return Switch{}, r.giveUp(ctx, err)
	}
	if err := r.seal(ctx); err != nil {
		return Switch{}, err
	}
	if err := r.reinstate(ctx); err != nil {
		return Switch{}, err
	}
	done := Switch{Pause: time.Since(r.began), Drained: r.drained, Epoch: l.epoch}
	return done, l.dropBackCapture(ctx)
}

func (l *lead) catchUpBackward(ctx context.Context) error {
	for range 100 {
		applied := int64(0)
		for _, st := range l.backward() {
			done, err := st.pass(ctx)
			if err != nil {
				return err
			}
			applied += done.applied
		}
		if applied < 100 {
			return nil
		}
	}
	return fmt.Errorf("%w: writers are faster than their changes are brought back", ErrNotReady)
}

// retreat is the pause of a rollback.
type retreat struct {
	*lead

	max     time.Duration
	began   time.Time
	phase   proto.Phase
	drained int64
	step    string
	forced  bool // shards may be closed already: the pause takes what it takes
}

func (r *retreat) at(step string) error {
	r.step = step
	if !r.forced && time.Since(r.began) > r.max {
		return context.DeadlineExceeded
	}
	return nil
}

// guarded locks the databases from the i-th on, each under its watch, and
// brings the last changes back when all are locked.
func (r *retreat) guarded(ctx context.Context, i int) error {
	if i == len(r.sides) {
		return r.drain(ctx)
	}
	side := r.sides[i]
	if err := r.at("waiting for the locks on the shards"); err != nil {
		return err
	}
	s, err := side.session(ctx)
	if err != nil {
		return err
	}
	if r.held == nil {
		r.held = newHeld()
	}
	r.held[side] = s
	most := r.max
	if r.forced {
		most = patience
	}
	return side.watch(ctx, s, most, func() error {
		if err := side.lock(ctx, s, r.lockedOn(side), most); err != nil {
			return err
		}
		if err := r.checkEpoch(ctx, s, r.epoch); err != nil {
			return err
		}
		return r.guarded(ctx, i+1)
	})
}

func (r *retreat) lockedOn(side *side) []string {
	tables := []string{r.backTable(), shardFenceTable}
	for _, t := range r.tables {
		for _, to := range t.targets {
			if to.side == side {
				tables = append(tables, to.present())
			}
		}
	}
	return tables
}

func (r *retreat) drain(ctx context.Context) error {
	r.observe(StepLocked, nil, 0)
	for more := true; more; {
		more = false
		for _, st := range r.backward() {
			if err := r.at("bringing the last changes back"); err != nil {
				return err
			}
			done, err := st.pass(ctx)
			if err != nil {
				return err
			}
			r.drained += done.applied
			more = more || done.applied > 0
			if len(done.left) > 0 && done.applied == 0 {
				e := done.left[0]
				return &RowError{r.tables[e.tbl].conf.Name, e.id, fmt.Errorf("%w: two shards have this row, or an equal value that a unique key of the source refuses; change one of them", ErrNotReady)}
			}
		}
	}
	r.observe(StepDrained, nil, r.drained)
	return r.at("closing the shards")
}

// giveUp leaves everything as it was.
func (r *retreat) giveUp(ctx context.Context, err error) error {
	if ctx.Err() == nil && !r.forced && time.Since(r.began) >= r.max {
		return &PauseError{Max: r.max, Step: r.step}
	}
	return err
}

// release ends the locks that are still held.
func (r *retreat) release(ctx context.Context) {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for side, s := range r.held {
		if s.locked {
			_ = side.unlock(undo, s, false) // closing it ends the lock as well
		}
		s.Close()
	}
	r.held = nil
}

// seal closes the shards: from the first one on there is no way but on.
func (r *retreat) seal(ctx context.Context) error {
	if r.phase == proto.Switched {
		err := r.onSource(ctx, func(s *session) error { return r.enter(ctx, s, proto.Switched, proto.Returning) })
		if err != nil {
			return err
		}
	}
	r.observe(StepSealing, nil, 0)
	for _, t := range r.tables {
		for _, to := range t.targets {
			if to.sealed {
				continue
			}
			s := r.held[to.side]
			if err := s.exec(ctx, s.side.rename(to.name, sealed(to.name))); err != nil {
				return err
			}
			to.sealed = true
		}
	}
	for _, side := range r.sides {
		if err := side.unlock(ctx, r.held[side], true); err != nil {
			return err
		}
	}
	r.observe(StepSealed, nil, 0)
	return nil
}

// reinstate opens the source's tables, which note changes again from the first
// one on.
func (r *retreat) reinstate(ctx context.Context) error {
	err := r.source.do(ctx, func(s *session) error {
		for _, t := range r.tables {
			if err := r.reinstateTable(ctx, s, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = r.onSource(ctx, func(s *session) error {
		if err := r.identify(ctx, s); err != nil {
			return err
		}
		if err := r.setRoute(ctx, s, sharding.OnSource); err != nil {
			return err
		}
		return r.enter(ctx, s, proto.Returning, proto.Following)
	})
	if err == nil {
		r.observe(StepReinstated, nil, 0)
	}
	return err
}

func (r *retreat) reinstateTable(ctx context.Context, s *session, t *table) error {
	back, err := s.side.exists(ctx, s, t.conf.Name)
	if err != nil || back {
		t.name = t.conf.Name
		return err
	}
	if err := s.dropTriggers(ctx, s.side.barrier(r.capturing(t))); err != nil {
		return err
	}
	if err := s.makeTriggers(ctx, s.side.capture(r.capturing(t))); err != nil {
		return err
	}
	if err := r.checkEpoch(ctx, s, r.epoch); err != nil {
		return err
	}
	if err := r.raiseCounter(ctx, s, t); err != nil {
		return err
	}
	if err := s.exec(ctx, s.side.rename(t.name, t.conf.Name)); err != nil {
		return err
	}
	t.name = t.conf.Name
	return nil
}

// identify writes down what the tables are now.
func (l *lead) identify(ctx context.Context, s *session) error {
	for _, t := range l.tables {
		identity, err := s.side.identity(ctx, s, t.name)
		if err != nil {
			return err
		}
		if err := s.exec(ctx, "UPDATE "+spanTable+" SET identity = ? WHERE job = ? AND tbl = ?", identity, l.cfg.Name, t.ord); err != nil {
			return err
		}
	}
	return nil
}

// unseal gives the shards their names back, when a rollback has taken them.
func (l *lead) unseal(ctx context.Context) error {
	return l.eachTarget(ctx, func(s *session, t *table, i int) error {
		to := t.targets[i]
		if !to.sealed {
			return nil
		}
		there, err := s.side.exists(ctx, s, to.name)
		if err == nil && !there {
			err = s.exec(ctx, s.side.rename(sealed(to.name), to.name))
		}
		if err == nil {
			to.sealed = false
		}
		return err
	})
}

func (l *lead) dropBackCapture(ctx context.Context) error {
	return l.eachTarget(ctx, func(s *session, t *table, i int) error {
		return s.dropTriggers(ctx, s.side.capture(l.backCapturing(t, i)))
	})
}

func newHeld() map[*side]*session { return map[*side]*session{} }
