// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/sharding"
)

// Config describes a migration. Every runner of a job, on whatever host, must
// be given the same one: see SetupError.
type Config struct {
	// Source is the database with the tables that are to be sharded. The job takes a handful of
	// connections of its own from it: a pool that may open fewer than 4 is ErrConfig. There is no default.
	Source *sql.DB

	// Shards are the databases of the targets, by the names that the maps of Tables use. Their pools
	// may open at least 4 connections, too. There is no default.
	Shards sharding.DBs

	// Tables are the tables that move together: all tables that foreign keys connect, parents
	// first. There is no default.
	Tables []Table

	// IDs says how the ids of tables without their own IDs change. Defaults to KeepIDs.
	IDs IDs

	// Name identifies the job and is part of the names of its tables. Letters, digits and _,
	// at most 32. Defaults to the name of the first table.
	Name string

	// ChunkRows is how many rows are copied at once, at most; of large rows, as many as fit
	// into memory. Defaults to 4000; at most 100,000.
	ChunkRows int

	// Copiers is how many chunks are copied at once. Defaults to 2; at most 16. On SQLite
	// there is always one.
	Copiers int

	// Throttle is called before each chunk is copied. It returns when the copy may continue;
	// its error ends the run. Several goroutines call it. Following changes and comparing rows
	// do not call it. A throttle.Throttle of schema/throttle waits for replicas, threads and
	// commits. Defaults to no throttling.
	Throttle func(ctx context.Context) error

	// Cause says why Throttle waits at the moment, "" when it does not. The leading
	// runner notes it on the source, where [Job.Status] finds it. It is called every few
	// seconds by another goroutine than those of Throttle. Defaults to no cause.
	Cause func() string

	// Ready is called during a Cutover, when writers are locked out and all their changes are
	// on the shards. It gets the highest id of each table there, by the table's name; 0 for a
	// table without an id above zero. Its error, wrapped in an ErrNotReady, cancels the
	// switch. Use it to make sure that the generator which numbers the rows from then on is
	// beyond those ids. It runs during the pause, so it should take milliseconds. It must
	// neither write to the source nor read the job's tables and sharding.RouteTable there,
	// which are locked. Defaults to no check.
	Ready func(ctx context.Context, highest map[string]int64) error

	// Observe is called after each step, by the goroutine that made it; the time it takes is
	// added to the step. Defaults to no call.
	Observe func(Step)
}

// Table is one table of a migration.
type Table struct {
	// Table says where rows go: Name is the table on the source, Key the column with the
	// sharding key, and Rule and Map are those by which the application will route. Where ids
	// change, the rule gets the new ids.
	sharding.Table

	// IDs says how the values of the primary key change. Defaults to Config.IDs.
	IDs IDs

	// Via is for a child whose rows lie in the shard of their parents: the column that refers
	// to the parent, a table of the job. Key is then the column of the parent, or of the
	// parent's parent if that table has a Via, too. On MariaDB and MySQL the column needs a
	// foreign key. After the switch applications reach such rows only under the hint
	// sharding.OnKey and cannot insert any, unless the ids of the parents carry the slot;
	// Inspect warns of it. Defaults to "": Key is a column of the table.
	Via string

	// References are columns that hold ids of tables of the job without a foreign key. Where
	// ids change, columns that are left out here keep the old ids. Defaults to none.
	References []Reference
}

// Reference is a column of a table that holds the id of a row of another one, or
// of its own.
type Reference struct {
	// Column is the referring column.
	Column string
	// Table is the table of the job whose primary key it holds.
	Table string
}

// Step is a point of a migration, for Config.Observe.
type Step struct {
	Name  string // a Step constant
	Table string // "" for a step of all tables
	Rows  int64  // rows that the step wrote, compared or, with StepInspected, read
	Of    int64  // with StepInspected: estimate of how many rows Inspect reads in all, each several times
	Err   error  // why a StepWaiting waits, nil when the wait is over
}

// The steps of a run, in the order in which they first happen. Their texts are their names
// without Step, in lower case: "leading".
const (
	StepLeading    = openjob.StepLeading    // the runner is elected, older runners are fenced
	StepBegun      = openjob.StepBegun      // the job has begun: its phase is stored
	StepPruned     = openjob.StepPruned     // what a crash left half done was removed
	StepBlocked    = openjob.StepBlocked    // triggers could not be created, mostly because of a transaction on the table; this is retried
	StepBound      = openjob.StepBound      // a chunk's bound is stored
	StepSnapshot   = openjob.StepSnapshot   // a chunk was read
	StepStored     = openjob.StepStored     // a chunk is on the targets
	StepApplied    = openjob.StepApplied    // changes are on the targets, their entries are still in the log
	StepAcked      = openjob.StepAcked      // entries were deleted
	StepLocked     = openjob.StepLocked     // writers wait
	StepDrained    = openjob.StepDrained    // the log is empty
	StepRenamed    = openjob.StepRenamed    // the tables are closed
	StepFlipped    = openjob.StepFlipped    // the route was changed
	StepSealing    = openjob.StepSealing    // a rollback closes the shards next
	StepSealed     = openjob.StepSealed     // the shards are closed
	StepReinstated = openjob.StepReinstated // the source's tables are back
	StepWaiting    = openjob.StepWaiting    // a database was unreachable, or others held locks or prepared transactions, for a second; this is retried, and the step is reported once more without an Err when the wait is over
	StepCompared   = openjob.StepCompared   // Verify has compared rows, which it did not write
	StepUndone     = openjob.StepUndone     // an unfinished switch of another runner could not be finished, and was undone
	StepInspected  = openjob.StepInspected  // Inspect has read the rows of a table once
)

