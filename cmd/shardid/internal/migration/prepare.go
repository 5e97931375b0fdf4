// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/preview"
)

func dryRun(cmd *cobra.Command, dry *bool) {
	cmd.Flags().BoolVar(dry, "dry-run", false, "print the SQL and write nothing")
}

func (m *Migration) newInstall() *cobra.Command {
	var dry bool
	cmd := m.verb("install", "Create the tables that generators need, on the source", `Install creates leaf_alloc, WORKER_NODE and the tables of leases where they are
missing, checks those that exist, and creates the tables of preview. The job's own
tables and triggers are created by run.`,
		func(ctx context.Context, o *Operation) error {
			if !dry {
				err := errors.Join(schema.Apply(ctx, o.cfg.Source), preview.Create(ctx, o.cfg.Source))
				return o.said(err, "the tables that generators and preview need exist")
			}
			server, err := dialect.Detect(ctx, o.cfg.Source)
			if err != nil {
				return err
			}
			ids, err := schema.DDL(server.Name())
			if err != nil {
				return err
			}
			statements, err := preview.DDL(server.Name())
			if err == nil {
				_, err = io.WriteString(o.Cmd.OutOrStdout(), ids+"\n"+statements)
			}
			return err
		})
	dryRun(cmd, &dry)
	return cmd
}

// seeded is the result of seed for one table.
type seeded struct {
	Table string `json:"table"`
	Tag   string `json:"tag"`
	Next  int64  `json:"next"`
}

func (m *Migration) newSeed() *cobra.Command {
	var dry bool
	var margin int64
	step := int64(1000)
	cmd := m.verb("seed", "Make generators begin above every id in use", `Seed raises the counter of each table in leaf_alloc, under the table's name, to the
table's next id plus a margin. It never lowers one, and may be repeated; processes
that already use generators have to be restarted then, as they hold ids
from before. It stores in shardid_seed where ids begin, for cutover, which refuses to
switch when the table has given such ids by itself.

The margin is for the ids that the table gives until the switch: three times as
many as it gives during the planned days of the migration is a good margin.`,
		func(ctx context.Context, o *Operation) error {
			if margin == 0 {
				return input.Errorf("give --margin: how many ids may the table give before the switch?")
			}
			all, err := o.seed(ctx, max(margin, step), step, dry)
			if err != nil {
				return err
			}
			return o.print(all, func(w io.Writer) error {
				for _, s := range all {
					if _, err := fmt.Fprintf(w, "%s: generated ids begin at %s\n", s.Tag, term.Number(s.Next)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	cmd.Flags().Var(input.Between(1, math.MaxInt64, &margin), "margin", "how many ids to leave for the table")
	cmd.Flags().Var(input.Between(1, 1_000_000_000, &step), "step", "how many ids a process takes at a time, for new tags")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print where ids would begin unless a counter is higher already, and write nothing")
	return cmd
}

// warnOfNarrow warns if the source cannot hold an id that begins the generated ones.
func (o *Operation) warnOfNarrow(ctx context.Context, t migrate.PlannedTable, next int64) error {
	server, err := dialect.Detect(ctx, o.cfg.Source)
	if err != nil {
		return err
	}
	column, err := dialect.WholeNumbers(ctx, o.cfg.Source, server, t.Name, t.Key)
	if err == nil && column.Most != 0 && column.Most < next {
		o.sayf("warning: %s of %s holds ids up to %s, and generated ones begin at %s: no row with such an id can be brought back from the shards, so a rollback will be refused; make the column BIGINT before run",
			t.Key, t.Name, term.Number(column.Most), term.Number(next))
	}
	return err
}

func (o *Operation) seed(ctx context.Context, margin, step int64, dry bool) ([]seeded, error) {
	p, err := o.job.Progress(ctx)
	if err != nil {
		return nil, err
	}
	if p.Phase == migrate.PhaseSwitched || p.Phase == migrate.PhaseReturning || p.Phase == migrate.PhaseFinalized {
		return nil, command.WithCode(fmt.Errorf("job %s is %s: generators make the ids already, so there is nothing to seed", p.Job, p.Phase), command.MigrateNotReady)
	}
	plan, err := o.job.Plan(ctx)
	if err != nil {
		return nil, err
	}
	var all []seeded
	for _, t := range plan.Tables {
		next, err := schema.NextID(ctx, o.cfg.Source, t.Name, t.Key)
		if err != nil {
			return nil, err
		}
		if next > math.MaxInt64-margin {
			return nil, input.Errorf("--margin %d: the next id of %s is %d, and with the margin it is above the largest id; give a smaller margin", margin, t.Name, next)
		}
		next += margin
		if !dry {
			next, err = schema.Seed(ctx, o.cfg.Source, t.Name, next, step)
			if dialect.FaultOf(err) == dialect.NoTable {
				return nil, command.WithCode(fmt.Errorf("the tables of generators do not exist; run shardid migrate install first: %w", err), command.MigrateNotReady)
			}
			if err != nil {
				return nil, err
			}
			if err := noteBegin(ctx, o.cfg.Source, t.Name, next); err != nil {
				return nil, err
			}
		}
		if err := o.warnOfNarrow(ctx, t, next); err != nil {
			return nil, err
		}
		all = append(all, seeded{t.Name, t.Name, next})
	}
	return all, nil
}
