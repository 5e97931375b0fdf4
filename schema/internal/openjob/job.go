// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/sharding"
)

// Config says what a job moves, and where to.
type Config struct {
	Name   string // part of the names of its tables and triggers
	Source *sql.DB
	Shards sharding.DBs
	Tables []TableConfig
	// Observe is called after each step with its name, the table or "", and how many rows it
	// wrote.
	Observe func(step, table string, rows int64)
	// Waits is called with the reason why a database is waited for, and with nil when the wait
	// is over.
	Waits func(cause error)
	// RowError turns an error into one about a row of a table.
	RowError func(table string, id int64, err error) error
	// Progress reads from the source how far the job is; nil for one that was never begun.
	Progress func(ctx context.Context, s *backend.Session) (Progress, error)
}

// Progress is how far a job is.
type Progress struct {
	Begun    bool // and not ended
	Switched bool // begun, and the rows are in the retired tables
}

// Job is a job with its databases opened and its tables described. Close it.
type Job struct {
	Name   string // part of the names of its tables and triggers
	Source *backend.Database
	Shards []*backend.Database // those with shards, in the order of the targets
	Tables Tables

	// Copied is how many rows were copied since the job was opened, and Followed how many
	// changes were applied.
	Copied, Followed atomic.Int64

	tell     func(step, table string, rows int64)
	waits    func(cause error)
	rowError func(table string, id int64, err error) error
	progress func(ctx context.Context, s *backend.Session) (Progress, error)
}

