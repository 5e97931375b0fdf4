// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// exportSystems are the systems for which there are exports.
var exportSystems = []string{"vitess", "shardingsphere", "citus", "tidb", "fdw", "spider"}

func newExport() *cobra.Command {
	var config, dir string
	var asJSON, unchecked bool
	cmd := &cobra.Command{
		Use:   "export vitess|shardingsphere|citus|tidb|fdw|spider --config FILE",
		Short: "Translate a sharding configuration for another system, exactly or not at all",
		Long: `Export prints what another system needs to place every row where it lies now: a
VSchema and its shards for Vitess, rules for Apache ShardingSphere, and the
statements that create the tables for Citus and TiDB. For fdw it prints the statements by
which one PostgreSQL reads the live shards as single tables, for reports, and for spider
those by which one MariaDB does. A table that the system cannot place exactly is refused,
with the reason and an alternative.

For Vitess every row of the live shards is checked, as doctor does: the export is
refused where Vitess would not find existing rows. Where the shards are MySQL's, the
export has the statements that turn them into Vitess' shards in place, by RENAME TABLE. For TiDB and Spider the tables'
definitions are read from their databases. Nothing is written to a database.

` + layoutfile.Help,
		Example: "  shardid export vitess --config shards.json --dir vitess\n  shardid export shardingsphere --config shards.json",
		Args:    oneSystem,
		RunE: func(cmd *cobra.Command, args []string) error {
			if unchecked && args[0] != "vitess" {
				return input.Errorf("--unchecked is for vitess; the rows of the shards are checked for no other export, so leave it out")
			}
			layout, err := layoutfile.Read(config)
			if err != nil {
				return err
			}
			out, err := exported(cmd.Context(), term.NewProgress(cmd.ErrOrStderr()), layout, args[0], unchecked)
			if err != nil {
				return err
			}
			return writeExport(cmd.OutOrStdout(), out, dir, asJSON)
		},
	}
	layoutfile.Flag(cmd, &config)
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write the files into, created if it is missing (default: print them)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&unchecked, "unchecked", false, "vitess: do not check the live shards, because they do not exist yet")
	return cmd
}

func oneSystem(_ *cobra.Command, args []string) error {
	names := strings.Join(exportSystems, ", ")
	switch {
	case len(args) != 1:
		return input.Errorf("which system? give one of %s", names)
	case !slices.Contains(exportSystems, args[0]):
		return input.Errorf("there is no export for %q; give one of %s", dialect.RedactDSN(args[0]), names)
	}
	return nil
}

// exported is the layout in the form of a system.
func exported(ctx context.Context, progress *term.Progress, l layoutfile.File, system string, unchecked bool) (export.Export, error) {
	r, err := l.Placed(ctx)
	if err != nil {
		return export.Export{}, err
	}
	var out export.Export
	if err := l.RefuseChildren(system); err != nil {
		return out, err
	}
	switch system {
	case "vitess":
		if l.Vitess.Keyspace == "" {
			return out, input.Errorf(`--config: which keyspace? give "vitess": {"keyspace": "shop"}`)
		}
		if out, err = export.Vitess(r, export.VitessConfig(l.Vitess)); err != nil {
			break
		}
		if !unchecked {
			return addLive(ctx, progress, l, out)
		}
		out.Notes = append(out.Notes, "The live shards were not checked: Vitess does not find rows with a negative key or in a wrong slot.")
	case "shardingsphere":
		out, err = export.ShardingSphere(r)
	case "citus":
		out, err = export.Citus(r)
	case "fdw":
		out, err = export.FDW(r)
	case "spider":
		return exportSpider(ctx, l)
	case "tidb":
		return exportTiDB(ctx, l, r)
	}
	if err != nil {
		return out, input.Wrap(err)
	}
	return out, nil
}

// exportSpider reads the tables' columns from the databases.
func exportSpider(ctx context.Context, l layoutfile.File) (out export.Export, err error) {
	s, err := l.Open(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, _, err := l.Current(ctx, s.DBs)
	if err != nil {
		return out, explained(err, s.Mask)
	}
	out, err = export.Spider(ctx, r)
	return out, explained(refusal(err), s.Mask)
}

// exportTiDB reads the tables' definitions from the databases.
func exportTiDB(ctx context.Context, l layoutfile.File, r *sharding.Router) (out export.Export, err error) {
	s, err := l.Open(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	definitions := map[string]string{}
	for _, t := range r.Tables() {
		target := r.Targets(t.Name)[0]
		if definitions[t.Name], err = definition(ctx, s.DBs[target.DB], target.Table); err != nil {
			return out, fmt.Errorf("the definition of %s: %w", target, err)
		}
	}
	if out, err = export.TiDB(r, definitions); err != nil {
		return out, input.Wrap(err)
	}
	return out, nil
}

func definition(ctx context.Context, db *sql.DB, table string) (string, error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return "", err
	}
	if server.Name() != "mysql" {
		return "", input.Errorf("TiDB takes tables of MySQL and MariaDB only; this database is another")
	}
	var name, text string
	err = db.QueryRowContext(ctx, "SHOW CREATE TABLE "+server.Quote(table)).Scan(&name, &text)
	return text, err
}

func writeExport(w io.Writer, out export.Export, dir string, asJSON bool) error {
	if dir != "" {
		if err := writeFiles(out, dir); err != nil {
			return err
		}
	}
	if asJSON {
		return command.WriteJSON(w, out)
	}
	style := term.StyleFor(w)
	var b strings.Builder
	for _, f := range out.Files {
		if dir != "" {
			fmt.Fprintf(&b, "%s\n", filepath.Join(dir, f.Name))
			continue
		}
		fmt.Fprintf(&b, "%s\n%s\n", style.Bold("==> "+f.Name+" <=="), f.Text)
	}
	for _, note := range out.Notes {
		fmt.Fprintf(&b, "%s %s\n", style.Yellow("note:"), note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFiles replaces no file: an export that is in use may have been edited. Others may
// read the files, which hold no secrets, as Vitess has its own user.
func writeFiles(out export.Export, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // see above
		return input.Errorf("--dir %s cannot be created; name a directory that you may write to", dir)
	}
	for _, f := range out.Files {
		if exists(filepath.Join(dir, f.Name)) {
			return input.Errorf("%s exists; give an empty --dir", filepath.Join(dir, f.Name))
		}
	}
	for _, f := range out.Files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(f.Name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), mode); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
