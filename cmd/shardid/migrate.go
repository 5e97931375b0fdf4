package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/throttle"
	"github.com/shardid/shardid/sharding"
)

const migrateLong = `Migrate turns tables of a database that serves writers into shards of them, in
steps each of which can be undone until finalize: docs/runbook.md goes through
them. The tables and where their rows go stand in the file of --config, the same
that export and doctor read; all runners of a job must be given the same one.

In their order: inspect, plan, install, seed, run, verify, preview, cutover; then rollback or
finalize. status, pause, resume and abort are for in between; expand is a job of its
own. Every verb may be used on any host, and again after whatever ended it.
`

// coded is an error with an exit code of its own.
type coded struct {
	error

	code int
}

// Unwrap returns the cause.
func (c coded) Unwrap() error { return c.error }

// migration is what all verbs are told.
type migration struct {
	config, source, name string
	tables               []string
	rows, copiers        int
	json                 bool

	cmd *cobra.Command
}

func newMigrate() *cobra.Command {
	m := &migration{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move live tables into shards, step by step",
		Long:  migrateLong + "\n" + layoutHelp + "\n\n" + exitHelp(),
		Args:  func(cmd *cobra.Command, args []string) error { return usage(aCommand(cmd, args)) },
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(flagError(c, err)) })
	flags := cmd.PersistentFlags()
	flags.StringVar(&m.config, "config", "", "the file that says where rows lie")
	flags.StringVar(&m.source, "source", "", "the database with the tables (default $"+sourceVariable+")")
	flags.StringSliceVar(&m.tables, "tables", nil, "tables of the job, parents first (default all of the file)")
	flags.StringVar(&m.name, "name", "", "name of the job (default that of its first table)")
	cmd.AddCommand(
		m.printing(m.newInspect()), m.printing(m.newPlan()), m.newInstall(), m.printing(m.newSeed()), m.reading(m.printing(m.newRun())),
		m.printing(m.newStatus()), m.newPause(), m.newResume(), m.reading(m.printing(m.newVerify())), m.printing(m.newPreview()),
		m.printing(m.newCutover()), m.printing(m.newRollback()), m.newFinalize(), m.newAbort(), m.printing(m.newExpand()),
	)
	return cmd
}

// printing is for a verb that prints data.
func (m *migration) printing(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&m.json, "json", false, "print JSON")
	return cmd
}

// reading is for a verb that goes through all rows.
func (m *migration) reading(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Var(input.Between(1, 1_000_000, &m.rows), "chunk-rows", "rows that are read at once (default 4000)")
	cmd.Flags().Var(input.Between(1, 64, &m.copiers), "copiers", "chunks that are under way at once (default 2)")
	return cmd
}

// usage gives mistakes in a command line their code.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return coded{err, migrateUsage}
}

// verb makes a command that works with the job.
func (m *migration) verb(use, short, long string, do func(context.Context, *operation) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			return usage(noArgs("name tables with --tables")(cmd, args))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.cmd = cmd
			return migrateCode(cmd.Context(), m.with(cmd.Context(), do))
		},
	}
}

// migrateCode finds the exit code of an error.
func migrateCode(ctx context.Context, err error) error {
	var has coded
	switch {
	case err == nil || errors.As(err, &has):
		return err
	case ctx.Err() != nil:
		return coded{errors.New("interrupted; the same command goes on where it stopped"), migrateInterrupted}
	case errors.As(err, new(*migrate.BlockedError)):
		return coded{err, migratePreflight}
	case away(err):
		return coded{err, migrateInterrupted}
	case input.Caused(err), errors.Is(err, migrate.ErrConfig), dialect.FaultOf(err) == dialect.NoRight:
		return coded{err, migrateUsage}
	}
	for _, known := range []struct {
		err  error
		code int
	}{
		{migrate.ErrUnsupported, migratePreflight}, {migrate.ErrSession, migratePreflight}, {sharding.ErrKeyType, migratePreflight},
		{migrate.ErrLocked, migrateLocked}, {migrate.ErrFenced, migrateFenced},
		{migrate.ErrNotReady, migrateNotReady}, {migrate.ErrPhase, migrateNotReady},
		{migrate.ErrChanged, migrateChanged}, {migrate.ErrUnclear, migrateUnclear},
	} {
		if errors.Is(err, known.err) {
			return coded{err, known.code}
		}
	}
	return coded{err, migrateInterrupted}
}

