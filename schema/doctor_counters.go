// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// counterTable is a table that gives ids. A database that has lost rows gives some of them
// again, unless a guard detects that.
type counterTable struct {
	name string
	// guard is the row of worker_namespace that notes the server for the table; "" where
	// there is no guard, as the table belongs to another system.
	guard   string
	finding Finding
}

const (
	forgotten = ": on a database restored from a backup, or a replica that took over before it had all rows, "
	noMemory  = "; replicate semi-synchronously, and after a fail-over or a restore raise it above every id in use"
)

var counterTables = []counterTable{
	{"WORKER_NODE", "WORKER_NODE", Finding{
		UnguardedNode, Warning,
		"worker ids come from it without a guard" + forgotten + "the ids of the latest starts are given again, and two processes issue equal ids",
		"use sqlstore's GuardedWorkerNode in all processes, which notices another server; until then, and after a restore on the same server, raise AUTO_INCREMENT (the sequence) above every id that was given",
	}},
	{"leaf_alloc", "leaf_alloc", Finding{
		UnguardedSegments, Warning,
		"segments come from it without a guard" + forgotten + "the latest ones are given again, and so are numbers of periods",
		"use sqlstore's GuardedTag for all tags, which notices another server; counters of periods have no guard: replicate semi-synchronously, and after a fail-over or a restore raise max_id above every id in use",
	}},
	{"tiny_id_info", "", Finding{
		UnguardedSegments, Warning, "segments come from it, which has no guard" + forgotten + "the latest ones are given again",
		"the table is tinyid's and its other users know no guard" + noMemory,
	}},
	{"cosid", "", Finding{
		UnguardedSegments, Warning, "segments come from it, which has no guard" + forgotten + "the latest ones are given again",
		"the table is CosId's and its other users know no guard" + noMemory,
	}},
}

// counters warns of tables in use that no guard protects. It skips SQLite: a guard tells
// servers apart, and SQLite has none.
func (d *databaseScan) counters(ctx context.Context, names []string) {
	guards := named(names, "worker_namespace")
	for _, of := range counterTables {
		table := named(names, of.name)
		if table == "" {
			continue
		}
		var unguarded bool
		err := d.within(ctx, func(ctx context.Context, s session, _ catalog) (err error) {
			unguarded, err = of.unguarded(ctx, s, table, guards)
			return err
		})
		switch {
		case err != nil && ctx.Err() == nil:
			d.find(table, Finding{NotChecked, Warning, "whether its ids are guarded cannot be told: " + err.Error(), "grant SELECT on " + of.name + " and worker_namespace, and look again"})
		case unguarded:
			d.find(table, of.finding)
		}
	}
	if table := named(names, "WORKER_NODE"); table != "" {
		d.nodeSteps(ctx, table)
	}
}

// nodeSteps warns of a server whose AUTO_INCREMENT rises in steps, as it does in a cluster
// so that members give distinct ids: a layout's worker bits then last for fewer starts.
func (d *databaseScan) nodeSteps(ctx context.Context, table string) {
	step := int64(1)
	err := d.within(ctx, func(ctx context.Context, s session, _ catalog) error {
		if s.Name() != "mysql" {
			return nil
		}
		return s.QueryRowContext(ctx, "SELECT @@GLOBAL.auto_increment_increment").Scan(&step)
	})
	switch {
	case err != nil && ctx.Err() == nil:
		d.find(table, Finding{NotChecked, Warning, "in which steps worker ids rise cannot be told: " + err.Error(), "look again"})
	case step > 1:
		d.find(table, Finding{
			NodeSteps, Warning,
			fmt.Sprintf("worker ids rise in steps of %d (auto_increment_increment), so a layout's worker bits last for 1/%d of the starts", step, step),
			"set it to 1 (in a replication group by group_replication_auto_increment_increment, in Galera by wsrep_auto_increment_control=OFF); inserts of two members that conflict are retried. Or use a layout with more worker bits",
		})
	}
}

// unguarded reports whether the table is in use without a guard.
func (of counterTable) unguarded(ctx context.Context, s session, table, guards string) (bool, error) {
	if s.Name() == "sqlite" {
		return false, nil
	}
	var used bool
	if err := s.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+s.Quote(table)+")").Scan(&used); err != nil || !used {
		return false, err
	}
	if of.guard == "" || guards == "" {
		return true, nil
	}
	var noted string
	err := s.QueryRowContext(ctx, "SELECT "+s.Quote("identity")+" FROM "+s.Quote(guards)+" WHERE "+s.Quote("namespace")+" = '"+of.guard+"'").Scan(&noted)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return noted == "", err
}

// named returns the table of a name as the database spells it, or "".
func named(names []string, name string) string {
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return ""
	}
	return names[i]
}
