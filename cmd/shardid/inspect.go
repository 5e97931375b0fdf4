// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema"
)

// errBlocked: inspect found errors.
var errBlocked = errors.New("some tables cannot be sharded as they are, or will soon accept no more rows; the findings say what to do")

func newInspect() *cobra.Command {
	var source string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect [--source DSN]",
		Short: "Print which tables number their rows, how much of the range is used, and what prevents sharding",
		Long: `Inspect reads every table of a database: its key, how much of the key's range
is used, its foreign keys, and what has to be decided before it is sharded.
It writes nothing. It exits with 1 when a finding is an error: a table cannot be sharded
by its key, or will soon accept no more rows.

The source is ` + database.Forms + `.
Without --source it is read from ` + command.SourceVariable + `, so that a password need not stand
on the command line.`,
		Example: "  shardid inspect --source shop.db\n  " + command.SourceVariable + "='app:secret@tcp(db:3306)/shop' shardid inspect --json",
		Args:    command.NoArgs("give the database with --source"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := inspect(cmd.Context(), source)
			if err != nil {
				return err
			}
			if asJSON {
				err = command.WriteJSON(cmd.OutOrStdout(), report)
			} else {
				err = printReport(cmd.OutOrStdout(), report)
			}
			if err == nil && blocked(report) {
				err = errBlocked
			}
			return err
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "the database (default $"+command.SourceVariable+")")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func inspect(ctx context.Context, source string) (report schema.Report, err error) {
	if source == "" {
		source = os.Getenv(command.SourceVariable)
	}
	if source == "" {
		return report, database.Unnamed(command.SourceVariable)
	}
	db, err := database.Open(ctx, source)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return schema.Inspect(ctx, db)
}

func printReport(w io.Writer, report schema.Report) error {
	style := term.StyleFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s\n", report.Server.Product, report.Server.Version, term.Count(int64(len(report.Tables)), "table"))
	if len(report.Tables) > 0 {
		b.WriteString("\n" + tables(style, report.Tables).String())
	}
	for _, n := range fold(report.Tables) {
		fmt.Fprintf(&b, "\n%s %s: %s\n  %s %s\n", severity(style, n.Severity), style.Bold(strings.Join(n.tables, ", ")), n.Message, style.Dim("fix:"), n.Fix)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// note is a finding and its tables.
type note struct {
	schema.Finding

	tables []string
}

// blocked reports whether a finding is an error.
func blocked(report schema.Report) bool {
	return slices.ContainsFunc(report.Tables, func(t schema.Table) bool {
		return slices.ContainsFunc(t.Findings, func(f schema.Finding) bool { return f.Severity == schema.Error })
	})
}

// fold merges equal findings of several tables.
func fold(list []schema.Table) []note {
	var notes []note
	for _, t := range list {
		for _, f := range t.Findings {
			i := slices.IndexFunc(notes, func(n note) bool { return n.Finding == f })
			if i < 0 {
				i, notes = len(notes), append(notes, note{Finding: f})
			}
			notes[i].tables = append(notes[i].tables, t.Name)
		}
	}
	return notes
}

func tables(style term.Style, list []schema.Table) *term.Table {
	shown := term.NewTable(style, "TABLE", "KEY", "TYPE", ">NEXT ID", ">USED", "REFERS TO")
	for _, t := range list {
		shown.Row(describe(t)...)
	}
	return shown
}

func severity(style term.Style, s schema.Severity) string {
	switch s {
	case schema.Error:
		return style.Red(string(s))
	case schema.Warning:
		return style.Yellow(string(s))
	}
	return style.Dim(string(s))
}

// describe returns the cells of a table's line.
func describe(t schema.Table) []string {
	var refers []string
	for _, fk := range t.ForeignKeys {
		refers = append(refers, strings.Join(fk.Columns, ", ")+" → "+fk.References)
	}
	references := strings.Join(refers, "; ")
	if t.Key == nil {
		key := "none"
		if len(t.PrimaryKey) > 0 {
			key = strings.Join(t.PrimaryKey, ", ")
		}
		return []string{t.Name, key, "", "", "", references}
	}
	typ := t.Key.Type
	if t.Key.Unsigned {
		typ += " unsigned"
	}
	next := strconv.FormatUint(t.Key.Next, 10)
	return []string{t.Name, t.Key.Column, typ, next, fmt.Sprintf("%.2f %%", t.Key.PercentUsed), references}
}
