// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
)

const expandLong = `Expand adds servers to a table whose servers give ids by AUTO_INCREMENT with
offset and step, without moving a row: one master becomes two, N become 2N. The
file's rule of the table is epochs(…), epochs(0 = 0) for one server; list the new
servers' databases in the file, too.

It reads the counters of all servers, sets the cut to the highest plus the margin,
sets offset and step for new connections on every server, and creates the table on
the new ones with its counter at the cut. The remaining steps are the application's, and are
printed in order: DSN parameters, rotating pools, and the new rule.

Without --add it checks whether every server gives ids as the last epoch of the rule
requires and whether a server has rows with another server's ids, and exits with 6 until
all checks succeed. It needs no --source.`

// expansion are the flags of expand.
type expansion struct {
	*Migration

	add    []string
	margin int64
	dry    bool
}

func (m *Migration) newExpand() *cobra.Command {
	e := &expansion{Migration: m}
	cmd := &cobra.Command{
		Use: "expand", Short: "Add servers to a table numbered by offset and step", Long: expandLong,
		Example: "  shardid migrate expand --config shards.json --tables orders --add two/orders_1 --margin 100000 --dry-run\n  shardid migrate expand --config shards.json --tables orders",
		Args:    command.NoArgs("name tables with --tables"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.Cmd = cmd
			return migrateCode(cmd.Context(), e.run(cmd.Context()))
		},
	}
	cmd.Flags().StringSliceVar(&e.add, "add", nil, "targets on the new servers, database/table, in the order of their offsets")
	cmd.Flags().Var(input.Between(0, math.MaxInt64, &e.margin), "margin", "how many ids the busiest server may give until all pools are rotated")
	dryRun(cmd, &e.dry)
	return cmd
}

func (e *expansion) run(ctx context.Context) (err error) {
	layout, err := layoutfile.Read(e.Config)
	if err != nil {
		return err
	}
	tables, err := e.chosen(layout, layoutfile.NewCounters())
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		return input.Errorf("--tables: name the one table that is to get more servers")
	}
	added, err := e.targets()
	if err != nil {
		return err
	}
	dbs, err := openShards(ctx, layout, append(tables, added...), database.Made)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layoutfile.Opened{DBs: dbs}.Close()) }()
	if len(added) == 0 {
		return e.check(ctx, dbs, tables[0].Table)
	}
	return e.grow(ctx, rebalance.ExpandConfig{DBs: dbs, Table: tables[0].Table, Add: added[0].Map.Targets(), Margin: e.margin})
}

// targets parses --add into a table with these targets only.
func (e *expansion) targets() ([]migrate.Table, error) {
	if len(e.add) == 0 {
		return nil, nil
	}
	var all []sharding.Target
	for _, text := range e.add {
		db, table, ok := strings.Cut(text, "/")
		if !ok || db == "" || table == "" {
			return nil, input.Errorf("--add: %q; write database/table", text)
		}
		all = append(all, sharding.Target{DB: db, Table: table})
	}
	if e.margin < 1 {
		return nil, input.Errorf("--margin: give a number above 0: how many ids does the busiest server give until all pools are rotated?")
	}
	m, err := sharding.MapOf(all...)
	if err != nil {
		return nil, input.Errorf("--add: %w", err)
	}
	return []migrate.Table{{Table: sharding.Table{Name: "--add", Map: m}}}, nil
}

// armed is the JSON form of a check.
type armed struct {
	Table string `json:"table"`
	Armed bool   `json:"armed"`
	Why   string `json:"why,omitempty"`
	// Unseen are open connections whose settings the servers do not show.
	Unseen []rebalance.Unseen `json:"unseen,omitempty"`
}

func (e *expansion) check(ctx context.Context, dbs sharding.DBs, t sharding.Table) error {
	found := rebalance.CheckExpansion(ctx, dbs, t, max(e.margin, 1))
	if found != nil && !errors.Is(found, sharding.ErrEpochUnarmed) {
		return found
	}
	unseen, err := rebalance.UnseenConnections(ctx, dbs, t)
	if err != nil {
		return err
	}
	out := armed{Table: t.Name, Armed: found == nil, Unseen: unseen}
	if found != nil {
		out.Why = found.Error()
		found = command.WithCode(found, command.MigrateNotReady)
	}
	return errors.Join(e.show(out, func(w io.Writer) error {
		if !out.Armed {
			return nil // the error contains the text
		}
		_, err := io.WriteString(w, out.text())
		return err
	}), found)
}

// text says what was checked, and what was not.
func (a armed) text() string {
	var b strings.Builder
	if len(a.Unseen) == 0 {
		fmt.Fprintf(&b, "every server of %s gives ids as the last epoch requires, and so do its open connections\n", a.Table)
		return b.String()
	}
	fmt.Fprintf(&b, "every server of %s gives new connections the step and offset of the last epoch\n", a.Table)
	for _, u := range a.Unseen {
		fmt.Fprintf(&b, "warning: %s has %s, not checked because the server does not show their settings: one that was opened "+
			"before the settings were changed still has the old ones. Restart every process that writes there, or KILL what SHOW PROCESSLIST lists, and check again\n", u.DB, term.Count(u.Count, "open connection"))
	}
	return b.String()
}

func (e *expansion) grow(ctx context.Context, cfg rebalance.ExpandConfig) error {
	plan, err := rebalance.PlanExpansion(ctx, cfg)
	if errors.Is(err, sharding.ErrEpochUnarmed) {
		err = command.WithCode(err, command.MigrateNotReady)
	}
	if err != nil {
		return err
	}
	if !e.dry {
		if err := plan.Apply(ctx, cfg.DBs); err != nil {
			return err
		}
	}
	return e.show(plan, func(w io.Writer) error { return e.printPlan(w, plan) })
}

func (e *expansion) show(v any, readable func(io.Writer) error) error {
	o := &Operation{Migration: e.Migration}
	return o.print(v, readable)
}

func (e *expansion) printPlan(w io.Writer, plan rebalance.Expansion) error {
	style := term.StyleFor(w)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the new epoch begins at %s\n\n", style.Bold(plan.Table), term.Number(plan.Cut))
	servers := term.NewTable(style, "SLOT", "DATABASE", "TABLE", ">NEXT", "NOW", "THEN")
	for _, s := range plan.Servers {
		next := term.Number(s.Next)
		if s.New {
			next = "new"
		}
		servers.Row(strconv.Itoa(int(s.Slot)), s.DB, s.Table, next, s.Now.String(), s.Class.String())
	}
	b.WriteString(servers.String() + "\n")
	for i, step := range plan.Steps {
		where, done := step.DB, ""
		if where == "" {
			where = "application"
		} else if !e.dry {
			done = style.Green(" (done)")
		}
		fmt.Fprintf(&b, "%d. %s%s: %s\n", i+1, style.Bold(where), done, step.Text)
		for _, statement := range step.SQL {
			fmt.Fprintf(&b, "     %s;\n", strings.ReplaceAll(statement, "\n", "\n     "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
