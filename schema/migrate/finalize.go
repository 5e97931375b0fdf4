// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Finalize ends the possibility of a rollback: it drops the triggers and logs of the job.
// The retired tables stay closed, as an archive that may be dropped by hand. Their foreign
// keys to tables outside of the job are dropped: nobody can delete from the archive, so the
// keys would prevent deleting the rows they refer to for good. While a table outside of the
// job refers to a retired one, the error is ErrNotReady and says which key to drop. Call
// Finalize again when it was interrupted.
func (j *Job) Finalize(ctx context.Context) error {
	return j.leadingAnyway(ctx, func(l *leader) error {
		phase, err := l.ReadPhase(ctx)
		if err != nil {
			return err
		}
		if phase != proto.Switched && phase != proto.Finalized {
			return fmt.Errorf("%w: the job is %q; only a job whose shards serve can be finalized", ErrPhase, phase)
		}
		if phase == proto.Switched {
			if err := l.nobodyRefers(); err != nil {
				return err
			}
			if err := l.cut.CloseRetired(ctx); err != nil {
				return err
			}
			err := l.OnSource(ctx, func(s *backend.Session) error { return l.Enter(ctx, s, proto.Switched, proto.Finalized) })
			if err != nil {
				return err
			}
		}
		if err := l.dropTraces(ctx); err != nil {
			return err
		}
		return l.detach(ctx)
	})
}

// nobodyRefers fails when a table outside of the job refers to a retired one. No job begins
// or switches with such a key, so somebody has created it since, and has to be told.
func (w *openJob) nobodyRefers() error {
	var found []string
	for _, t := range w.Tables {
		for _, fk := range t.Outside() {
			found = append(found, fmt.Sprintf("table %s refers to %s by (%s)", fk.Table, t.Name, strings.Join(fk.Columns, ", ")))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; the retired tables lack the rows of the shards, so drop these foreign keys", ErrNotReady, strings.Join(found, "; "))
}

// detach drops the foreign keys that prevent rows of other tables from being deleted.
func (l *leader) detach(ctx context.Context) error {
	return l.Define(ctx, l.Source, func(s *backend.Session) error {
		for _, t := range l.Tables {
			sh, err := s.Database.Describe(ctx, s, t.Name) // its present keys: an earlier call may have dropped them
			if err != nil {
				return err
			}
			outwards := slices.DeleteFunc(sh.Parents, func(fk backend.ForeignKey) bool { return l.Tables.Find(fk.Table) != nil })
			if len(outwards) == 0 {
				continue
			}
			if err := s.Database.DropKeys(ctx, s, t.Name, outwards); err != nil {
				return fmt.Errorf("drop the foreign keys of %s: %w", t.Name, err)
			}
		}
		return nil
	})
}

// dropTraces removes the triggers and logs. The fences stay: a runner that continues after
// a long pause must find them.
func (l *leader) dropTraces(ctx context.Context) error {
	if err := l.cut.DropBackCapture(ctx); err != nil {
		return err
	}
	for _, side := range l.Shards {
		if err := l.Define(ctx, side, func(s *backend.Session) error {
			return s.Exec(ctx, "DROP TABLE IF EXISTS "+s.Database.Quote(l.BackTable()))
		}); err != nil {
			return err
		}
	}
	return l.Define(ctx, l.Source, func(s *backend.Session) error {
		if err := openjob.DropCapture(ctx, l.Job, s); err != nil {
			return err
		}
		return s.Exec(ctx, "DROP TABLE IF EXISTS "+s.Database.Quote(l.LogTable()))
	})
}

// Abort ends a job before its switch, or after a rollback: the source continues as if there
// had been no job. The triggers and the logs are dropped; the tables of the shards are
// emptied and stay. After a rollback they keep the name <name>_sealed, and the route row
// stays: an instance of the application that was idle since the switch still writes to the
// shards; it has to be refused, and to find the route to the source. Call Abort again when
// it was interrupted.
func (j *Job) Abort(ctx context.Context) error {
	return j.leadingAnyway(ctx, func(l *leader) error {
		phase, err := l.ReadPhase(ctx)
		if err != nil {
			return err
		}
		switch phase {
		case "":
			return errors.Join(l.dropTraces(ctx), l.Disown(ctx))
		case proto.Copying, proto.Following:
			if err := l.abandon(ctx, phase); err != nil {
				return err
			}
		case proto.Aborted:
		case proto.Finalized:
			return fmt.Errorf("%w: the job is finalized: its shards serve for good, so there is nothing to abort; drop what it left behind by hand, after its retired tables", ErrPhase)
		default:
			return fmt.Errorf("%w: the job is %s; roll it back first", ErrPhase, phase)
		}
		if err := l.dropTraces(ctx); err != nil {
			return err
		}
		if err := l.cut.DropOwnTriggers(ctx); err != nil {
			return err
		}
		if err := l.emptyTargets(ctx); err != nil {
			return err
		}
		if err := l.Disown(ctx); err != nil {
			return err
		}
		if l.Tables.HasMap() {
			err := l.Define(ctx, l.Source, func(s *backend.Session) error {
				return s.Exec(ctx, "DROP TABLE IF EXISTS "+s.Database.Quote(string(l.MapTable())))
			})
			if err != nil {
				return err
			}
		}
		return l.OnSource(ctx, func(s *backend.Session) error { return l.forget(ctx, s) })
	})
}

// abandon enters the phase Aborted, after which no runner resumes the job.
func (l *leader) abandon(ctx context.Context, phase proto.Phase) error {
	repair, err := l.cut.Repair(ctx)
	if err != nil {
		return err
	}
	if repair != proto.Nothing {
		return fmt.Errorf("%w: a switch was begun; finish it with Cutover, then roll it back", ErrPhase)
	}
	return l.OnSource(ctx, func(s *backend.Session) error { return l.Enter(ctx, s, phase, proto.Aborted) })
}

// emptyTargets deletes all rows of the shards, which are copies. Where this job has copied
// nothing, the rows are not its own and stay.
func (l *leader) emptyTargets(ctx context.Context) error {
	spans, err := l.ReadSpans(ctx)
	if err != nil {
		return err
	}
	for _, t := range l.Tables {
		if !spans[t.Number].High.Set {
			continue
		}
		for _, to := range t.Targets {
			err := l.On(ctx, to.Database, func(s *backend.Session) error {
				ours, err := l.Owns(ctx, s, to)
				if err != nil || !ours {
					return err
				}
				there, err := s.Database.Exists(ctx, s, to.Present())
				if err != nil || !there {
					return err
				}
				return s.Exec(ctx, "DELETE FROM "+s.Database.Quote(to.Present()))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forget removes the rows of the job. The fence stays. When the shards have served, the
// route stays, too, for applications that still use the shards.
func (l *leader) forget(ctx context.Context, s *backend.Session) error {
	tables := []string{backend.SpanTable, backend.TargetTable, backend.JobTable}
	if !l.Tables.HaveServed() {
		tables = append(tables, backend.RouteTable)
	}
	// These tables exist only where they were needed. A pause was meant for this job, not for
	// a later one of the same name.
	for _, table := range []string{steerTable, switchTable, backend.BeatTable} {
		there, err := s.Database.Exists(ctx, s, table)
		if err != nil {
			return err
		}
		if there {
			tables = append(tables, table)
		}
	}
	for _, table := range tables {
		if err := s.Exec(ctx, "DELETE FROM "+table+" WHERE job = ?", l.cfg.Name); err != nil {
			return err
		}
	}
	return nil
}
