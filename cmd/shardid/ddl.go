// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

const ddlLong = `Ddl runs files of DDL, one version each, on every physical table of sharded tables and
in every database of broadcast tables. The files are goose's, 00001_orders.sql, with logical
names of tables; docs/ddl.md has what they may say, and how an
interrupted version is resumed.`

var (
	// errBehind: status found versions that are not applied everywhere.
	errBehind = errors.New("not every version is applied everywhere; run shardid ddl up")
	// errGone: status found versions whose files are missing.
	errGone = errors.New("a database has versions that no file has; restore their files, because up and down refuse to run without them")
	// errUnknown: status could not ask all databases.
	errUnknown = errors.New("it is unknown which versions the unreachable databases have; repeat the command when they are back")
	// errDrift: drift found shards that differ.
	errDrift = errors.New("the definitions of the shards differ")
)

// ddl are the flags of its verbs.
type ddl struct {
	config, dir, table string
	to, version        int64
	databases          int
	asJSON, done, not  bool
	told               bool // a statement was executed and printed
	cmd                *cobra.Command
}

func newDDL() *cobra.Command {
	d := &ddl{databases: 4}
	cmd := &cobra.Command{
		Use: "ddl", Short: "Run versioned DDL on all shards", Long: ddlLong, Args: command.Known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&d.config, "config", "", "the sharding configuration, as in shardid export --help")
	cmd.PersistentFlags().StringVar(&d.dir, "dir", "migrations", "the directory of the versions")
	up := d.verb("up", "Run all versions that are not applied", database.Made, d.up)
	d.toFlag(up, "the last version to run (default all)")
	up.Flags().Var(input.Between(1, 1000, &d.databases), "databases", "how many databases to work on at once")
	plan := d.verb("plan", "Print the statements that up would send", database.Empty, d.plan)
	d.toFlag(plan, "the last version (default all)")
	plan.Flags().BoolVar(&d.asJSON, "json", false, "print one JSON array")
	status := d.verb("status", "Print which version is applied where; exit with 1 unless all are", database.Empty, d.status)
	status.Flags().BoolVar(&d.asJSON, "json", false, "print one JSON object")
	drift := d.verb("drift", "Compare the definitions of all shards of each table; exit with 1 if some differ", database.Empty, d.drift)
	drift.Flags().BoolVar(&d.asJSON, "json", false, "print one JSON array")
	adopt := d.verb("adopt", "Note versions as applied without running them", database.Refused, d.adopt)
	d.toFlag(adopt, "the last version that the tables have")
	resolve := d.verb("resolve", "Record whether a statement that was in flight was executed", database.Refused, d.resolve)
	resolve.Flags().Var(input.Between(1, math.MaxInt64, &d.version), "version", "the version")
	resolve.Flags().StringVar(&d.table, "table", "", "the physical table, as database/table")
	resolve.Flags().BoolVar(&d.done, "done", false, "the statement was executed")
	resolve.Flags().BoolVar(&d.not, "not-done", false, "the statement was not executed; up sends it again")
	cmd.AddCommand(up, d.verb("down", "Undo the newest version", database.Refused, d.down), plan, status, drift, adopt, resolve)
	return cmd
}

func (d *ddl) toFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().Var(input.Between(0, math.MaxInt64, &d.to), "to", usage)
}

// verb is a command that runs work with the databases of the file. missing says what to do
// with SQLite files that do not exist.
func (d *ddl) verb(name, short string, missing database.Missing, work func(context.Context, *versions.Runner) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " --config FILE --dir DIRECTORY", Short: short, Long: short + ".\n\n" + ddlLong,
		Example: "  shardid ddl " + name + " --config shards.json --dir migrations" + map[string]string{
			"adopt": " --to 1", "resolve": " --version 2 --table east/orders_0 --done",
		}[name],
		Args: command.NoArgs("give the files with --config and --dir"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.cmd = cmd
			return d.run(cmd.Context(), missing, work)
		},
	}
}

func (d *ddl) run(ctx context.Context, missing database.Missing, work func(context.Context, *versions.Runner) error) (err error) {
	layout, err := layoutfile.Read(d.config)
	if err != nil {
		return err
	}
	if _, err := layout.Router(layout.Unopened()); err != nil {
		return err // before any database is opened
	}
	if info, err := os.Stat(d.dir); err != nil || !info.IsDir() {
		return input.Errorf("--dir %s is not a directory that can be read; name the directory with the files, such as 00001_orders.sql", d.dir)
	}
	s, err := layout.OpenBy(func(dsn string) (*sql.DB, error) { return database.OpenForWriting(ctx, dsn, missing) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	router, _, err := layout.Current(ctx, s.DBs)
	if err != nil {
		return d.explained(err, s.Mask)
	}
	runner, err := versions.New(ctx, versions.Config{Router: router, Files: os.DirFS(d.dir), Concurrency: d.databases, Observe: d.tell})
	if err == nil {
		err = work(ctx, runner)
	}
	return d.explained(err, s.Mask)
}

// explained hides passwords, and marks mistakes of the user as such.
func (d *ddl) explained(err error, m layoutfile.Mask) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, versions.ErrFiles), errors.Is(err, versions.ErrStatement), errors.Is(err, versions.ErrNoDown),
		errors.Is(err, versions.ErrOrder), errors.Is(err, versions.ErrChanged), errors.Is(err, versions.ErrNotInFlight):
		return input.Errorf("%s", m.Hide(err.Error()))
	case errors.Is(err, errBehind), errors.Is(err, errGone), errors.Is(err, errUnknown), errors.Is(err, errDrift):
		return err
	}
	return m.Explain(ddlCode(err))
}