// away reports whether a server could not be reached, which passes: a supervisor is to try
// again. A name that nobody knows is a mistake.
func away(err error) bool {
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return false
	}
	return migrate.Transient(err) || errors.Is(err, context.DeadlineExceeded)
}

// operation is one verb at work.
type operation struct {
	*migration

	cfg      migrate.Config
	replicas []throttle.Replica // of the source, for run
	job      *migrate.Job
	begun    time.Time
	// returned are the tables that a rollback has returned to the source.
	returned map[string]bool
}

// with opens the databases for do.
func (m *migration) with(ctx context.Context, do func(context.Context, *operation) error) (err error) {
	layout, err := readLayout(m.config)
	if err != nil {
		return err
	}
	ids := newCounters()
	defer func() { err = errors.Join(err, ids.close()) }()
	tables, err := m.chosen(layout, ids)
	if err != nil {
		return err
	}
	missing := database.Empty
	var replicas []throttle.Replica
	if m.cmd.Name() == "run" {
		missing = database.Made
		replicas, err = layout.openReplicas(ctx)
		defer func() { err = errors.Join(err, closeReplicas(replicas)) }()
		if err != nil {
			return err
		}
	}
	dbs, err := openShards(ctx, layout, tables, missing)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shards{dbs: dbs}.close()) }()
	dsn := m.source
	if dsn == "" {
		dsn = os.Getenv(sourceVariable)
	}
	source, err := database.OpenForWriting(ctx, dsn, database.Refused)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	ids.source = source
	o := &operation{migration: m, begun: time.Now(), replicas: replicas, cfg: migrate.Config{
		Source: source, Shards: dbs, Tables: tables, Name: m.name, ChunkRows: m.rows, Copiers: m.copiers,
	}}
	o.cfg.Ready = o.ready
	if o.job, err = migrate.New(o.cfg); err != nil {
		return err
	}
	return do(ctx, o)
}

// chosen are the tables of the file that the job is about, in the order of the
// flag or of the file. Those with new ids take them from these counters.
func (m *migration) chosen(layout layoutFile, ids *counters) (tables []migrate.Table, err error) {
	names := m.tables
	if len(names) == 0 {
		for _, entry := range layout.Tables {
			names = append(names, entry.Name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(layout.Tables, func(t tableEntry) bool { return strings.EqualFold(t.Name, name) })
		if i < 0 {
			return nil, input.Errorf("--tables: the file of --config has no table %q", name)
		}
		t, err := layout.Tables[i].moving(ids)
		if err != nil {
			return nil, input.Errorf("--config: table %q: %w", name, err)
		}
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		return nil, input.Errorf("--config: the file has no tables")
	}
	return tables, nil
}

// openShards opens the databases that have targets of the tables.
func openShards(ctx context.Context, layout layoutFile, tables []migrate.Table, missing database.Missing) (sharding.DBs, error) {
	s := shards{dbs: sharding.DBs{}}
	for _, t := range tables {
		for _, at := range t.Map.Targets() {
			if s.dbs[at.DB] != nil {
				continue
			}
			entry, known := layout.Databases[at.DB]
			if !known {
				return nil, errors.Join(input.Errorf("--config: there is no database %q, where table %s has a target", at.DB, t.Name), s.close())
			}
			dsn, err := entry.dsn(layout.dir)
			if err == nil {
				s.dbs[at.DB], err = database.OpenForWriting(ctx, dsn, missing)
			}
			if err != nil {
				delete(s.dbs, at.DB)
				return nil, errors.Join(fmt.Errorf("--config: database %q: %w", at.DB, err), s.close())
			}
		}
	}
	return s.dbs, nil
}

// sayf writes for people, on stderr: data alone goes to stdout. It takes the place
// of a line of progress that moves.
func (o *operation) sayf(format string, args ...any) {
	w := o.cmd.ErrOrStderr()
	if term.IsTerminal(w) {
		format = "\r\x1b[K" + format
	}
	_, _ = fmt.Fprintf(w, format+"\n", args...) // nobody can be told that stderr is gone
}
