// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/throttle"
	"github.com/shardid/shardid/sharding"
)

const migrateLong = `Migrate moves tables of a live database to shards, in
steps each of which can be undone until finalize: docs/runbook.md goes through
them. The file of --config has the tables and their shards, the same
file that export and doctor read; all runners of a job must use the same one.

In order: inspect, plan, install, seed, run, verify, preview, cutover; then rollback or
finalize. status, pause, resume and abort may be used in between; expand is a separate
job. Every verb may be used on any host, and repeated after an interruption.
`

// Migration are the flags of all verbs.
type Migration struct {
	Config, Source, name string
	tables               []string
	rows, copiers        int
	json                 bool

	Cmd *cobra.Command
}

// New returns the command migrate with its verbs.
func New() *cobra.Command {
	m := &Migration{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move live tables into shards, step by step",
		Long:  migrateLong + "\n" + layoutfile.Help + "\n\n" + command.ExitHelp(),
		Args:  command.Known,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&m.Config, "config", "", "the file that says where rows lie")
	flags.StringVar(&m.Source, "source", "", "the database with the tables (default $"+command.SourceVariable+")")
	flags.StringSliceVar(&m.tables, "tables", nil, "tables of the job, parents first (default all of the file)")
	flags.StringVar(&m.name, "name", "", "name of the job (default that of its first table)")
	cmd.AddCommand(
		m.printing(m.newInspect()), m.printing(m.newPlan()), m.newInstall(), m.printing(m.newSeed()), m.reading(m.printing(m.newRun())),
		m.printing(m.newStatus()), m.newPause(), m.newResume(), m.reading(m.printing(m.newVerify())), m.printing(m.newPreview()),
		m.printing(m.newCutover()), m.printing(m.newRollback()), m.newFinalize(), m.newAbort(), m.printing(m.newExpand()),
	)
	return cmd
}

// printing adds --json to a verb that prints data.
func (m *Migration) printing(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&m.json, "json", false, "print JSON")
	return cmd
}

// reading adds the flags of a verb that reads all rows.
func (m *Migration) reading(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(input.Between(1, 1_000_000, &m.rows), "chunk-rows", "rows read at once (default 4000)")
	cmd.Flags().Var(input.Between(1, 64, &m.copiers), "copiers", "chunks read at once (default 2)")
	return cmd
}

// verb is a command that works with the job.
func (m *Migration) verb(use, short, long string, do func(context.Context, *Operation) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: command.NoArgs("name tables with --tables"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.Cmd = cmd
			return migrateCode(cmd.Context(), m.With(cmd.Context(), do))
		},
	}
}

// migrateCode returns the error with its exit code.
func migrateCode(ctx context.Context, err error) error {
	_, given := command.CodeOf(err)
	switch {
	case err == nil || given:
		return err
	case ctx.Err() != nil:
		return command.WithCode(errors.New("interrupted; the same command resumes the work"), command.ExitInterrupted)
	case errors.As(err, new(*migrate.BlockedError)):
		return command.WithCode(err, command.ExitUnclean)
	case database.Away(err):
		return command.WithCode(err, command.ExitFailure)
	case input.Caused(err), errors.Is(err, migrate.ErrConfig), dialect.FaultOf(err) == dialect.NoRight:
		return command.WithCode(err, command.ExitInput)
	}
	if coded := Coded(err); coded != err { //nolint:errorlint // it is the same error, or it has a code
		return coded
	}
	return command.WithCode(err, command.ExitFailure)
}

// Coded returns an error about the tables of a migration or of moving slots with the exit code of
// its cause, and other errors unchanged.
func Coded(err error) error {
	for _, known := range []struct {
		err  error
		code int
	}{
		{migrate.ErrUnsupported, command.ExitUnclean}, {migrate.ErrSession, command.ExitUnclean}, {sharding.ErrKeyType, command.ExitUnclean},
		{migrate.ErrLocked, command.MigrateLocked}, {migrate.ErrFenced, command.MigrateFenced},
		{migrate.ErrNotReady, command.MigrateNotReady}, {migrate.ErrPhase, command.MigrateNotReady},
		{migrate.ErrChanged, command.MigrateChanged}, {migrate.ErrUnclear, command.MigrateUnclear},
	} {
		if errors.Is(err, known.err) {
			return command.WithCode(err, known.code)
		}
	}
	return err
}

// Operation is one running verb.
type Operation struct {
	*Migration

	cfg      migrate.Config
	replicas []throttle.Replica // replicas of the source, for run
	job      *migrate.Job
	begun    time.Time
	// apart are warnings about tables of a group that the job leaves out.
	apart []migrate.Finding
	// broadcast are the tables of which each database has a copy.
	broadcast []string
	// returned are the tables that a rollback has moved back to the source.
	returned map[string]bool
}