// Open describes the tables under their present names: their own or, after the switch, the
// retired ones.
func Open(ctx context.Context, c Config) (*Job, error) {
	source, err := backend.Open(ctx, "source", backend.FenceTable, c.Source)
	if err != nil {
		return nil, err
	}
	j := New(c, source)
	byName := map[string]*backend.Database{}
	for _, conf := range c.Tables {
		t := j.AddTable(conf)
		for _, at := range conf.Map.Targets() {
			if byName[at.DB] == nil {
				if byName[at.DB], err = j.AddShards(ctx, at.DB, c.Shards[at.DB]); err != nil {
					return nil, err
				}
			}
			t.AddTarget(at, byName[at.DB])
		}
	}
	if err := j.survey(ctx); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// New returns a job without tables, for callers that describe them.
func New(c Config, source *backend.Database) *Job {
	source.Waits = c.Waits
	return &Job{Name: c.Name, Source: source, tell: c.Observe, waits: c.Waits, rowError: c.RowError, progress: c.Progress}
}

// Described returns a job with described tables and without shards.
func Described(c Config, source *backend.Database, shapes []backend.Table) (*Job, error) {
	j := New(c, source)
	for i, shape := range shapes {
		j.AddTable(c.Tables[i]).Table = shape
	}
	return j, j.Tables.resolve(source)
}

// AddShards opens a database with shards, and returns it.
func (j *Job) AddShards(ctx context.Context, label string, db *sql.DB) (*backend.Database, error) {
	side, err := backend.Open(ctx, label, backend.ShardFenceTable, db)
	if err == nil {
		err = backend.CheckKinds(j.Source, side)
	}
	if err == nil {
		side.Waits = j.waits
		j.Shards = append(j.Shards, side)
	}
	return side, err
}

// AddTable adds a table, which is not described yet.
func (j *Job) AddTable(conf TableConfig) *Table {
	t := &Table{Number: len(j.Tables), Conf: conf, index: map[sharding.Target]int{}, rowError: j.rowError}
	j.Tables = append(j.Tables, t)
	return t
}

// survey reads where the tables are.
func (j *Job) survey(ctx context.Context) error {
	if err := j.Source.Do(ctx, func(s *backend.Session) error { return j.describe(ctx, s) }); err != nil {
		return err
	}
	if err := j.separate(ctx); err != nil {
		return err
	}
	return j.EachTarget(ctx, func(s *backend.Session, t *Table, i int) (err error) {
		t.Targets[i].Sealed, err = s.Database.Exists(ctx, s, backend.Sealed(t.Targets[i].Name))
		return err
	})
}

// Renamed reports whether a table has another name than it had when the job was opened.
func Renamed(ctx context.Context, j *Job) (is bool, _ error) {
	err := j.Source.Do(ctx, func(s *backend.Session) error {
		for _, t := range j.Tables {
			name, err := presentName(ctx, s, j, t.Conf.Name)
			if err != nil {
				return err
			}
			is = is || !strings.EqualFold(name, t.Name)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	err = j.EachTarget(ctx, func(s *backend.Session, t *Table, i int) error {
		sealed, err := s.Database.Exists(ctx, s, backend.Sealed(t.Targets[i].Name))
		is = is || sealed != t.Targets[i].Sealed
		return err
	})
	return is, err
}

// separate refuses shards in the source's place: a SQLite file has one writer at a time, so
// nothing could be written to them while the source is locked. In a database of a server
// they need names of their own.
func (j *Job) separate(ctx context.Context) error {
	var home string
	err := j.Source.Do(ctx, func(s *backend.Session) (err error) {
		home, err = s.Place(ctx)
		return err
	})
	if err != nil || home == "" {
		return err
	}
	for _, side := range j.Shards {
		err := side.Do(ctx, func(s *backend.Session) error {
			is, err := s.Place(ctx)
			if err != nil || is != home {
				return err
			}
			return j.beside(side)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// beside returns an error when shards of a database cannot be where the source is.
func (j *Job) beside(of *backend.Database) error {
	if of.Name() == "sqlite" {
		return fmt.Errorf("%w: database %s is the same file as the source; shards need files of their own", backend.ErrUnsupported, of.Label)
	}
	for _, to := range j.TargetsOn(of) {
		if slices.ContainsFunc(j.Tables, func(t *Table) bool { return strings.EqualFold(t.Conf.Name, to.Name) }) {
			return fmt.Errorf("%w: shard %s on %s is the table of the source itself; shards in its database need names of their own", backend.ErrConfig, to.Name, of.Label)
		}
	}
	return nil
}

// Close discards the connections of the job.
func (j *Job) Close() {
	j.Source.Close()
	for _, s := range j.Shards {
		s.Close()
	}
}

func (j *Job) describe(ctx context.Context, s *backend.Session) error {
	for _, t := range j.Tables {
		name, err := presentName(ctx, s, j, t.Conf.Name)
		if err != nil {
			return err
		}
		if t.Table, err = s.Database.Describe(ctx, s, name); err != nil {
			return renamedMeanwhile(err)
		}
		if j.Source.Name() == "mysql" {
			continue
		}
		if err := CheckTriggers(t.Table); err != nil {
			return err
		}
	}
	if err := j.Tables.resolve(j.Source); err != nil {
		return err
	}
	return j.Tables.checkOwnTriggers()
}

// renamedMeanwhile makes a missing table a temporary error: a switch of a runner that was
// killed may go on in its server, between the reading of a name and that of its table.
func renamedMeanwhile(err error) error {
	if errors.Is(err, backend.ErrNoTable) {
		return fmt.Errorf("%w: %w", backend.ErrAgain, err)
	}
	return err
}

// PresentName is the present name of a configured table on the source. It checks the first
// of the two names again at the end, as a rename may have happened meanwhile.
func PresentName(ctx context.Context, s *backend.Session, of string) (string, error) {
	for _, name := range []string{of, backend.Retired(of), of} {
		if there, err := s.Database.Exists(ctx, s, name); err != nil || there {
			return name, err
		}
	}
	return "", fmt.Errorf("%w: the source has no table %s; check the spelling, and which database the source is", backend.ErrConfig, of)
}

// presentName is PresentName of a table of a job. After the switch, a table of the configured name
// beside the retired one is somebody else's.
func presentName(ctx context.Context, s *backend.Session, j *Job, of string) (string, error) {
	name, err := PresentName(ctx, s, of)
	missing := errors.Is(err, backend.ErrConfig)
	if err != nil && !missing || err == nil && !strings.EqualFold(name, of) || j.progress == nil {
		return name, err
	}
	p, failed := j.progress(ctx, s)
	switch {
	case failed != nil:
		return "", failed
	case missing && p.Begun:
		return "", fmt.Errorf("%w: the source has neither %s nor %s, so somebody has renamed the table: rename it back", ErrUnclear, of, backend.Retired(of))
	case missing || !p.Switched:
		return name, err
	}
	retired, err := s.Database.Exists(ctx, s, backend.Retired(of))
	if err == nil && retired {
		name = backend.Retired(of)
	}
	return name, err
}

// CheckTriggers fails when a table has user triggers, which the shards would not have.
func CheckTriggers(t backend.Table) error {
	for _, name := range t.Triggers {
		if !strings.HasPrefix(name, "shardid_") {
			return fmt.Errorf("%w: table %s has the trigger %s, which the shards would not have; move what it does into the application", backend.ErrUnsupported, t.Name, name)
		}
	}
	return nil
}

// Observe reports a step of one table, or of all with nil.
func (j *Job) Observe(step string, t *Table, rows int64) {
	name := ""
	if t != nil {
		name = t.Conf.Name
	}
	switch step {
	case StepStored:
		j.Copied.Add(rows)
	case StepApplied:
		j.Followed.Add(rows)
	}
	j.tell(step, name, rows)
}

// TargetsOn are the tables of the shards in one database.
func (j *Job) TargetsOn(side *backend.Database) []*Target {
	var all []*Target
	for _, t := range j.Tables {
		for _, to := range t.Targets {
			if to.Database == side {
				all = append(all, to)
			}
		}
	}
	return all
}

// EachTarget runs f for each table of the shards, in turn; i is its index in t.
func (j *Job) EachTarget(ctx context.Context, f func(s *backend.Session, t *Table, i int) error) error {
	do := func(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
		return side.Do(ctx, f)
	}
	return j.Tables.EachTarget(ctx, do, f)
}

// EachTarget is that of a job, with another function than Do.
func (all Tables) EachTarget(ctx context.Context, do func(context.Context, *backend.Database, func(*backend.Session) error) error, f func(s *backend.Session, t *Table, i int) error) error {
	for _, t := range all {
		for i, to := range t.Targets {
			if err := do(ctx, to.Database, func(s *backend.Session) error { return f(s, t, i) }); err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.Name, to.Database.Label, err)
			}
		}
	}
	return nil
}

// EachDatabase runs f for all databases of shards at once, with the tables of each.
func (j *Job) EachDatabase(ctx context.Context, f func(ctx context.Context, side *backend.Database, all []*Target) error) error {
	tasks := make([]func(context.Context) error, len(j.Shards))
	for i, side := range j.Shards {
		all := j.TargetsOn(side)
		tasks[i] = func(ctx context.Context) error {
			if err := f(ctx, side, all); err != nil {
				return fmt.Errorf("shards on %s: %w", side.Label, err)
			}
			return nil
		}
	}
	return backend.Together(ctx, tasks...)
}

// Names are the names of the tables in the configuration.
func (all Tables) Names() []string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Conf.Name
	}
	return names
}

// HaveServed reports whether the shards have served before: only a rollback closes shards,
// of this job or of an earlier one.
func (all Tables) HaveServed() bool {
	return slices.ContainsFunc(all, func(t *Table) bool {
		return slices.ContainsFunc(t.Targets, func(to *Target) bool { return to.Sealed })
	})
}
