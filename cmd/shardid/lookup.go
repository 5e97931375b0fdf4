// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
)

// lookup are the flags of the verbs of lookup.
type lookup struct {
	config, table, column string
	dry, remove, asJSON   bool
}

func newLookup() *cobra.Command {
	l := &lookup{}
	cmd := &cobra.Command{
		Use:   "lookup",
		Short: "Create, fill and check lookup tables",
		Long: `Lookup works on the tables that "lookups" of the configuration names, which find rows
without their sharding key, and keep a value unique over all
shards. create creates one, build enters existing rows, verify
compares it with the shards.

` + layoutfile.Help,
		Args: command.Known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	create := l.verb("create", "Create a lookup table", `Create creates the lookup table, with the columns' types on the shards. An existing table
is not changed.`, l.create)
	create.Flags().BoolVar(&l.dry, "dry-run", false, "print the SQL and execute nothing")
	build := l.verb("build", "Enter existing rows", `Build enters all rows of the shards into a lookup table that is declared with
"building": true, while the application writes. It can be interrupted at any time, and resumes where
it stopped. At the end it compares all rows. It exits with 1 when two rows have the same value
of a unique lookup: change one of them, and build again.`, l.build)
	verify := l.verb("verify", "Compare a lookup table with the shards", `Verify checks that each row has an entry and each entry a row. It exits with 1
when a row has no entry. Entries without a row come from writers that were killed,
and do no harm.`, l.verify)
	verify.Flags().BoolVar(&l.remove, "remove", false, "remove entries without a row")
	for _, verb := range []*cobra.Command{build, verify} {
		verb.Flags().BoolVar(&l.asJSON, "json", false, "print one JSON object")
	}
	cmd.AddCommand(create, build, verify)
	return cmd
}

func (l *lookup) verb(use, short, long string, do func(context.Context, *cobra.Command, lookups.Config) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " --config FILE --table NAME --column NAME", Short: short, Long: long,
		Example: "  shardid lookup " + use + " --config shards.json --table users --column email",
		Args:    command.NoArgs("name the lookup with --table and --column"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.run(cmd.Context(), func(ctx context.Context, c lookups.Config) error { return do(ctx, cmd, c) })
		},
	}
	layoutfile.Flag(cmd, &l.config)
	cmd.Flags().StringVar(&l.table, "table", "", "the logical name of the table")
	cmd.Flags().StringVar(&l.column, "column", "", "the column that is looked up")
	return cmd
}

// run opens the databases of the file.
func (l *lookup) run(ctx context.Context, do func(context.Context, lookups.Config) error) (err error) {
	layout, err := layoutfile.Read(l.config)
	if err != nil {
		return err
	}
	unopened := layout.Unopened()
	r, err := layout.Router(unopened)
	if err != nil {
		return err // before any database is opened
	}
	home, err := layout.HomeDB(unopened)
	if err != nil {
		return err
	}
	c := lookups.Config{Router: r, Home: home, Table: l.table, Column: l.column}
	switch err := c.Check(); {
	case errors.Is(err, sharding.ErrUnknownTable), errors.Is(err, lookups.ErrNotALookup):
		return l.unknown(r)
	case err != nil:
		return err
	}
	s, err := layout.OpenToWrite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if c.Router, err = layout.Router(s.DBs); err != nil {
		return err
	}
	if c.Home, err = layout.HomeDB(s.DBs); err != nil {
		return err
	}
	done, err := layout.Follow(ctx, s.DBs, c.Router)
	if err != nil {
		return explained(err, s.Mask)
	}
	return errors.Join(coded(do(ctx, c)), done())
}

// unknown is the error for flags that name no lookup of the file.
func (l *lookup) unknown(r *sharding.Router) error {
	var all []string
	for _, t := range r.Tables() {
		for _, of := range t.Lookups {
			all = append(all, fmt.Sprintf("--table %s --column %s", t.Name, of.Column))
		}
	}
	switch {
	case len(all) == 0:
		return input.Errorf(`--config: no table of the file has "lookups"; add them, as in shardid lookup --help`)
	case l.table == "" || l.column == "":
		return input.Errorf("which lookup? give %s", strings.Join(all, ", or "))
	}
	return input.Errorf("the file has no lookup of table %q by column %q; give %s", l.table, l.column, strings.Join(all, ", or "))
}

func (l *lookup) create(ctx context.Context, cmd *cobra.Command, c lookups.Config) error {
	all, err := lookups.DDL(ctx, c)
	if err != nil {
		return err
	}
	for _, s := range all {
		where := "home"
		if s.DB != "" {
			where = s.DB
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "-- %s\n%s;\n", where, s.Text); err != nil {
			return err
		}
	}
	if l.dry {
		return nil
	}
	return lookups.Create(ctx, c)
}

func (l *lookup) build(ctx context.Context, cmd *cobra.Command, c lookups.Config) error {
	r, err := watchedLookup(ctx, term.NewProgress(cmd.ErrOrStderr()), c, lookups.Build)
	return errors.Join(l.show(cmd.OutOrStdout(), r, err), err)
}