const (
	defaultChunkRows = 4000
	maxChunkRows     = 100_000
	defaultCopiers   = 2
	maxCopiers       = 16
)

func (c Config) withDefaults() Config {
	if c.Name == "" && len(c.Tables) > 0 {
		c.Name = c.Tables[0].Name
	}
	if c.ChunkRows == 0 {
		c.ChunkRows = defaultChunkRows
	}
	if c.Copiers == 0 {
		c.Copiers = defaultCopiers
	}
	c.Tables = slices.Clone(c.Tables)
	for i := range c.Tables {
		if c.Tables[i].IDs.by == nil {
			c.Tables[i].IDs = c.IDs
		}
	}
	if c.Throttle == nil {
		c.Throttle = func(context.Context) error { return nil }
	}
	if c.Observe == nil {
		c.Observe = func(Step) {}
	}
	return c
}

// known is the configuration in the form that package openjob takes.
func (c Config) known() openjob.Config {
	to := openjob.Config{
		Name: c.Name, Source: c.Source, Shards: c.Shards, Observe: c.tell, Waits: c.waits, RowError: rowError,
		Progress: lead.ProgressOf(c.Name),
	}
	for _, t := range c.Tables {
		to.Tables = append(to.Tables, t.known())
	}
	return to
}

func (c Config) tell(step, table string, rows int64) {
	c.Observe(Step{Name: step, Table: table, Rows: rows})
}

func (c Config) inspected(table string, rows, of int64) {
	c.Observe(Step{Name: StepInspected, Table: table, Rows: rows, Of: of})
}

func (c Config) waits(cause error) { c.Observe(Step{Name: StepWaiting, Err: cause}) }

func rowError(table string, id int64, err error) error { return &RowError{table, id, err} }

func (t Table) known() openjob.TableConfig {
	to := openjob.TableConfig{Table: t.Table, IDs: t.IDs.by, Via: t.Via}
	for _, r := range t.References {
		to.References = append(to.References, openjob.Reference(r))
	}
	return to
}

var jobName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

func (c Config) validate() error {
	var errs []error
	add := func(bad bool, text string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	add(c.Source == nil, "Source: is nil")
	add(len(c.Shards) == 0, "Shards: there are none")
	add(len(c.Tables) == 0, "Tables: there are none")
	add(!jobName.MatchString(c.Name), "Name: %q is not a plain name of at most 32 letters", c.Name)
	add(c.ChunkRows < 1 || c.ChunkRows > maxChunkRows, "ChunkRows: %d is not from 1 to %d", c.ChunkRows, maxChunkRows)
	add(c.Copiers < 1 || c.Copiers > maxCopiers, "Copiers: %d is not from 1 to %d", c.Copiers, maxCopiers)
	if len(c.Tables) > 0 {
		_, err := sharding.New(c.Shards, sharding.Tables(c.logical()...))
		errs = append(errs, err)
	}
	for _, t := range c.Tables {
		errs = append(errs, checkNames(t), c.checkReferences(t))
		if err := t.IDs.check(); err != nil {
			errs = append(errs, fmt.Errorf("table %q: IDs: %w", t.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

func (c Config) logical() []sharding.Table {
	tables := make([]sharding.Table, len(c.Tables))
	for i, t := range c.Tables {
		tables[i] = t.Table
	}
	return tables
}

func (c Config) checkReferences(t Table) error {
	var errs []error
	for _, r := range t.References {
		if err := dialect.CheckIdent(r.Column); err != nil {
			errs = append(errs, fmt.Errorf("table %q: References: Column: %w", t.Name, err))
		}
		if !c.names(r.Table) {
			errs = append(errs, fmt.Errorf("table %q: References: Table: %q is no table of the job", t.Name, r.Table))
		}
	}
	if t.Via != "" {
		if err := dialect.CheckIdent(t.Via); err != nil {
			errs = append(errs, fmt.Errorf("table %q: Via: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkNames also checks every name with the suffix that a switch adds.
func checkNames(t Table) error {
	errs := []error{dialect.CheckIdent(backend.Retired(t.Name))}
	for _, target := range t.Map.Targets() {
		errs = append(errs, dialect.CheckIdent(backend.Sealed(target.Table)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("table %q: names with the suffixes that a migration adds: %w", t.Name, err)
	}
	return nil
}
