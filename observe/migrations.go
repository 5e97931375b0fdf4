// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

// Migration is a job whose status can be read; a *migrate.Job is one.
type Migration interface {
	Status(ctx context.Context) (migrate.Status, error)
}

// Migrations are the metrics of migrations. [Migrations.Watch] reads the status of each job
// periodically, so reading the metrics queries no database. It is safe for concurrent use.
type Migrations struct {
	jobs map[string]Migration

	mu   sync.Mutex
	last map[string]reading
}

// reading is the last status of a job.
type reading struct {
	migrate.Status

	read time.Time // zero until the status was read once
	up   bool      // the last attempt succeeded
}

// NewMigrations returns the metrics of these jobs. The keys are the values of the label migration.
func NewMigrations(jobs map[string]Migration) *Migrations {
	return &Migrations{jobs: maps.Clone(jobs), last: map[string]reading{}}
}

// readTimeout limits the time that reading the status of one job may take.
const readTimeout = 10 * time.Second

// Watch reads the status of each job, at once and then at this interval, until ctx ends. The
// interval 0 means 15 seconds. When a job does not answer within ten seconds, its metrics keep
// their values, except that shardid_migration_up becomes 0.
func (m *Migrations) Watch(ctx context.Context, every time.Duration) {
	again := time.NewTicker(cmp.Or(max(every, 0), 15*time.Second))
	defer again.Stop()
	for {
		var all sync.WaitGroup
		for name, job := range m.jobs {
			all.Go(func() { m.look(ctx, name, job) })
		}
		all.Wait()
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func (m *Migrations) look(ctx context.Context, name string, job Migration) {
	ctx, done := context.WithTimeout(ctx, readTimeout)
	defer done()
	status, err := job.Status(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.last[name]
	if r.up = err == nil; r.up {
		r.Status, r.read = status, time.Now()
	}
	m.last[name] = r
}

// migrationMetric is a metric with at most one sample per job.
type migrationMetric struct {
	name, help string
	value      func(r reading) (v float64, has bool)
}

// known is a metric of a job whose status was read once.
func known(value func(r reading) (float64, bool)) func(reading) (float64, bool) {
	return func(r reading) (float64, bool) {
		if r.read.IsZero() {
			return 0, false
		}
		return value(r)
	}
}

func whole(n *int64) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

var migrationMetrics = []migrationMetric{
	{
		"shardid_migration_up", "1 when the last attempt to read the job's status succeeded, 0 when it failed.",
		func(r reading) (float64, bool) { return number(r.up), true },
	},
	{
		"shardid_migration_read_timestamp_seconds", "When the job's other metrics were read.",
		known(func(r reading) (float64, bool) { return unix(r.read), true }),
	},
	{
		"shardid_migration_copied_ratio", "The copied fraction of the rows, by the estimated sizes of the tables.",
		known(func(r reading) (float64, bool) { return r.Copied(), true }),
	},
	{
		"shardid_migration_remaining_seconds", "How long the copy will still take at the rate of the last minute.",
		known(func(r reading) (float64, bool) { return whole(r.Left) }),
	},
	{
		"shardid_migration_waiting_changes", "Changes that are not yet applied to the target.",
		known(func(r reading) (float64, bool) { return float64(r.Backlog), true }),
	},
	{
		"shardid_migration_lag_seconds", "An upper bound for the age of the oldest change that is not yet applied.",
		known(func(r reading) (float64, bool) { return whole(r.Lag) }),
	},
	{
		"shardid_migration_runner_up", "1 when a runner leads the job, 0 when no runner has sent a heartbeat lately.",
		known(func(r reading) (float64, bool) { return number(r.Runner != nil && r.Runner.Leads), true }),
	},
	{
		"shardid_migration_needs_runner", "1 when the job should have a runner and has none.",
		known(func(r reading) (float64, bool) { return number(r.NeedsRunner()), true }),
	},
	{
		"shardid_migration_throttled", "1 while the copy is throttled or paused.",
		known(func(r reading) (float64, bool) {
			return number(r.Paused || r.Runner != nil && r.Runner.Cause != ""), true
		}),
	},
	{
		"shardid_migration_switch_pause_seconds", "How long writers waited in the last switch.",
		known(func(r reading) (float64, bool) {
			if len(r.Switches) == 0 {
				return 0, false
			}
			return r.Switches[0].PauseMS / 1e3, true
		}),
	},
}

// phases are all phases of a job.
var phases = []migrate.Phase{
	migrate.PhaseNone, migrate.PhaseCopying, migrate.PhaseFollowing, migrate.PhaseSwitched, migrate.PhaseReturning, migrate.PhaseFinalized, migrate.PhaseAborted,
}

// families returns the metrics of migrations, sorted by the names of the jobs.
func (m *Migrations) families() []Family {
	readings, names := m.readings()
	all := []Family{{
		Name: "shardid_migration_phase", Help: "1 for the phase that the job is in, 0 for all others.",
		Type: Gauge, Labels: []string{"migration", "phase"},
	}}
	for _, name := range names {
		if r := readings[name]; !r.read.IsZero() {
			for _, p := range phases {
				all[0].Samples = append(all[0].Samples, Sample{Values: []string{name, string(p)}, Value: number(r.Phase == p)})
			}
		}
	}
	for _, metric := range migrationMetrics {
		f := Family{Name: metric.name, Help: metric.help, Type: Gauge, Labels: []string{"migration"}}
		for _, name := range names {
			if v, has := metric.value(readings[name]); has {
				f.Samples = append(f.Samples, Sample{Values: []string{name}, Value: v})
			}
		}
		all = append(all, f)
	}
	return all
}

func (m *Migrations) readings() (map[string]reading, []string) {
	if m == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.last), slices.Sorted(maps.Keys(m.last))
}
