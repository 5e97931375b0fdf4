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

// ErrOwned is that another job has a table of the source: Register has made nothing, now
// or before.
var ErrOwned = fmt.Errorf("%w: a table belongs to one job", backend.ErrNotReady)

// CheckOwner refuses tables that another job has: two that write to the same
// shards would take each other's rows for strays, and an Abort of one would empty
// what the other serves from. In a transaction the answer holds until its end, if
// all jobs of the source wait for it, as they do after lockJobs.
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

// lockJobs has all jobs of the source wait for the end of the transaction.
func lockJobs(ctx context.Context, s *backend.Session) error {
	return s.Exec(ctx, "UPDATE "+s.Database.Fence+" SET epoch = epoch")
}

// Own notes in the databases with shards that their tables are this job's. Those
// of another job are refused, whatever its source is: equal ids of two sources
// would be taken for one row.
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

// Disown gives the tables of the job free for others.
func (l *Leader) Disown(ctx context.Context) error {
	return l.eachOwned(ctx, func(s *backend.Session, to *openjob.Target) error {
		return s.Exec(ctx, "DELETE FROM "+backend.OwnerTable+" WHERE name = ? AND job = ? AND owner = ?", to.Name, l.job.Name, l.term.mark)
	})
}

// eachOwned runs f for each table of the shards, in a transaction in which this
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

// OwnerOf is the job that a table of a shard belongs to, "" for none. In a
// transaction it stays that until the end.
func OwnerOf(ctx context.Context, c *backend.Session, name string) (job, mark string, err error) {
	err = c.QueryRowContext(ctx, "SELECT job, owner FROM "+backend.OwnerTable+" WHERE name = ?"+c.Database.LockRead(), name).Scan(&job, &mark)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return job, mark, err
}

// is: the job and the mark are this one's.
func (l *Leader) is(job, mark string) bool { return job == l.job.Name && mark == l.term.mark }

// Owns reports whether a table of the shards is this job's.
func (l *Leader) Owns(ctx context.Context, s *backend.Session, to *openjob.Target) (bool, error) {
	job, mark, err := OwnerOf(ctx, s, to.Name)
	return err == nil && l.is(job, mark), err
}
