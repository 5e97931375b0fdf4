// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Run copies the tables and follows their changes until it has caught up with
// the writers, and returns then. The same call begins the job, resumes it after
// whatever ended it, or finds that there is nothing left to do. After Run,
// [Job.Follow] keeps the shards up to date until [Job.Cutover]. After the switch it
// brings what was noted on the shards back into the retired tables.
//
// Changes of rows that wait for another one, as a child without its parent does,
// are no reason for it to go on: [Progress].Backlog counts them.
//
// A job that is not under way is begun only when Inspect finds nothing that blocks it,
// which takes as long as Inspect does; otherwise the error is a *BlockedError with what
// it has found.
//
// A switch that its runner has left half done it ends first, as [Job.Mend] does.
//
// Errors wrap ErrLocked, ErrFenced, ErrUnsupported, ErrNotReady or ErrChanged
// where that is the cause, and a *SetupError when the job was begun with another
// configuration, as those of Follow, Verify, Cutover and Rollback do. ctx ends the
// run at any point; it can be resumed.
func (j *Job) Run(ctx context.Context) error {
	if _, err := j.Mend(ctx); err != nil {
		return err
	}
	return j.leading(ctx, func(l *leader) error {
		phase, err := l.begin(ctx)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Copying, proto.Following:
			return l.run(ctx, phase)
		case proto.Switched:
			return l.bringBack(ctx)
		case proto.Finalized:
			return nil
		}
		return fmt.Errorf("%w: the job is %s", ErrPhase, phase)
	})
}

// Follow brings changes to where they belong until ctx ends, and returns nil
// then: from the source to the shards, and after the switch from the shards back
// to the retired tables of the source. It ends with ErrChanged within seconds of a
// TRUNCATE of a table, or of an ALTER of one of the source's while those serve.
func (j *Job) Follow(ctx context.Context) error {
	err := j.leading(ctx, func(l *leader) error {
		phase, err := l.ReadPhase(ctx)
		if err != nil {
			return err
		}
		if phase != proto.Following && phase != proto.Switched {
			return fmt.Errorf("%w: the job is %q; there is nothing to follow", ErrPhase, phase)
		}
		if err := l.moveIn(ctx, phase); err != nil {
			return err
		}
		l.Does("follows changes")
		f := follow.New(l.checkAll, l.streams.Forward())
		if phase == proto.Switched {
			l.Does("brings changes of the shards back")
			if err := l.cut.CloseRetired(ctx); err != nil {
				return err
			}
			f = follow.New(l.CheckTargets, l.streams.Backward()...)
		}
		return f.KeepUp(ctx)
	})
	if ctx.Err() != nil {
		err = nil // it was told to end
	}
	return err
}

// leading runs f as the leader of the job, if it is given the configuration that it
// was begun with. That is asked before another runner is fenced, and again when
// nobody else can begin the job any more.
func (j *Job) leading(ctx context.Context, f func(*leader) error) error {
	return j.opened(ctx, func(w *openJob) error {
		if err := w.sameSetup(ctx); err != nil {
			return err
		}
		return w.leading(ctx, func(l *leader) error {
			if err := l.sameSetup(ctx); err != nil {
				return err
			}
			return f(l)
		})
	})
}

// leadingAnyway is for what ends a job, whatever it was begun with.
func (j *Job) leadingAnyway(ctx context.Context, f func(*leader) error) error {
	return j.opened(ctx, func(w *openJob) error { return w.leading(ctx, f) })
}

func (w *openJob) leading(ctx context.Context, f func(*leader) error) error {
	l, err := w.lead(ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	return f(l)
}

// opened runs f with the job's databases and tables.
func (j *Job) opened(ctx context.Context, f func(*openJob) error) error {
	w, err := j.open(ctx)
	if err == nil {
		defer w.Close()
		err = f(w)
	}
	if cause := ctx.Err(); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // a driver may only say that the connection is gone
	}
	if err != nil {
		return fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	return nil
}

// bringBack carries the changes of the shards back until it has caught up.
func (l *leader) bringBack(ctx context.Context) error {
	l.Does("brings changes of the shards back")
	if err := l.moveIn(ctx, proto.Switched); err != nil {
		return err
	}
	if err := l.cut.CloseRetired(ctx); err != nil { // whoever switched may have ended before it did
		return err
	}
	f := follow.New(l.CheckTargets, l.streams.Backward()...)
	return f.UntilCaughtUp(ctx, nil)
}

func (l *leader) run(ctx context.Context, phase proto.Phase) error {
	switch repair, err := l.cut.Repair(ctx); {
	case err != nil:
		return err
	case repair == proto.Flip:
		return l.bringBack(ctx)
	}
	if err := l.moveIn(ctx, phase); err != nil {
		return err
	}
	if err := l.checkAll(ctx); err != nil {
		return err
	}
	if err := l.Own(ctx); err != nil {
		return err
	}
	if err := l.copier.Prune(ctx); err != nil {
		return err
	}
	copied := make(chan struct{})
	return backend.Together(ctx,
		func(ctx context.Context) error {
			if err := l.copyAll(ctx, phase); err != nil {
				return err
			}
			close(copied)
			return nil
		},
		func(ctx context.Context) error {
			f := follow.New(l.checkAll, l.streams.Forward())
			return f.UntilCaughtUp(ctx, copied)
		},
	)
}

func (l *leader) copyAll(ctx context.Context, phase proto.Phase) error {
	for _, t := range l.Tables {
		l.Does("copies " + t.Conf.Name + " and follows changes")
		if err := l.copier.Copy(ctx, t); err != nil {
			return err
		}
	}
	l.Does("follows changes")
	if phase == proto.Following {
		return nil
	}
	return l.OnSource(ctx, func(s *backend.Session) error { return l.Enter(ctx, s, proto.Copying, proto.Following) })
}
