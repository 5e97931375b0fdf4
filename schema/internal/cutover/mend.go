// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// mendPause is what the pause of a switch is compared with that somebody has left half
// done: writers wait already, so it takes as long as it takes.
const mendPause = time.Second

// HalfDone reports whether a switch was begun and not ended, by the phase of the job and
// the names of its tables. Its runner may be at work on it.
func HalfDone(ctx context.Context, of *lead.State, s *backend.Session) (bool, error) {
	phase, err := of.Phase(ctx, s)
	switch {
	case err != nil:
		return false, err
	case phase == proto.Returning:
		return true, nil
	case phase != proto.Following:
		return false, nil
	}
	repair, err := diagnose(ctx, of.Tables.Names(), s)
	return repair == proto.Rename || repair == proto.Flip, err
}

// Mend ends a switch that somebody has left half done. It goes on with it; where that
// fails, it goes back, if no writer can have seen the other side yet.
func (l *Stage) Mend(ctx context.Context) error {
	phase, err := l.ReadPhase(ctx)
	if err != nil {
		return err
	}
	if phase == proto.Returning {
		_, err := l.Rollback(ctx, phase, mendPause)
		return l.orReclose(ctx, err)
	}
	if _, err = l.Cutover(ctx, mendPause); err == nil {
		return nil
	}
	return l.orReopen(ctx, err)
}

// orReopen gives the source's tables their names back, unless all have lost them: then
// an instance of the application may have gone to the shards.
func (l *Stage) orReopen(ctx context.Context, cause error) error {
	return l.instead(ctx, cause, func() (bool, error) {
		var repair proto.Repair
		err := l.Source.Do(ctx, func(s *backend.Session) (err error) {
			repair, err = diagnose(ctx, l.Tables.Names(), s)
			return err
		})
		if err != nil || repair != proto.Rename {
			return false, err
		}
		return true, l.Source.Do(ctx, func(s *backend.Session) error {
			if err := l.CheckEpoch(ctx, s); err != nil {
				return err
			}
			for _, t := range l.Tables {
				there, err := s.Database.Exists(ctx, s, t.Conf.Name)
				if err == nil && !there {
					err = s.Exec(ctx, s.Database.Rename(backend.Retired(t.Conf.Name), t.Conf.Name))
				}
				if err != nil {
					return err
				}
				t.Name = t.Conf.Name
			}
			return nil
		})
	})
}

// orReclose has the shards serve again, while none of the source's tables has its name
// back.
func (l *Stage) orReclose(ctx context.Context, cause error) error {
	return l.instead(ctx, cause, func() (bool, error) {
		phase, err := l.ReadPhase(ctx)
		if err != nil || phase != proto.Returning {
			return false, err
		}
		var repair proto.Repair
		err = l.Source.Do(ctx, func(s *backend.Session) (err error) {
			repair, err = diagnose(ctx, l.Tables.Names(), s)
			return err
		})
		if err != nil || repair != proto.Flip {
			return false, err
		}
		if err := l.outlast(ctx); err != nil {
			return false, err
		}
		if err := l.unseal(ctx); err != nil {
			return false, err
		}
		return true, l.OnSource(ctx, func(s *backend.Session) error { return l.Enter(ctx, s, proto.Returning, proto.Switched) })
	})
}

// outlast waits until no statement of an attempt before can close a shard any more: such a
// statement holds the locks of the shard's tables, which outlast takes and gives back.
func (l *Stage) outlast(ctx context.Context) error {
	return l.EachDatabase(ctx, func(ctx context.Context, side *backend.Database, all []*openjob.Target) error {
		return side.Do(ctx, func(s *backend.Session) error {
			s.Spent = true // it gets the time limits of a lock
			var open []string
			for _, to := range all {
				if err := to.Look(ctx, s); err != nil {
					return err
				}
				if !to.Sealed {
					open = append(open, to.Name)
				}
			}
			if len(open) == 0 {
				return nil
			}
			switch err := side.Lock(ctx, s, backend.Locking{Tables: open}, mendPause); {
			case dialect.FaultOf(err) == dialect.NoTable: // it was closed since
				return fmt.Errorf("%w: %w", backend.ErrAgain, err)
			case err != nil:
				return err
			}
			return side.Unlock(ctx, s, false)
		})
	})
}

// instead goes back after a failure, and tells of both when that fails, too. Whoever was
// told to end, or does not lead any more, leaves it to the next.
func (l *Stage) instead(ctx context.Context, cause error, back func() (bool, error)) error {
	if cause == nil || ctx.Err() != nil || errors.Is(cause, lead.ErrFenced) {
		return cause
	}
	done, err := back()
	if err != nil || !done {
		return errors.Join(cause, err)
	}
	l.Observe(openjob.StepUndone, nil, 0)
	return nil
}
