// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Leftover are tables that a finalized job leaves, which somebody may drop by hand.
type Leftover struct {
	Database string   `json:"database"`
	Tables   []string `json:"tables"`
	When     string   `json:"when"` // they may be dropped
}

// The tables of jobs that may remain, as docs/runbook.md drops them.
var (
	JobTables = []string{
		"shardid_job", "shardid_span", "shardid_target", "shardid_route", "shardid_fence", "shardid_steer", "shardid_runner",
		"shardid_switch", "shardid_beat", "shardid_preview", "shardid_preview_look", beginTable,
	}
	ShardTables = []string{"shardid_shard_fence", "shardid_owner"}
)

// leftovers are the tables that a finalized job has left.
func leftovers(ctx context.Context, o *Operation, job string) (all []Leftover, err error) {
	var archives []string
	for _, t := range slices.Backward(o.cfg.Tables) { // children before parents, as foreign keys need it
		archives = append(archives, t.Name+"_old")
	}
	look := func(name string, db *sql.DB, tables []string, when string) {
		there, failed := among(ctx, db, tables)
		if err == nil && failed != nil {
			err = fmt.Errorf("database %s: %w", name, failed)
		}
		if len(there) > 0 {
			all = append(all, Leftover{name, there, when})
		}
	}
	look("source", o.cfg.Source, archives, "when you need the space: they are an archive")
	look("source", o.cfg.Source, []string{"shardid_ids_" + job}, "when nobody looks up old ids any more")
	look("source", o.cfg.Source, JobTables, "when no program has sharding.Migration any more, and no other job of the source is under way")
	for _, name := range slices.Sorted(maps.Keys(o.cfg.Shards)) {
		look(name, o.cfg.Shards[name], ShardTables, "after those of the source")
	}
	return all, err
}

// among are those of the tables that a database has.
func among(ctx context.Context, db *sql.DB, tables []string) (there []string, err error) {
	for _, table := range tables {
		is, err := exists(ctx, db, table)
		if err != nil {
			return nil, err
		}
		if is {
			there = append(there, table)
		}
	}
	return there, nil
}

// leftLines are the lines of status about what a finalized job has left.
func leftLines(all []Leftover) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "left on %s: %s; drop %s\n", l.Database, strings.Join(l.Tables, ", "), l.When)
	}
	if len(all) > 0 {
		b.WriteString("drop them by hand, as step 10 of the runbook says\n")
	}
	return b.String()
}
