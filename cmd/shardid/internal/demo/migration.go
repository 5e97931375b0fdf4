// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

// jobName is the name of the migration in its own tables.
const jobName = "demo"

// maxPause is how long writers may wait at the switch. It is only reached on an overloaded
// machine, and then the switch is tried again with slower writers.
const maxPause = 10 * time.Second

// attempts is how often the switch is tried.
const attempts = 10

func jobConfig(live *sql.DB, to *shards) migrate.Config {
	cfg := migrate.Config{Source: live, Shards: to.dbs, Name: jobName}
	for _, t := range to.router.Tables() {
		cfg.Tables = append(cfg.Tables, migrate.Table{Table: t})
	}
	return cfg
}

func (r *run) newJob() (*migrate.Job, error) {
	cfg := jobConfig(r.live, r.shards)
	cfg.Observe = func(s migrate.Step) {
		if s.Name == migrate.StepStored {
			r.copied.Add(s.Rows)
			r.Progress.Add(s.Rows)
		}
	}
	return migrate.New(cfg)
}

// migrate moves the tables to the shards while the writers are running.
func (r *run) migrate(ctx context.Context) error {
	ctx = r.traffic.start(ctx, r.apps)
	for _, phase := range []func(context.Context) error{r.write, r.copy, r.checkLive, r.cutover, r.serve, r.finalize} {
		if err := phase(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // an error of a writer, or the user's interrupt
			}
			return err
		}
	}
	return nil
}

// write starts the applications, which use the live database only.
func (r *run) write(ctx context.Context) error {
	r.Progress.Begin("write", r.traffic.staying(len(r.apps)))
	r.traffic.enter(beforeCopy)
	if err := r.traffic.share(ctx, beforeCopy); err != nil {
		return err
	}
	r.Progress.End(fmt.Sprintf("%d writers of two applications insert, update and delete from here on", len(r.traffic.writers)))
	return nil
}

func (r *run) copy(ctx context.Context) error {
	r.Progress.Begin("copy", r.result.SourceRows+r.traffic.staying(len(r.apps)))
	before := r.traffic.all()
	r.traffic.enter(whileCopying)
	if err := r.job.Run(ctx); err != nil {
		return err
	}
	if err := r.traffic.share(ctx, whileCopying); err != nil {
		return err
	}
	parent := r.source.tables[0]
	r.Progress.End(fmt.Sprintf("%s rows, some of them new, into %d databases × %d tables by %s.%s; %s", term.Number(r.copied.Load()), databases, tables/databases, parent.name, parent.key, r.meanwhile(before)))
	return nil
}

// meanwhile says how many changes the writers have made since then.
func (r *run) meanwhile(before Writes) string {
	return term.Number(r.traffic.all().changes()-before.changes()) + " rows changed meanwhile"
}

// checkLive follows the writers and compares all rows, until there are no differences.
func (r *run) checkLive(ctx context.Context) error {
	r.Progress.Begin("check", r.traffic.staying(len(r.apps)))
	before := r.traffic.all()
	r.traffic.enter(whileFollowing)
	var last migrate.Verification
	err := r.following(ctx, func() error {
		for {
			v, err := r.job.Verify(ctx)
			if err != nil {
				return err
			}
			last = v
			if v.Clean() || v.Requeued > 0 {
				return r.traffic.share(ctx, whileFollowing)
			}
		}
	})
	if err != nil {
		return err
	}
	if last.Requeued > 0 {
		return fmt.Errorf("the shards differ: %s", last.Divergences[0])
	}
	r.Progress.End(fmt.Sprintf("%s rows compared, all equal; %s", term.Number(last.Rows), r.meanwhile(before)))
	return nil
}

// following runs a function while changes are followed.
func (r *run) following(ctx context.Context, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	var err error
	following.Go(func() { err = r.job.Follow(ctx) })
	did := do()
	stop()
	following.Wait()
	return errors.Join(did, err)
}

// cutover is the only phase in which writers wait.
func (r *run) cutover(ctx context.Context) error {
	r.Progress.Begin("cutover", 0)
	r.traffic.pauseSince()
	for n := 1; ; n++ {
		done, err := r.job.Cutover(ctx, maxPause)
		if errors.Is(err, migrate.ErrNotReady) && n < attempts {
			r.traffic.slowDown()
			continue
		}
		if err != nil {
			return err
		}
		r.result.SwitchPauseMS = milliseconds(done.Pause)
		r.Progress.End(fmt.Sprintf("tables closed for %s ms; %s copied meanwhile, the rest before", term.Number(done.Pause.Round(time.Millisecond).Milliseconds()), term.Count(done.Drained, "change")))
		return nil
	}
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

// serve makes the shards serve, and keeps the source up to date for a rollback.
func (r *run) serve(ctx context.Context) error {
	r.Progress.Begin("serve", r.traffic.staying(len(r.apps)))
	before := r.traffic.all()
	r.traffic.enter(onShards)
	err := r.following(ctx, func() error {
		if err := r.traffic.share(ctx, onShards); err != nil {
			return err
		}
		r.traffic.stop()
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	r.storeWrites()
	r.Progress.End(r.meanwhile(before) + " on the shards, new ids generated; also copied back into the retired tables")
	return nil
}

// storeWrites stores the writers' numbers in the result.
func (r *run) storeWrites() {
	r.result.Apps = map[string]Writes{ViaGORM: r.traffic.by(ViaGORM), ViaSQLX: r.traffic.by(ViaSQLX)}
	all := r.traffic.all()
	r.result.InsertedGORM, r.result.InsertedSQLX = r.result.Apps[ViaGORM].Inserted, r.result.Apps[ViaSQLX].Inserted
	r.result.UpdatedRows, r.result.DeletedRows = all.Updated, all.Deleted
	r.result.LongestPauseMS = milliseconds(all.LongestPause)
}

func (r *run) finalize(ctx context.Context) error {
	r.Progress.Begin("finalize", 0)
	if err := r.job.Finalize(ctx); err != nil {
		return err
	}
	r.Progress.End("triggers and logs dropped")
	return nil
}
