// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// makeTargets creates missing shards, and refuses shards that are not empty or cannot take
// the rows.
func (l *leader) makeTargets(ctx context.Context) error {
	for _, t := range l.Tables {
		served, err := l.mayHaveServed(ctx, t)
		if err != nil {
			return err
		}
		for _, to := range t.Targets {
			if err := l.Define(ctx, to.Database, func(s *backend.Session) error { return l.prepareTarget(ctx, s, t, to, served) }); err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.Present(), to.Database.Label, err)
			}
		}
	}
	return nil
}

// mayHaveServed reports whether an earlier job of the table has left its route, so that
// somebody may still write to the shards of that job.
func (w *openJob) mayHaveServed(ctx context.Context, t *openjob.Table) (bool, error) {
	rows := int64(0)
	err := w.Source.Do(ctx, func(s *backend.Session) error {
		there, err := s.Database.Exists(ctx, s, backend.RouteTable)
		if err != nil || !there {
			return err
		}
		rows, err = s.Number(ctx, "SELECT COUNT(*) FROM "+backend.RouteTable+" WHERE tbl = ?", t.Conf.Name)
		return err
	})
	return rows > 0, err
}

// prepareTarget creates or checks an empty shard. A shard that may have served is closed,
// so that only the runner writes to it before the switch.
func (w *openJob) prepareTarget(ctx context.Context, s *backend.Session, t *openjob.Table, to *openjob.Target, served bool) error {
	if err := to.Look(ctx, s); err != nil {
		return err
	}
	open, err := s.Database.Exists(ctx, s, to.Name)
	if err != nil {
		return err
	}
	switch {
	case open && served:
		if err = w.checkTarget(ctx, s, t, to); err == nil { // only an empty shard is renamed
			err = s.Exec(ctx, s.Database.Rename(to.Name, backend.Sealed(to.Name)))
		}
		to.Sealed = err == nil
	case !open && !to.Sealed:
		to.Sealed = served
		err = backend.MakeLike(ctx, s, w.Source, t.Table, to.Present())
	}
	if err != nil {
		return err
	}
	return w.checkTarget(ctx, s, t, to)
}

func (w *openJob) checkTarget(ctx context.Context, s *backend.Session, t *openjob.Table, to *openjob.Target) error {
	found, err := s.Database.Describe(ctx, s, to.Present())
	if err != nil {
		return err
	}
	if why, fix := openjob.Misfit(t.Table, found); why != "" {
		return fmt.Errorf("%w: %s; drop this table, so that the job creates it, or %s", ErrNotReady, why, fix)
	}
	if len(found.Parents) > 0 {
		return fmt.Errorf("%w: it has foreign keys, which would delete rows when others are rewritten; add them after Finalize", ErrNotReady)
	}
	rows, err := s.List(ctx, "SELECT "+s.Database.Quote(t.Key)+" FROM "+s.Database.Quote(to.Present())+" LIMIT 1")
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%w: it is not empty", ErrNotReady)
	}
	return err
}
