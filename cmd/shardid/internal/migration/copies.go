// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// missingCopies warns of broadcast tables of the file that databases with shards lack. The job does not create them, because it
// does not move their rows.
func (o *Operation) missingCopies(ctx context.Context) (found []migrate.Finding) {
	for _, table := range o.broadcast {
		if without := WithoutCopy(ctx, o.cfg.Shards, table); len(without) > 0 {
			found = append(found, migrate.Finding{
				Code: migrate.OutsideJob, Severity: migrate.Warn, Database: strings.Join(without, ", "), Table: table,
				Message: "the file lists it as broadcast, and there is no such table: programs with the router cannot write to it, and from the switch on queries that join it fail",
				Fix:     "create it there before programs get the router, which writes every copy; copy its rows before the cutover, when all programs that write to it have the router and none is writing",
			})
		}
	}
	return found
}

// WithoutCopy returns the names of the databases that certainly lack a table: another error, such as that of a server that is
// down or of a missing right, does not say so.
func WithoutCopy(ctx context.Context, dbs sharding.DBs, table string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(dbs)) {
		server, err := dialect.Detect(ctx, dbs[name])
		if err != nil {
			continue
		}
		if _, err := dbs[name].ExecContext(ctx, "SELECT 1 FROM "+server.Quote(table)+" WHERE 1 = 0"); dialect.FaultOf(err) == dialect.NoTable {
			names = append(names, name)
		}
	}
	return names
}

// warnings are about tables of the file that are not in the job.
func (o *Operation) warnings(ctx context.Context) []migrate.Finding {
	return append(slices.Clone(o.apart), o.missingCopies(ctx)...)
}

// warn prints warnings beside the output.
func (o *Operation) warn(found []migrate.Finding) {
	for _, f := range found {
		place := f.Table
		if f.Database != "source" {
			place = f.Database + ": " + f.Table
		}
		o.sayf("warning: %s: %s; %s", place, f.Message, f.Fix)
	}
}
