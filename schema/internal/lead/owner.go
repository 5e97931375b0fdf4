// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// ErrOwned says that another job has a table of the source. Register has inserted nothing,
// neither now nor earlier.
var ErrOwned = fmt.Errorf("%w: a table belongs to one job", backend.ErrNotReady)

// CheckOwner refuses tables that another job has: two jobs with the same shards would
// remove each other's rows as strays, and an Abort of one would empty the tables from which
// the other serves. In a transaction, the answer stays true until the end, if it has called
// lockJobs.
func CheckOwner(ctx context.Context, s *backend.Session, of string, tables []string) error {
	return s.Each(ctx, func(rows *sql.Rows) error {
		var job, name string
		if err := rows.Scan(&job, &name); err != nil {
			return err
		}
		for _, table := range tables {
			if strings.EqualFold(table, name) || strings.EqualFold(table, backend.Retired(name)) {
				return fmt.Errorf("%w: %s is of job %s; go on with that one by its name, or abort it", ErrOwned, table, job)
			}
		}
		return nil
	}, "SELECT s.job, s.name FROM "+backend.SpanTable+" s JOIN "+backend.JobTable+" j ON j.job = s.job WHERE s.job <> ? AND j.phase <> ?"+s.Database.LockRead(),
		of, string(proto.Finalized))
}

// lockJobs makes all jobs of the source wait for the end of the transaction.
func lockJobs(ctx context.Context, s *backend.Session) error {
	return s.Exec(ctx, "UPDATE "+s.Database.Fence+" SET epoch = epoch")
}

// Own stores in the databases with shards that their tables are this job's. It refuses
// tables of another job, whatever its source is: equal ids of two sources would be taken
// for one row.
func (l *Leader) Own(ctx context.Context) error {
	return l.eachOwned(ctx, func(s *backend.Session, to *openjob.Target) error {
		if err := s.Ensure(ctx, backend.OwnerTable, "name, job, owner", to.Name, l.job.Name, l.term.mark); err != nil {
			return err
		}
		job, mark, err := OwnerOf(ctx, s, to.Name)
		if err != nil || l.is(job, mark) {
			return err
		}
		if job == l.job.Name {
			job += " of another source"
		}
		return fmt.Errorf("%w: it belongs to job %s; give this one tables of its own, or abort that one. "+
			"When that source is gone for good and nobody needs the rows, DELETE FROM %s WHERE name = '%s' there", backend.ErrNotReady, job, backend.OwnerTable, to.Name)
	})
}

// Disown makes the tables of the job available to others.
func (l *Leader) Disown(ctx context.Context) error {
	return l.eachOwned(ctx, func(s *backend.Session, to *openjob.Target) error {
		return s.Exec(ctx, "DELETE FROM "+backend.OwnerTable+" WHERE name = ? AND job = ? AND owner = ?", to.Name, l.job.Name, l.term.mark)
	})
}

// eachOwned runs f for each table of the shards, in a transaction that checks that this
// runner leads.
func (l *Leader) eachOwned(ctx context.Context, f func(*backend.Session, *openjob.Target) error) error {
	for _, t := range l.job.Tables {
		for _, to := range t.Targets {
			if err := l.On(ctx, to.Database, func(s *backend.Session) error { return f(s, to) }); err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.Name, to.Database.Label, err)
			}
		}
	}
	return nil
}

// OwnerOf is the job that owns a table of a shard, "" for none. In a transaction, the
// answer stays true until the end.
func OwnerOf(ctx context.Context, c *backend.Session, name string) (job, mark string, err error) {
	err = c.QueryRowContext(ctx, "SELECT job, owner FROM "+backend.OwnerTable+" WHERE name = ?"+c.Database.LockRead(), name).Scan(&job, &mark)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return job, mark, err
}

// is reports whether the job and the mark are this one's.
func (l *Leader) is(job, mark string) bool { return job == l.job.Name && mark == l.term.mark }

// Owns reports whether a table of the shards is this job's.
func (l *Leader) Owns(ctx context.Context, s *backend.Session, to *openjob.Target) (bool, error) {
	job, mark, err := OwnerOf(ctx, s, to.Name)
	return err == nil && l.is(job, mark), err
}
