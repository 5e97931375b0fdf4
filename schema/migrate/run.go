// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Run copies the tables and follows their changes until it has caught up with the writers,
// and returns then. The same call begins the job, resumes it after an interruption, or
// finds that there is nothing left to do. After Run, [Job.Follow] keeps the shards up to
// date until [Job.Cutover]. After the switch, Run applies the changes of the shards to the
// retired tables.
//
// Run returns nil although changes may be left that wait for another row: a child without its
// parent, a row whose value in a unique key another row of the same table still has there, and,
// after the switch, a row whose id two shards have. [Progress].Backlog counts such changes, Verify
// counts their rows as Unsettled, and Cutover and Rollback end with ErrNotReady and a [RowError]
// for such a row while one is left.
//
// Run compares nothing. Only Verify finds rows of the shards that somebody else has written or
// changed before the switch.
//
// A new job begins only when Inspect has no blocking finding, which takes as long as
// Inspect does; otherwise the error is a *BlockedError with the findings.
//
// Run first ends an unfinished switch of another runner, as [Job.Mend] does.
//
// Errors wrap ErrLocked, ErrFenced, ErrUnsupported, ErrNotReady or ErrChanged where that is
// the cause, and a *SetupError when the job was begun with another configuration. The same
// holds for Follow, Verify, Cutover and Rollback. ctx may end the run at any point; it can
// be resumed.
func (j *Job) Run(ctx context.Context) error {
	if _, err := j.Mend(ctx); err != nil {
		return err
	}
	return j.leading(ctx, func(l *leader) error {
		phase, err := l.begin(ctx)
		if err != nil {
			return err
		}
		l.Observe(openjob.StepBegun, nil, 0)
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

// Follow applies changes to the other side until ctx ends, and then returns nil unless it has found
// something that its caller has to know, such as ErrChanged: from the
// source to the shards, and after the switch from the shards to the retired tables of the
// source. It ends with ErrChanged within seconds after a TRUNCATE of a table, or an ALTER
// of a source table while the source serves.
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
			f = follow.New(lead.Serving(l.Leader), l.streams.Backward()...)
		}
		return f.KeepUp(ctx)
	})
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return nil // which is how Follow is stopped
	}
	return err
}

// leading runs f as the leader of the job, if the job was begun with this configuration. It
// checks that before it fences another runner, and again when nobody else can begin the job
// any more.
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

// leadingAnyway is for calls that end a job, whatever its configuration was.
func (j *Job) leadingAnyway(ctx context.Context, f func(*leader) error) error {
	return j.opened(ctx, func(w *openJob) error { return w.leading(ctx, f) })
}

func (w *openJob) leading(ctx context.Context, f func(*leader) error) error {
	l, err := w.lead(ctx)
	if err != nil {
		return err
	}
	defer l.Release()
	switch is, err := openjob.Renamed(ctx, l.Job); {
	case err != nil:
		return err
	case is:
		return errRenamed
	}
	return f(l)
}

// errRenamed says that another runner has switched between the reading of the tables' names and the moment when it ceased to lead.
var errRenamed = errors.New("the tables were renamed meanwhile")

// opened runs f with the job's databases and tables.
func (j *Job) opened(ctx context.Context, f func(*openJob) error) error {
	err := errRenamed
	for errors.Is(err, errRenamed) {
		err = openedOnce(ctx, j, f)
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) && (dialect.Unavailable(err) || Transient(err)) {
		err = fmt.Errorf("%w: %w", cause, err) // a driver may only say that the connection is gone
	}
	if err != nil {
		return fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	return nil
}

func openedOnce(ctx context.Context, j *Job, f func(*openJob) error) error {
	w, err := j.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	return f(w)
}

// bringBack applies the changes of the shards to the source until it has caught up.
func (l *leader) bringBack(ctx context.Context) error {
	l.Does("brings changes of the shards back")
	if err := l.moveIn(ctx, proto.Switched); err != nil {
		return err
	}
	if err := l.cut.CloseRetired(ctx); err != nil { // the runner that switched may have died before it did this
		return err
	}
	f := follow.New(lead.Serving(l.Leader), l.streams.Backward()...)
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
