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

// mendPause is the longest pause for a switch that another runner left unfinished. If tables
// are closed already, writers are waiting, so that the pause may take longer.
const mendPause = time.Second

// HalfDone reports whether a switch was begun and not finished, by the phase of the job and
// the names of its tables. Its runner may still be working on it.
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

// Mend finishes a switch that another runner left unfinished. Where that fails, it undoes
// the switch, if no writer can have used the other side yet.
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

// orReopen gives the source's tables their names back, unless all were renamed: then an
// instance of the application may already use the shards.
func (l *Stage) orReopen(ctx context.Context, cause error) error {
	return l.orGoBack(ctx, cause, func() (bool, error) {
		var repair proto.Repair
		err := l.Source.Do(ctx, func(s *backend.Session) (err error) {
			repair, err = diagnose(ctx, l.Tables.Names(), s)
			return err
		})
		if err != nil || repair != proto.Rename {
			return false, err
		}
		return true, l.Define(ctx, l.Source, func(s *backend.Session) error {
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

// orReclose makes the shards serve again, unless a table of the source already has its name
// back.
func (l *Stage) orReclose(ctx context.Context, cause error) error {
	return l.orGoBack(ctx, cause, func() (bool, error) {
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
		if err := l.awaitClosers(ctx); err != nil {
			return false, err
		}
		if err := l.unseal(ctx); err != nil {
			return false, err
		}
		return true, l.OnSource(ctx, func(s *backend.Session) error { return l.Enter(ctx, s, proto.Returning, proto.Switched) })
	})
}

// awaitClosers waits until no statement of an earlier attempt can close a shard any more. Such a
// statement holds the locks of the shard's tables, so awaitClosers takes and releases these
// locks.
func (l *Stage) awaitClosers(ctx context.Context) error {
	return l.EachDatabase(ctx, func(ctx context.Context, side *backend.Database, all []*openjob.Target) error {
		return side.Do(ctx, func(s *backend.Session) error {
			s.Spent = true // its settings become those of a lock
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
			case dialect.FaultOf(err) == dialect.NoTable: // it was closed meanwhile
				return fmt.Errorf("%w: %w", backend.ErrAgain, err)
			case err != nil:
				return err
			}
			return side.Unlock(ctx, s, false)
		})
	})
}

// orGoBack undoes a switch after a failure, and reports both errors when that fails, too. If
// ctx has ended or this runner no longer leads, the next runner does it.
func (l *Stage) orGoBack(ctx context.Context, cause error, back func() (bool, error)) error {
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
