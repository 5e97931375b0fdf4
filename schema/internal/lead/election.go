// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// term is what databases know the leadership of one runner by.
type term struct {
	job   string
	epoch int64
	mark  string // by which shards know the job from one of this name on another source
}

// elect begins a term with a higher epoch than any database has seen.
func elect(ctx context.Context, j *openjob.Job) (*term, error) {
	t := &term{job: j.Name}
	if err := j.Source.Do(ctx, func(s *backend.Session) error { return t.readMark(ctx, s) }); err != nil {
		return nil, err
	}
	sides := append([]*backend.Database{j.Source}, j.Shards...)
	for _, side := range sides {
		err := side.Do(ctx, func(s *backend.Session) error {
			seen, err := t.fence(ctx, s)
			t.epoch = max(t.epoch, seen)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	t.epoch++
	for _, side := range sides { // the source first: two that chose one epoch meet there
		err := side.Do(ctx, func(s *backend.Session) error {
			if side == j.Source {
				return t.claim(ctx, s)
			}
			return t.raise(ctx, s)
		})
		if err != nil {
			return nil, fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return t, nil
}

// claim raises the fence of the source, where the epoch must be new, or another runner
// that read the same one would have it too.
func (t *term) claim(ctx context.Context, s *backend.Session) error {
	return s.Tx(ctx, func() error {
		result, err := s.ExecContext(ctx, "UPDATE "+s.Database.Fence+" SET epoch = ? WHERE job = ? AND epoch < ?", t.epoch, t.job, t.epoch)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return ErrFenced
		}
		return nil
	})
}

// fence reads the epoch of a database, 0 when it has none. A job of the same name
// on another source has its own logs and triggers under the same names.
func (t *term) fence(ctx context.Context, s *backend.Session) (epoch int64, err error) {
	var mark string
	err = s.QueryRowContext(ctx, "SELECT epoch, owner FROM "+s.Database.Fence+" WHERE job = ?"+s.Database.LockRead(), t.job).Scan(&epoch, &mark)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil && mark != t.mark {
		err = fmt.Errorf("%w: another source has a job %s with shards in this database: give this one another name and tables of its own, "+
			"or, when the other is gone for good, DELETE FROM %s WHERE job = '%s' here", backend.ErrNotReady, t.job, s.Database.Fence, t.job)
	}
	return epoch, err
}

// raise makes the epoch that of a database, unless a newer one is there.
func (t *term) raise(ctx context.Context, s *backend.Session) error {
	return s.Tx(ctx, func() error {
		if err := s.Ensure(ctx, s.Database.Fence, "job, epoch, owner", t.job, 0, t.mark); err != nil {
			return err
		}
		if _, err := t.fence(ctx, s); err != nil {
			return err
		}
		if err := s.Exec(ctx, "UPDATE "+s.Database.Fence+" SET epoch = ? WHERE job = ? AND epoch < ?", t.epoch, t.job, t.epoch); err != nil {
			return err
		}
		return t.check(ctx, s)
	})
}

// readMark reads the job's mark, and makes one when the job is first led.
func (t *term) readMark(ctx context.Context, s *backend.Session) error {
	return s.Tx(ctx, func() error {
		if err := s.Ensure(ctx, s.Database.Fence, "job, epoch, owner", t.job, 0, rand.Text()); err != nil {
			return err
		}
		return s.QueryRowContext(ctx, "SELECT owner FROM "+s.Database.Fence+" WHERE job = ?", t.job).Scan(&t.mark)
	})
}

// check fails unless the runner still leads. In a
// transaction the answer holds until its end.
func (t *term) check(ctx context.Context, s *backend.Session) error {
	query := "SELECT epoch FROM " + s.Database.Fence + " WHERE job = ?"
	if !s.Locked || s.Database.Undoes() { // otherwise the table is locked
		query += s.Database.LockRead()
	}
	fence, err := s.Number(ctx, query, t.job)
	if err != nil {
		return err
	}
	return led(s.Database, t.epoch, fence)
}

// led fails unless the runner of the epoch leads by the fence of this database.
func led(s *backend.Database, epoch, fence int64) error {
	switch {
	case proto.Leads(epoch, fence):
		return nil
	case fence < epoch: // it knew of this runner before
		return fmt.Errorf("%w: database %s is as it was before this runner began: it was restored", openjob.ErrChanged, s.Label)
	}
	return ErrFenced
}

// makeTables creates what is missing of a migration's own tables. The logs of
// the shards are used after the switch.
func makeTables(ctx context.Context, st *State) error {
	phase, err := st.ReadPhase(ctx)
	if err != nil || phase == proto.Finalized { // which has dropped the logs
		return err
	}
	if err := st.Source.Do(ctx, func(s *backend.Session) error { return create(ctx, s, st.SourceTables()) }); err != nil {
		return fmt.Errorf("create the tables of the job on the source: %w", err)
	}
	for _, side := range st.Shards {
		if err := side.Do(ctx, func(s *backend.Session) error { return create(ctx, s, side.ShardTables(st.BackTable())) }); err != nil {
			return fmt.Errorf("create the tables of the job on %s: %w", side.Label, err)
		}
	}
	return nil
}

// create executes statements that several runners may execute at the same time.
func create(ctx context.Context, s *backend.Session, statements []string) error {
	for _, text := range statements {
		if err := sqlrun.Create(ctx, s, text); err != nil {
			return err
		}
	}
	return nil
}
