// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/lookups"
)

// lookupPhases are the displayed names of the passes over a lookup.
var lookupPhases = map[lookups.Pass]string{lookups.Entering: "enter", lookups.ComparingRows: "rows", lookups.ComparingEntries: "entries"}

// watchedLookup shows the progress of a function of package lookups, which calls
// Config.Observe in one goroutine.
func watchedLookup(ctx context.Context, progress *term.Progress, c lookups.Config, do func(context.Context, lookups.Config) (lookups.Report, error)) (lookups.Report, error) {
	total := lookupRows(ctx, c)
	last := lookups.Progress{}
	c.Observe = func(p lookups.Progress) {
		if p.Pass != last.Pass {
			progress.Abort("")
			progress.Begin(lookupPhases[p.Pass], total)
		}
		if p.Pass != last.Pass || p.Target != last.Target {
			last.Rows = 0
		}
		progress.Add(p.Rows - last.Rows)
		last = p
	}
	defer progress.Abort("")
	return do(ctx, c)
}

// lookupRows estimates how many rows the shards of the table have, 0 if unknown.
func lookupRows(ctx context.Context, c lookups.Config) (total int64) {
	t, _ := c.Router.Table(c.Table)
	for _, target := range t.Map.Targets() {
		db := c.Router.DB(target.DB)
		server, err := dialect.Identify(ctx, db)
		if err != nil {
			return 0
		}
		var rows int64
		err = dialect.WithStatistics(ctx, db, server, func(on dialect.Querier) (err error) {
			rows, err = dialect.EstimateRows(ctx, on, server, target.Table)
			return err
		})
		if err != nil {
			return 0
		}
		total += rows
	}
	return total
}
