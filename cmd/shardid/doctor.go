// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// errUnhealthy: doctor found errors.
var errUnhealthy = errors.New("the shards are not as the router expects them")

func newDoctor() *cobra.Command {
	var config string
	var asJSON bool
	c := schema.DoctorConfig{MaxRows: 1_000_000, Timeout: time.Minute}
	cmd := &cobra.Command{
		Use:   "doctor --config FILE",
		Short: "Find rows in the wrong shard, and shards that differ",
		Long: `Doctor checks every database and physical table of a sharding configuration. It
finds rows in the wrong shard, tables, columns and indexes that
are missing in one of the shards, rows that are missing in a lookup table, tables that do not number their rows as the
rule requires, unique keys that hold within each shard only, tables that no routed
statement reads, and databases that do not answer. It writes nothing. Rows of a table with "via" have no sharding key; the
table is checked without its rows.

It exits with 1 when a finding is an error. Rows that move meanwhile may be found in
neither place or in both: run doctor again.

` + layoutfile.Help,
		Example: "  shardid doctor --config shards.json\n  shardid doctor --config shards.json --rows -1 --timeout 1h --json",
		Args:    command.NoArgs("give the file with --config"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDoctor(cmd, config, c, asJSON)
		},
	}
	layoutfile.Flag(cmd, &config)
	cmd.Flags().Var(input.Between(-1, math.MaxInt64, &c.MaxRows), "rows", "how many rows of each physical table to check; -1 for all")
	cmd.Flags().Var(input.Between(time.Millisecond, 7*24*time.Hour, &c.Timeout), "timeout", "how long one physical table, or one lookup, may take")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func runDoctor(cmd *cobra.Command, config string, c schema.DoctorConfig, asJSON bool) (err error) {
	ctx := cmd.Context()
	layout, err := layoutfile.Read(config)
	if err != nil {
		return err
	}
	if _, err := layout.Router(layout.Unopened()); err != nil {
		return err // before any database is opened
	}
	s, err := layout.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, moving, err := layout.WithoutParents().Current(ctx, s.DBs)
	if err != nil {
		return explained(err, s.Mask)
	}
	c.Children = layout.Children()
	progress := term.NewProgress(cmd.ErrOrStderr())
	d, err := watchedDoctor(ctx, progress, r, c)
	if err != nil {
		return err
	}
	layout.NoteChildren(&d)
	layoutfile.NoteMoving(&d, moving)
	layout.NoteMap(ctx, s.DBs, &d)
	if err := lookUp(ctx, progress, layout, r, c.Timeout, &d); err != nil {
		return err
	}
	for i := range d.Findings {
		d.Findings[i].Message = s.Mask.Hide(d.Findings[i].Message)
	}
	if err := printDiagnosis(cmd.OutOrStdout(), d, asJSON); err != nil {
		return err
	}
	if !d.Healthy() {
		return fmt.Errorf("%w; the findings say what to do", errUnhealthy)
	}
	return nil
}

// watchedDoctor shows how many tables were checked.
func watchedDoctor(ctx context.Context, progress *term.Progress, r *sharding.Router, c schema.DoctorConfig) (schema.Diagnosis, error) {
	progress.Begin("tables", 0)
	defer progress.Abort("")
	c.Observe = func(done, all int) { progress.Reach(int64(done), int64(all)) }
	return schema.Doctor(ctx, r, c)
}

func printDiagnosis(w io.Writer, d schema.Diagnosis, asJSON bool) error {
	if asJSON {
		return command.WriteJSON(w, d)
	}
	style := term.StyleFor(w)
	var b strings.Builder
	b.WriteString(checkups(style, d.Targets).String())
	for _, f := range foldShards(d.Findings) {
		fmt.Fprintf(&b, "\n%s %s: %s %s\n", severity(style, f.Severity), style.Bold(strings.Join(f.places, ", ")), f.Message, style.Dim("("+string(f.Code)+")"))
		for _, e := range f.Examples {
			fmt.Fprintf(&b, "    %s\n", example(e))
		}
		fmt.Fprintf(&b, "  %s %s\n", style.Dim("fix:"), f.Fix)
	}
	if len(d.Findings) == 0 {
		b.WriteString("\n" + style.Green("Every row is in the shard of its key, and the definitions of the shards are equal.") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shardNote is a finding and the places where it was made.
type shardNote struct {
	schema.ShardFinding

	places []string
}

// foldShards merges equal findings of several places.
func foldShards(list []schema.ShardFinding) []shardNote {
	var notes []shardNote
	for _, f := range list {
		i := slices.IndexFunc(notes, func(n shardNote) bool { return n.Finding == f.Finding && len(n.Examples)+len(f.Examples) == 0 })
		if i < 0 {
			i, notes = len(notes), append(notes, shardNote{ShardFinding: f})
		}
		notes[i].places = append(notes[i].places, f.String())
	}
	return notes
}

func checkups(style term.Style, list []schema.Checkup) *term.Table {
	shown := term.NewTable(style, "TABLE", "DATABASE", "PHYSICAL", ">ROWS", ">MISPLACED")
	last := ""
	for _, c := range list {
		name := c.Table
		if name == last {
			name = ""
		}
		last = c.Table
		rows, misplaced := term.Number(c.Rows), term.Number(c.Misplaced)
		switch {
		case !c.All && c.Rows == 0: // its rows were not checked
			rows, misplaced = "–", "–"
		case !c.All:
			rows = "≥ " + rows
		}
		shown.Row(name, c.Database, c.Physical, rows, misplaced)
	}
	return shown
}

func example(e schema.Example) string {
	if e.Belongs == "" {
		return e.Key
	}
	return e.Key + " → " + e.Belongs
}