// ddlCode returns the error with the exit code of its cause.
func ddlCode(err error) error {
	switch {
	case database.Away(err):
		return err
	case errors.Is(err, versions.ErrLocked):
		return command.WithCode(err, command.MigrateLocked)
	case errors.Is(err, versions.ErrPartial), errors.Is(err, versions.ErrUnclear), errors.Is(err, versions.ErrDiffers):
		return command.WithCode(err, command.MigrateNotReady)
	}
	return err
}

// tell prints an executed statement.
func (d *ddl) tell(step versions.Step) {
	d.told = true
	_, _ = fmt.Fprintf(d.cmd.ErrOrStderr(), "%d %s: %s\n", step.Version, step.Target, oneLine(step.SQL)) // an error of stderr cannot be reported
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (d *ddl) up(ctx context.Context, r *versions.Runner) error {
	err := r.Up(ctx, d.to)
	if err == nil && !d.told {
		d.nothing()
	}
	return err
}

// nothing says that up sends no statement. Stdout has only statements.
func (d *ddl) nothing() {
	text := "every version is applied"
	if d.to != 0 {
		text = fmt.Sprintf("every version up to %d is applied", d.to)
	}
	_, _ = fmt.Fprintln(d.cmd.ErrOrStderr(), text) // an error of stderr cannot be reported
}

func (d *ddl) down(ctx context.Context, r *versions.Runner) error {
	undone, err := r.Down(ctx)
	if err != nil {
		return err
	}
	text := "no version is applied\n"
	if undone != 0 {
		text = fmt.Sprintf("version %d is undone\n", undone)
	}
	_, err = io.WriteString(d.cmd.OutOrStdout(), text)
	return err
}

// planned is the JSON form of a step.
type planned struct {
	Version int64  `json:"version"`
	Target  string `json:"target"`
	SQL     string `json:"sql"`
}

func (d *ddl) plan(ctx context.Context, r *versions.Runner) error {
	steps, err := r.Plan(ctx, d.to)
	if err != nil {
		return err
	}
	if d.asJSON {
		all := []planned{}
		for _, step := range steps {
			all = append(all, planned{step.Version, step.Target.String(), step.SQL})
		}
		return command.WriteJSON(d.cmd.OutOrStdout(), all)
	}
	if len(steps) == 0 {
		d.nothing()
	}
	var b strings.Builder
	for _, step := range steps {
		fmt.Fprintf(&b, "-- version %d, %s\n%s;\n", step.Version, step.Target, step.SQL)
	}
	_, err = io.WriteString(d.cmd.OutOrStdout(), b.String())
	return err
}

func (d *ddl) status(ctx context.Context, r *versions.Runner) error {
	m, err := r.Status(ctx)
	if err != nil {
		return err
	}
	if d.asJSON {
		err = command.WriteJSON(d.cmd.OutOrStdout(), m)
	} else {
		_, err = io.WriteString(d.cmd.OutOrStdout(), statusTable(d.cmd.OutOrStdout(), &m).String())
	}
	for _, db := range slices.Sorted(maps.Keys(m.Unreachable)) {
		_, _ = fmt.Fprintf(d.cmd.ErrOrStderr(), "database %s cannot be reached: %s\n", db, oneLine(m.Unreachable[db])) // an error of stderr cannot be reported
	}
	switch {
	case err != nil || m.Complete():
	case slices.ContainsFunc(m.Lines, func(l versions.Line) bool { return l.File == "" }):
		err = errGone
	case len(m.Unreachable) > 0:
		err = errUnknown
	default:
		err = errBehind
	}
	return err
}

// difference is the JSON form of a difference.
type difference struct {
	Table  string `json:"table"`
	Target string `json:"target"`
	Line   string `json:"line"`
	Lacks  bool   `json:"lacks"`
}

func (d *ddl) drift(ctx context.Context, r *versions.Runner) error {
	all, err := r.Drift(ctx)
	if err != nil {
		return err
	}
	if d.asJSON {
		differences := []difference{}
		for _, of := range all {
			differences = append(differences, difference{of.Table, of.Target.String(), of.Line, of.Lacks})
		}
		err = command.WriteJSON(d.cmd.OutOrStdout(), differences)
	} else {
		var b strings.Builder
		for _, of := range all {
			b.WriteString(of.String() + "\n")
		}
		if len(all) == 0 {
			b.WriteString("the definitions of all shards of each table are equal\n")
		}
		_, err = io.WriteString(d.cmd.OutOrStdout(), b.String())
	}
	if err == nil && len(all) > 0 {
		err = errDrift
	}
	return err
}

func (d *ddl) adopt(ctx context.Context, r *versions.Runner) error {
	if d.to == 0 {
		return input.Errorf("which is the last version that the tables have? give --to")
	}
	if err := r.Adopt(ctx, d.to); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.cmd.OutOrStdout(), "every version up to %d is recorded as applied\n", d.to)
	return err
}

func (d *ddl) resolve(ctx context.Context, r *versions.Runner) error {
	db, table, ok := strings.Cut(d.table, "/")
	if !ok || d.version == 0 {
		return input.Errorf("which statement? give --version, and --table as database/table, as the error of up has them")
	}
	if d.done == d.not {
		return input.Errorf("was the statement executed? give --done if it was, --not-done if it was not")
	}
	return r.Resolve(ctx, d.version, sharding.Target{DB: db, Table: table}, d.done)
}
