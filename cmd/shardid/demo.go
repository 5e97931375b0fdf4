package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/demo"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
)

// errUnclean: the verification found something.
var errUnclean = errors.New("rows are lost, duplicated or misrouted")

const defaultRows = 100_000

func (p *program) newDemo() *cobra.Command {
	cfg := demo.Config{Rows: defaultRows, AfterCopy: p.afterCopy}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Turn an AUTO_INCREMENT database into a sharded one, on files of its own",
		Long: `Demo makes a SQLite database of orders and order items that number themselves,
and shards it by the order's id: it inspects it, seeds generators above the ids
in use, copies it into 2 databases × 4 tables, items beside their orders, and
compares every row. Then it goes on inserting, through GORM and through sqlx at
once, with generated ids, reads the new rows back by id, and compares again.

With --db it does so with a table of yours. Your file is opened read-only; the
table needs a single integer key. New rows are copies of existing ones.

Everything is written into one folder, below --dir or a new temporary directory.
A later run with the same --dir replaces it.

JSON keys (a row is one of the table or of its child): source_rows, copied_rows,
inserted_gorm, inserted_sqlx, lost, duplicates, misrouted, seconds, and shards, an
array of db, table, rows.`,
		Example: "  shardid demo\n  shardid demo --db Chinook.db --table Invoice --child InvoiceLine.InvoiceId",
		Args:    noArgs("give a SQLite file with --db"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.File != "" && cmd.Flags().Changed("rows") {
				return input.Errorf("--rows is for the database that demo makes; leave it out with --db")
			}
			return runDemo(cmd.Context(), cfg, asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&cfg.Dir, "dir", "", "directory for the folder with all files (default a new temporary one)")
	cmd.Flags().StringVar(&cfg.File, "db", "", "SQLite file to shard instead of a made one")
	cmd.Flags().StringVar(&cfg.Table, "table", "", "with --db: the table to shard by its key")
	cmd.Flags().StringVar(&cfg.Child, "child", "", "with --db: a table and its column that refers to --table, as order_items.order_id")
	cmd.Flags().IntVar(&cfg.Rows, "rows", cfg.Rows, "without --db: number of orders to make")
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
		err = writeJSON(stdout, result)
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
	shards := term.NewTable(style, "DATABASE", "TABLE", ">ROWS", "CHECKSUM")
	shown := ""
	for _, s := range r.Shards {
		db := s.DB
		if db == shown {
			db = ""
		}
		shards.Row(db, s.Table, term.Number(s.Rows), fmt.Sprintf("%016x", s.Checksum))
		shown = s.DB
	}
	counts := term.NewTable(style, "ROWS", ">COUNT")
	for _, c := range []struct {
		what string
		n    int64
	}{
		{"in the source", r.SourceRows}, {"copied", r.CopiedRows},
		{"inserted through GORM", r.InsertedGORM}, {"inserted through sqlx", r.InsertedSQLX},
		{"lost", r.Lost}, {"duplicates", r.Duplicates}, {"misrouted", r.Misrouted},
	} {
		counts.Row(c.what, term.Number(c.n))
	}
	files := term.NewTable(style, "FILE", ">SIZE", "HOLDS")
	files.Row(r.Source, size(r.Source), "the source, unchanged")
	files.Row(r.Control, size(r.Control), "leaf_alloc and WORKER_NODE")
	for _, db := range r.DBs {
		files.Row(db, size(db), "a shard")
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s\n%s\n%s %.1f s.\n", shards, counts, files, conclusion(style, r), r.Seconds)
	return err
}

func conclusion(style term.Style, r demo.Result) string {
	if r.Verdict().Clean() {
		return style.Green("Every row is where its key leads to.")
	}
	return style.Red("Rows are not where they should be.")
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