// With opens the databases and calls do.
func (m *Migration) With(ctx context.Context, do func(context.Context, *Operation) error) (err error) {
	layout, err := layoutfile.Read(m.Config)
	if err != nil {
		return err
	}
	ids := layoutfile.NewCounters()
	defer func() { err = errors.Join(err, ids.Close()) }()
	tables, err := m.chosen(layout, ids)
	if err != nil {
		return err
	}
	missing := database.Empty
	var replicas []throttle.Replica
	if m.Cmd.Name() == "run" {
		missing = database.Made
		replicas, err = openReplicas(ctx, layout)
		defer func() { err = errors.Join(err, closeReplicas(replicas)) }()
		if err != nil {
			return err
		}
	}
	dbs, err := openShards(ctx, layout, tables, missing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layoutfile.Opened{DBs: dbs}.Close()) }()
	dsn := m.Source
	if dsn == "" {
		dsn = os.Getenv(command.SourceVariable)
	}
	if dsn == "" {
		return database.Unnamed(command.SourceVariable)
	}
	source, err := database.OpenForWriting(ctx, dsn, database.Refused)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	ids.Source = source
	o := &Operation{Migration: m, begun: time.Now(), replicas: replicas, apart: apart(layout.Tables, tables), broadcast: layout.Broadcast, cfg: migrate.Config{
		Source: source, Shards: dbs, Tables: tables, Name: m.name, ChunkRows: m.rows, Copiers: m.copiers,
	}}
	o.cfg.Ready = o.ready
	if o.job, err = migrate.New(o.cfg); err != nil {
		return err
	}
	return do(ctx, o)
}

// chosen are the tables of the job, in the order of the flag or of the file. Tables with a
// map table take new ids from these counters.
func (m *Migration) chosen(layout layoutfile.File, ids *layoutfile.Counters) (tables []migrate.Table, err error) {
	names := m.tables
	if len(names) == 0 {
		for _, entry := range layout.Tables {
			names = append(names, entry.Name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(layout.Tables, func(t layoutfile.Table) bool { return strings.EqualFold(t.Name, name) })
		if i < 0 {
			return nil, input.Errorf("--tables: the file of --config has no table %q", name)
		}
		t, err := layout.Tables[i].Moving(ids)
		if err != nil {
			return nil, input.Errorf("--config: table %q: %w", name, err)
		}
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		return nil, input.Errorf("--config: the file has no tables; list them in \"tables\", as in shardid export --help")
	}
	return tables, nil
}

// apart warns of each group of the file of which the job has some tables and not all.
func apart(of []layoutfile.Table, chosen []migrate.Table) (found []migrate.Finding) {
	isChosen := func(name string) bool {
		return slices.ContainsFunc(chosen, func(t migrate.Table) bool { return strings.EqualFold(t.Name, name) })
	}
	for _, t := range chosen {
		var out []string
		for _, other := range of {
			if t.Group != "" && strings.EqualFold(other.Group, t.Group) && !isChosen(other.Name) {
				out = append(out, other.Name)
			}
		}
		if len(out) == 0 {
			continue
		}
		found = append(found, migrate.Finding{
			Code: migrate.OutsideJob, Severity: migrate.Warn, Database: "source", Table: t.Name,
			Message: "its group " + t.Group + " also has " + strings.Join(out, ", ") + ", which the job leaves out: from the switch on, rows of the group that belong together are not on one shard",
			Fix:     "name all tables of the group with --tables, parents first; nothing, if the rows of the others are on the shards already",
		})
	}
	return found
}

// openShards opens the databases that have targets of the tables.
func openShards(ctx context.Context, layout layoutfile.File, tables []migrate.Table, missing database.Missing) (sharding.DBs, error) {
	s := layoutfile.Opened{DBs: sharding.DBs{}}
	for _, t := range tables {
		for _, at := range t.Map.Targets() {
			if s.DBs[at.DB] != nil {
				continue
			}
			entry, known := layout.Databases[at.DB]
			if !known {
				return nil, errors.Join(input.Errorf("--config: there is no database %q, where table %s has a target", at.DB, t.Name), s.Close())
			}
			dsn, err := entry.DSN(layout.Dir)
			if err == nil {
				s.DBs[at.DB], err = database.OpenForWriting(ctx, dsn, missing)
			}
			if err != nil {
				delete(s.DBs, at.DB)
				return nil, errors.Join(fmt.Errorf("--config: database %q: %w", at.DB, err), s.Close())
			}
		}
	}
	return s.DBs, nil
}

// sayf writes a message to stderr, as stdout is for data only. On a terminal it replaces
// the line of progress.
func (o *Operation) sayf(format string, args ...any) {
	w := o.Cmd.ErrOrStderr()
	if term.IsTerminal(w) {
		format = "\r\x1b[K" + format
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...) // an error of stderr cannot be reported
}
