// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// errUneven: audit found that ids do not fit the rule.
var errUneven = errors.New("the ids spread unevenly over the slots")

// auditFlags are the flags of audit.
type auditFlags struct {
	config, table, column, ids string
	rows                       int64
	asJSON                     bool
}

func newAudit() *cobra.Command {
	f := auditFlags{rows: 100_000}
	cmd := &cobra.Command{
		Use:   "audit --config FILE --table TABLE",
		Short: "Say whether the ids in use spread evenly over the slots",
		Long: `Audit counts how ids spread over the slots of a table's rule, and tests whether
chance explains the result. It takes the highest ids of each physical table, which
are usually the newest, or reads ids from a file, one per line, for example of a table
that is to be sharded. It writes nothing.

It exits with 1 when the ids are uneven.

` + layoutfile.Help,
		Example: "  shardid audit --config shards.json --table orders\n  mysql -N -e 'SELECT id FROM orders LIMIT 100000' shop | shardid audit --config shards.json --table orders --ids -",
		Args:    command.NoArgs("name the table with --table"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	layoutfile.Flag(cmd, &f.config)
	cmd.Flags().StringVar(&f.table, "table", "", "the sharded table, by its logical name")
	cmd.Flags().StringVar(&f.column, "column", "", "the sharding key, or another column that leads to its slot (default the key)")
	cmd.Flags().StringVar(&f.ids, "ids", "", "file of ids instead of the databases; - for stdin")
	cmd.Flags().Var(input.Between(1, math.MaxInt64, &f.rows), "rows", "how many rows of each physical table to look at")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (f auditFlags) run(cmd *cobra.Command) error {
	layout, err := layoutfile.Read(f.config)
	if err != nil {
		return err
	}
	r, err := layout.Router(layout.Unopened())
	if err != nil {
		return err
	}
	table, rule, err := f.rule(r)
	if err != nil {
		return err
	}
	if child, is := layout.Child(table.Name); is && f.ids == "" {
		return input.Errorf("--table: %s: %s; audit its parent; %s", table.Name, child.Unplaced(), child.Placing())
	}
	var ids []int64
	if f.ids != "" {
		ids, err = f.read(cmd.InOrStdin())
	} else {
		ids, err = f.sample(cmd.Context(), term.NewProgress(cmd.ErrOrStderr()), layout, table)
	}
	if err != nil {
		return err
	}
	report, err := sharding.Audit(rule, ids)
	if err != nil {
		return input.Wrap(err)
	}
	return f.print(cmd.OutOrStdout(), report)
}

// rule returns the rule of the column, and sets the column's name to its default.
func (f *auditFlags) rule(r *sharding.Router) (sharding.Table, sharding.Rule, error) {
	if f.table == "" {
		return sharding.Table{}, nil, input.Errorf("which table? give --table; the configuration has %s", tableList(r))
	}
	t, ok := r.Table(f.table)
	if !ok {
		return t, nil, input.Errorf("--table: there is no table %q in the configuration; its tables are %s", dialect.RedactDSN(f.table), tableList(r))
	}
	if f.column == "" || strings.EqualFold(f.column, t.Key) {
		f.column = t.Key
		return t, t.Rule, nil
	}
	for _, also := range t.Also {
		if strings.EqualFold(f.column, also.Column) {
			return t, also.Rule, nil
		}
	}
	return t, nil, input.Errorf("--column: %q does not lead to a slot of %s; leave it out for %s", dialect.RedactDSN(f.column), t.Name, t.Key)
}

func tableList(r *sharding.Router) string {
	var names []string
	for _, t := range r.Tables() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

const oneIDPerLine = "name a file with one id per line"

// read reads ids from a file, one per line.
func (f auditFlags) read(stdin io.Reader) ([]int64, error) {
	source := stdin
	if f.ids != "-" {
		file, err := os.Open(f.ids)
		if err != nil {
			return nil, input.Unread("--ids", f.ids, err, oneIDPerLine)
		}
		defer func() { _ = file.Close() }() // the file was only read
		source = file
	}
	var ids []int64
	lines := bufio.NewScanner(source)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, input.Errorf("--ids: line %d is not an id of 64 bits; give one id per line", n)
		}
		ids = append(ids, id)
	}
	if err := lines.Err(); err != nil {
		return nil, input.Unread("--ids", f.ids, err, oneIDPerLine)
	}
	return ids, nil
}

// sample reads the highest ids of each physical table.
func (f auditFlags) sample(ctx context.Context, progress *term.Progress, layout layoutfile.File, t sharding.Table) (ids []int64, err error) {
	s, err := layout.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	targets := t.Map.Targets()
	progress.Begin("tables", int64(len(targets)))
	defer progress.Abort("")
	for _, target := range targets {
		some, err := f.highest(ctx, s.DBs[target.DB], target.Table)
		if err != nil {
			return nil, fmt.Errorf("the ids of %s: %w", target, err)
		}
		ids = append(ids, some...)
		progress.Add(1)
	}
	return ids, nil
}

func (f auditFlags) highest(ctx context.Context, db *sql.DB, table string) ([]int64, error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return nil, err
	}
	column := server.Quote(f.column)
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %[1]s IS NOT NULL ORDER BY %[1]s DESC LIMIT %[3]d", column, server.Quote(table), f.rows))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns every error
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, input.Errorf("column %s holds values that are not ids of 64 bits; name another column with --column", f.column)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// auditResult is the JSON form of a report.
type auditResult struct {
	Table    string  `json:"table"`
	Column   string  `json:"column"`
	IDs      int     `json:"ids"`
	Slots    int     `json:"slots"`
	Chi2     float64 `json:"chi2"` // per degree of freedom
	Fullest  int     `json:"fullest_slot"`
	Most     int     `json:"most_ids"`
	Emptiest int     `json:"emptiest_slot"`
	Fewest   int     `json:"fewest_ids"`
	Empty    int     `json:"empty_slots"`
	Verdict  string  `json:"verdict"` // "even", "uneven" or "too_few"
}

func (f auditFlags) print(w io.Writer, r sharding.AuditReport) error {
	verdict := map[sharding.Balance]string{sharding.Even: "even", sharding.Uneven: "uneven", sharding.TooFew: "too_few"}[r.Verdict]
	var err error
	if f.asJSON {
		err = command.WriteJSON(w, auditResult{
			f.table, f.column, r.IDs, r.Slots, r.Chi2,
			int(r.Fullest), r.Most, int(r.Emptiest), r.Fewest, r.Empty, verdict,
		})
	} else {
		_, err = fmt.Fprintf(w, "%s.%s: %s\n", term.StyleFor(w).Bold(f.table), f.column, r)
	}
	if err == nil && r.Verdict == sharding.Uneven {
		err = errUneven
	}
	return err
}