func (l *lookup) verify(ctx context.Context, cmd *cobra.Command, c lookups.Config) error {
	look := lookups.Verify
	if l.remove {
		look = lookups.Tidy
	}
	r, err := watchedLookup(ctx, term.NewProgress(cmd.ErrOrStderr()), c, look)
	return errors.Join(l.show(cmd.OutOrStdout(), r, err), err)
}

// unsound reports whether a comparison has been completed and has found what must not be.
func unsound(err error) bool {
	return errors.Is(err, lookups.ErrMissing) || errors.Is(err, lookups.ErrDuplicates)
}

// coded gives the error of a lookup its exit code.
func coded(err error) error {
	switch {
	case unsound(err):
		return command.WithCode(err, command.ExitUnclean)
	case errors.Is(err, lookups.ErrNotMade):
		return command.WithCode(err, command.MigrateNotReady)
	}
	return err
}

func (l *lookup) show(w io.Writer, r lookups.Report, failed error) error {
	switch {
	case failed != nil && !unsound(failed):
		return nil // the comparison was interrupted
	case l.asJSON:
		return command.WriteJSON(w, r)
	}
	_, err := fmt.Fprintf(w, "%s values on the shards, %s entries, %s missing, %s left over, %s removed\n",
		term.Number(r.Rows), term.Number(r.Entries), term.Number(r.Missing), term.Number(r.LeftOver), term.Number(r.Removed))
	if err != nil || len(r.Duplicates) == 0 {
		return err
	}
	table := term.NewTable(term.StyleFor(w), "VALUE", "KEY", "SHARD", "ENTRY")
	for _, owners := range r.Duplicates {
		for i, o := range owners {
			table.Row(o.Value, o.Key, o.Target.String(), []string{"yes", "no"}[min(i, 1)])
		}
	}
	_, err = fmt.Fprint(w, table)
	return err
}

// lookUp adds findings on lookup tables to a diagnosis. Each table may take as long as
// timeout. A lookup that is being built is skipped.
func lookUp(ctx context.Context, progress *term.Progress, l layoutfile.File, r *sharding.Router, timeout time.Duration, d *schema.Diagnosis) error {
	for _, t := range r.Tables() {
		for _, of := range t.Lookups {
			if of.Building {
				continue
			}
			home, err := l.HomeDB(opened(r))
			if err != nil {
				return err
			}
			c := lookups.Config{Router: r, Home: home, Table: t.Name, Column: of.Column}
			if f := compared(ctx, progress, c, timeout); f != nil {
				d.Findings = append(d.Findings, schema.ShardFinding{Finding: *f, Place: schema.Place{Table: t.Name, Database: l.Home, Physical: of.Table}})
			}
		}
	}
	return ctx.Err()
}

// compared returns the finding on one lookup, or nil.
func compared(ctx context.Context, progress *term.Progress, c lookups.Config, timeout time.Duration) *schema.Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := watchedLookup(ctx, progress, c, lookups.Verify)
	switch {
	case errors.Is(err, lookups.ErrMissing):
		return &schema.Finding{
			Code: schema.LookupMissing, Severity: schema.Error,
			Message: fmt.Sprintf("%s of %s values of %s have no entry, so that their rows are not found by it", term.Number(r.Missing), term.Number(r.Rows), c.Column),
			Fix:     `declare the lookup with "building": true everywhere, and run shardid lookup build`,
		}
	case errors.Is(err, lookups.ErrDuplicates):
		return &schema.Finding{
			Code: schema.LookupDuplicate, Severity: schema.Error,
			Message: fmt.Sprintf("%s rows have the %s of another row, and are not found by it", term.Number(r.Missing), c.Column),
			Fix:     "shardid lookup verify lists them; give each row a value of its own, by a statement with the sharding key",
		}
	case err != nil && ctx.Err() != nil:
		return &schema.Finding{
			Code: schema.NotChecked, Severity: schema.Warning, Message: fmt.Sprintf("the lookup of %s was not compared within %s", c.Column, timeout),
			Fix: "give it more time with --timeout, or run shardid lookup verify",
		}
	case err != nil:
		return &schema.Finding{
			Code: schema.NotChecked, Severity: schema.Error, Message: err.Error(),
			Fix: "create the lookup table with shardid lookup create, or let this user read it",
		}
	case r.LeftOver > 0:
		return &schema.Finding{
			Code: schema.LookupLeftOver, Severity: schema.Info,
			Message: fmt.Sprintf("%s entries of %s have no row, which is harmless", term.Number(r.LeftOver), c.Column),
			Fix:     "remove them with shardid lookup verify --remove",
		}
	}
	return nil
}

// opened are the databases of a router.
func opened(r *sharding.Router) sharding.DBs {
	dbs := sharding.DBs{}
	for _, name := range r.Databases() {
		dbs[name] = r.DB(name)
	}
	return dbs
}
