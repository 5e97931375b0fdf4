// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/demo"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
)

// errUnclean: the verification found something.
var errUnclean = errors.New("rows are lost, duplicated or misrouted")

const defaultRows = 100_000

func (p *program) newDemo() *cobra.Command {
	cfg := demo.Config{Rows: defaultRows, BeforeCheck: p.beforeCheck}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Move an AUTO_INCREMENT database to shards under live writers, on files of its own",
		Long: `Demo creates a SQLite database of orders and order items with AUTOINCREMENT keys,
and moves it to shards by the order's id, while an application written with GORM
and one written with sqlx keep inserting, updating and deleting: it inspects the
database, seeds generators above the ids in use, copies 2 databases × 4 tables,
items with their orders, follows the changes, compares, and switches. From then
on ids are generated. The applications do not change: their routers find
out where the tables are. In the end every row is compared with what the applications
know to be stored, and every new row is read back by its id.

With --db it shards a copy of your own table, which needs a single integer
key. Your file is opened read-only. New rows are copies of existing ones.

Everything is written into one folder, below --dir or a new temporary directory.
A later run with the same --dir replaces it.

JSON keys (a row is one of the table or of its child): source_rows, copied_rows,
inserted_gorm, inserted_sqlx, lost, duplicates, misrouted, seconds, and shards, an
array of db, table, rows; then updated_rows, deleted_rows (which the applications
had inserted besides), switch_pause_ms, for which the tables were closed, and
longest_pause_ms, which is the longest time that a writer waited for one statement
or transaction during the whole migration.`,
		Example: "  shardid demo\n  shardid demo --db Chinook.db --table Invoice --child InvoiceLine.InvoiceId",
		Args:    command.NoArgs("name a SQLite file with --db"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.File != "" && cmd.Flags().Changed("rows") {
				return input.Errorf("--rows is for the database that demo creates; leave it out with --db")
			}
			return runDemo(cmd.Context(), cfg, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&cfg.Dir, "dir", "", "directory for the folder with all files (default a new temporary one)")
	cmd.Flags().StringVar(&cfg.File, "db", "", "SQLite file to shard instead of a created one")
	cmd.Flags().StringVar(&cfg.Table, "table", "", "with --db: the table to shard by its key")
	cmd.Flags().StringVar(&cfg.Child, "child", "", "with --db: a table and its column that refers to --table, as order_items.order_id")
	cmd.Flags().Var(input.Between(1, 100_000_000, &cfg.Rows), "rows", "without --db: number of orders to create")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func runDemo(ctx context.Context, cfg demo.Config, asJSON bool, stdout, stderr io.Writer) error {
	progress := term.NewProgress(stderr)
	cfg.Progress = progress
	result, err := demo.Run(ctx, cfg)
	if err != nil {
		progress.Abort(unfinished(result.Dir))
		return err
	}
	if asJSON {
		err = command.WriteJSON(stdout, result)
	} else {
		err = printResult(stdout, result)
	}
	if err == nil && !result.Verdict().Clean() {
		err = fmt.Errorf("%w: %d lost, %d duplicates, %d misrouted; the files are in %s",
			errUnclean, result.Lost, result.Duplicates, result.Misrouted, result.Dir)
	}
	return err
}

func unfinished(dir string) string {
	if dir == "" {
		return ""
	}
	return "unfinished files are in " + dir
}

func printResult(w io.Writer, r demo.Result) error {
	style := term.StyleFor(w)
	text := fmt.Sprintf("\n%s\n%s\nThe files are in %s\n%s\n", shardTable(style, r), rowTable(style, r), r.Dir, fileTable(style, r))
	if len(r.Apps) > 0 {
		text += fmt.Sprintf("The tables were closed for %.0f ms at the switch.\nThe longest that a writer waited during the whole migration was %s.\n", r.SwitchPauseMS, style.Bold(fmt.Sprintf("%.0f ms", r.LongestPauseMS)))
		text += "SQLite admits one writer per file, so writers also waited for the copying.\n"
	}
	_, err := fmt.Fprintf(w, "%s%s %.1f s.\n", text, conclusion(style, r), r.Seconds)
	return err
}

func shardTable(style term.Style, r demo.Result) *term.Table {
	t := term.NewTable(style, "DATABASE", "TABLE", ">ROWS", "CHECKSUM")
	shown := ""
	for _, s := range r.Shards {
		db := s.DB
		if db == shown {
			db = ""
		}
		t.Row(db, s.Table, term.Number(s.Rows), fmt.Sprintf("%016x", s.Checksum))
		shown = s.DB
	}
	return t
}

// rowTable has a column for each application, and one for the sum.
func rowTable(style term.Style, r demo.Result) *term.Table {
	t := term.NewTable(style, "ROWS", ">COUNT", ">GORM", ">SQLX")
	gorm, sqlx := r.Apps[demo.ViaGORM], r.Apps[demo.ViaSQLX]
	t.Row("in the source", term.Number(r.SourceRows))
	t.Row("copied", term.Number(r.CopiedRows))
	t.Row("inserted", term.Number(gorm.Inserted+sqlx.Inserted), term.Number(gorm.Inserted), term.Number(sqlx.Inserted))
	t.Row("updated", term.Number(r.UpdatedRows), term.Number(gorm.Updated), term.Number(sqlx.Updated))
	t.Row("inserted and deleted", term.Number(r.DeletedRows), term.Number(gorm.Deleted), term.Number(sqlx.Deleted))
	for _, bad := range []struct {
		what string
		n    int64
	}{{"lost", r.Lost}, {"duplicates", r.Duplicates}, {"misrouted", r.Misrouted}} {
		t.Row(bad.what, term.Number(bad.n))
	}
	return t
}

func fileTable(style term.Style, r demo.Result) *term.Table {
	t := term.NewTable(style, "FILE", ">SIZE", "HOLDS")
	for _, f := range r.Files {
		t.Row(filepath.Base(f.Path), size(f.Path), f.Holds)
	}
	return t
}

func conclusion(style term.Style, r demo.Result) string {
	if r.Verdict().Clean() {
		return style.Green("Every row is where its key leads to.")
	}
	return style.Red("Some rows are lost, duplicated or misrouted.")
}

func size(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "?"
	}
	if info.Size() < 1e6 {
		return fmt.Sprintf("%.0f kB", float64(info.Size())/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)
}
