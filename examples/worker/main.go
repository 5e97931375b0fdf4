// SPDX-License-Identifier: Apache-2.0

// Worker runs jobs of all users. The table of jobs is sharded by user, so that a job is added in the same transaction
// as the user's other rows: go run ./worker, or with two databases, go run ./worker -east DSN -west DSN.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

func main() {
	setup.Run(func(ctx context.Context) error { return run(ctx, setup.Parse()) })
}

// job is a row of jobs_0, …, jobs_7. It may be taken from FreeAt on, in milliseconds since 1970.
type job struct {
	ID     keygen.ID `db:"id" keygen:""`
	UserID int64     `db:"user_id"`
	Kind   string    `db:"kind"`
	FreeAt int64     `db:"free_at"`
}

// lease is how long a worker may run a job before another worker takes it.
const lease = time.Minute

//go:embed migrations
var migrations embed.FS

// queue has the jobs of all users.
type queue struct {
	db     *sqlx.DB
	hook   *sqlxhook.Hook
	router *sharding.Router
	locks  string // the end of a query that locks the row that it finds
}

func run(ctx context.Context, f setup.Flags) (err error) {
	s, err := setup.Open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	q, err := open(ctx, s)
	if err != nil {
		return err
	}
	for user := range int64(40) {
		if err := q.add(ctx, user, "mail"); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failed := make([]error, 4)
	for n := range failed {
		all.Go(func() {
			failed[n] = q.work(ctx, func(j job) error {
				slog.Info("done", "worker", n, "job", j.ID, "user", j.UserID)
				return nil
			})
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func open(ctx context.Context, s *setup.Shop) (*queue, error) {
	tables, err := sharding.Spread([]string{"east", "west"}, setup.Slots, "jobs_%d")
	if err != nil {
		return nil, err
	}
	dbs := sharding.DBs{"east": s.Home, "west": s.Router.DB("west")}
	router, err := sharding.New(dbs, sharding.Table{Name: "jobs", Key: "user_id", Rule: sharding.Mod(setup.Slots), Map: tables})
	if err != nil {
		return nil, err
	}
	if err := makeTables(ctx, router); err != nil {
		return nil, err
	}
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: s.IDs}, Router: router})
	if err != nil {
		return nil, err
	}
	q := &queue{db: sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: s.Home}), s.Driver), hook: hook, router: router}
	if s.Driver == "mysql" { // a transaction of SQLite locks the whole file
		q.locks = " FOR UPDATE SKIP LOCKED"
	}
	return q, nil
}

func makeTables(ctx context.Context, router *sharding.Router) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	runner, err := versions.New(ctx, versions.Config{Router: router, Files: files})
	if err != nil {
		return err
	}
	return runner.Up(ctx, runner.Newest())
}

func (q *queue) add(ctx context.Context, user int64, kind string) error {
	_, err := q.hook.Insert(ctx, q.db, "jobs", &job{UserID: user, Kind: kind, FreeAt: time.Now().UnixMilli()})
	return err
}

// work runs jobs until none is free.
func (q *queue) work(ctx context.Context, do func(job) error) error {
	for {
		j, err := q.take(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // a program that stays waits here, and tries again
		}
		if err != nil {
			return err
		}
		if err := do(j); err != nil {
			return err // when the lease has ended, another worker takes the job
		}
		if err := q.finish(ctx, j); err != nil {
			return err
		}
	}
}

// take takes a job of any user, for the duration of a lease. It asks the shards in random order, because the jobs of the last
// ones would wait for all others. A shard that fails does not keep workers from the jobs of the others.
func (q *queue) take(ctx context.Context) (job, error) {
	var failed error
	shards := q.router.Targets("jobs")
	for _, n := range rand.Perm(len(shards)) {
		j, err := q.takeOn(sharding.On(ctx, shards[n])) // its statements go to this shard
		if err == nil {
			return j, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			failed = errors.Join(failed, err)
		}
	}
	return job{}, cmp.Or(failed, sql.ErrNoRows)
}

// takeOn takes a job of the shard that the context names. Rows that other workers are taking are skipped.
func (q *queue) takeOn(ctx context.Context) (j job, err error) {
	tx, err := q.db.BeginTxx(ctx, nil)
	if err != nil {
		return j, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	now := time.Now()
	err = tx.GetContext(ctx, &j, "SELECT id, user_id, kind, free_at FROM jobs WHERE free_at <= ? ORDER BY free_at LIMIT 1"+q.locks, now.UnixMilli())
	if err != nil {
		return j, err
	}
	j.FreeAt = now.Add(lease).UnixMilli()
	if _, err := tx.ExecContext(ctx, "UPDATE jobs SET free_at = ? WHERE id = ?", j.FreeAt, j.ID); err != nil {
		return j, err
	}
	return j, tx.Commit()
}

// batch is how many rows one statement of purge deletes, so that it holds few locks, and for a short time.
const batch = 500

// purgeBatch has a derived table because MySQL deletes no rows of a table that a subquery of the statement reads.
const purgeBatch = "DELETE FROM jobs WHERE id IN (SELECT id FROM (SELECT id FROM jobs WHERE free_at < ? ORDER BY free_at LIMIT ?) AS old)"

// purge deletes jobs that have been free since a time before, which no worker could finish.
func (q *queue) purge(ctx context.Context, before time.Time) (failed error) {
	for _, shard := range q.router.Targets("jobs") {
		for more := true; more; {
			done, err := q.db.ExecContext(sharding.On(ctx, shard), purgeBatch, before.UnixMilli(), batch)
			if err != nil {
				failed = errors.Join(failed, err) // the next night deletes the rest
				break
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			more = n == batch
		}
	}
	return failed
}

// finish deletes a job, unless the lease has ended and another worker has taken it. The sharding key leads to its shard.
func (q *queue) finish(ctx context.Context, j job) error {
	_, err := q.db.ExecContext(ctx, "DELETE FROM jobs WHERE user_id = ? AND id = ? AND free_at = ?", j.UserID, j.ID, j.FreeAt)
	return err
}
