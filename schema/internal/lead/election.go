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

// term is the leadership of one runner, as the databases store it.
type term struct {
	job   string
	epoch int64
	mark  string // distinguishes the job, on shards, from one of the same name on another source
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
	for _, side := range sides { // the source first: it refuses the second of two runners that chose the same epoch
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

// claim raises the fence of the source. It fails when the epoch is not new, because another
// runner read the same one.
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

// fence reads the epoch of a database, 0 when it has none. It refuses a job of the same
// name on another source, whose logs and triggers would have the same names.
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

// raise stores the epoch in a database, unless that has a newer one.
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

// readMark reads the job's mark, and creates one when the job is led for the first time.
func (t *term) readMark(ctx context.Context, s *backend.Session) error {
	return s.Tx(ctx, func() error {
		if err := s.Ensure(ctx, s.Database.Fence, "job, epoch, owner", t.job, 0, rand.Text()); err != nil {
			return err
		}
		return s.QueryRowContext(ctx, "SELECT owner FROM "+s.Database.Fence+" WHERE job = ?", t.job).Scan(&t.mark)
	})
}

// check fails unless the runner still leads. In a transaction, the answer stays true until
// the end.
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

// led fails unless the runner with this epoch leads according to the fence of this
// database.
func led(s *backend.Database, epoch, fence int64) error {
	switch {
	case proto.Leads(epoch, fence):
		return nil
	case fence < epoch: // the database had this epoch when the runner began
		return fmt.Errorf("%w: database %s is as it was before this runner began: it was restored", openjob.ErrChanged, s.Label)
	}
	return ErrFenced
}

// makeTables creates the missing ones of a migration's own tables. The logs on the shards
// are used after the switch.
func makeTables(ctx context.Context, st *State) error {
	phase, err := st.ReadPhase(ctx)
	if err != nil || phase == proto.Finalized { // Finalize has dropped the logs
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
