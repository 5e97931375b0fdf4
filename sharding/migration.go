// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// Migration says that package schema/migrate moves tables of the router out of a database, the
// source. It is an [Option] of [New].
//
// While the source serves them (see [Route]), each of these tables has one target, the table of its
// name in the source; see [Table.Origin]. From the switch on it has the targets of its map, and
// after a rollback that of the source again. The router reads the route rows in [Router.Load],
// which a program calls when it starts, and again when a statement finds its table closed. So no
// statement needs an extra query.
//
// Remove the option when the job is finalized.
type Migration struct {
	// Source is the name in [DBs] of the database that is being migrated, which has the route rows.
	// It must be the primary, because a replica may not know yet that a table is closed.
	Source string
	// Tables are the tables of the job, by logical name, which is the name in the source. The value
	// is the column that the source numbers (AUTO_INCREMENT, rowid): adapters leave it empty until
	// the first switch, and generators fill it from then on, also after a rollback. The value is ""
	// for a table whose keys the application generates before the switch, too. Tables of one group
	// must be in one migration.
	Tables map[string]string
	// Patience is how long a statement may wait for another database when its table was closed. It
	// should be longer than the longest pause that the switch may take. Defaults to 10 s.
	Patience time.Duration
	// Preview collects the statements that the shards will execute otherwise than the source, as
	// package shardsql finds them: refused statements, statements on several shards, and statements
	// before which other shards are searched. A statement that would put its transaction on two
	// databases is collected, too. An INSERT that leaves the ids to the source is checked as if the
	// generators had made them already. If such ids are the sharding keys, they may lead to any
	// database, so rows for one transaction are collected although the ids may lead to one database.
	// No additional statement is sent, and the source answers as before. Defaults to nil, which costs
	// nothing.
	Preview *Preview
	// Strict refuses, while the source still serves the tables, the statements that the shards will
	// refuse. It is for tests. An INSERT that the shards will refuse only because it leaves a column
	// to the source that numbers it is accepted until the switch, because no other INSERT is correct
	// before it.
	Strict bool
}

// Origin is the location of a table before its migration.
type Origin struct {
	// Target is the source's table, under its logical name.
	Target Target
	// Numbered is the column that the database numbers. It is "" if there is none, and after a
	// rollback.
	Numbered string
}

func (m Migration) apply(s *settings) { s.migrations = append(s.migrations, m) }

// withDefaults returns a copy with names in lower case.
func (m Migration) withDefaults() Migration {
	tables := make(map[string]string, len(m.Tables))
	for name, column := range m.Tables {
		tables[fold(name)] = column
	}
	m.Tables = tables
	if m.Patience == 0 {
		m.Patience = 10 * time.Second
	}
	return m
}

// validate returns all errors of m for the tables of s.
func (m Migration) validate(s *Snapshot, dbs DBs) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("Migration: "+format, args...)) }
	if dbs[m.Source] == nil {
		add("Source: the router has no database %q; name the database that is being migrated", m.Source)
	}
	if m.Patience < 0 {
		add("Patience: %s: must not be negative", m.Patience)
	}
	if len(m.Tables) == 0 {
		add("Tables: is empty; name the tables of the job")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tables)) {
		if t, ok := s.Lookup(name); !ok {
			add("Tables: %q: %w", name, ErrUnknownTable)
		} else if slices.ContainsFunc(t.Map.targets, func(at Target) bool { return foldTarget(at) == foldTarget(Target{m.Source, name}) }) {
			add("Tables: %q: its target in %s is the table that is being migrated; give the shards there other names", name, m.Source)
		} else if len(t.Lookups) > 0 {
			add("Tables: %q: its lookup tables would not be maintained while the source serves it; declare Lookups after the migration, and fill them with lookups.Build", name)
		}
		if column := m.Tables[name]; column != "" {
			if err := dialect.CheckIdent(column); err != nil {
				add("Tables: %q: column %w", name, err)
			}
		}
	}
	return errors.Join(append(errs, m.checkGroups(s))...)
}

// checkGroups refuses a migration of only some tables of a group.
func (m Migration) checkGroups(s *Snapshot) error {
	moving := m.withDefaults().Tables
	var errs []error
	for i := range s.tables {
		for j := range s.tables {
			_, moves := moving[fold(s.tables[i].Name)]
			_, alsoMoves := moving[fold(s.tables[j].Name)]
			if moves && !alsoMoves && s.tables[i].sameGroup(&s.tables[j]) {
				errs = append(errs, fmt.Errorf("Migration: Tables: %q is not among them, but %q of its group is; tables of a group move together", s.tables[j].Name, s.tables[i].Name))
			}
		}
	}
	return errors.Join(errs...)
}

// routing holds the route rows of the source, by folded table name. It is immutable.
type routing map[string]RouteRow

// onSource reports whether the source serves a table.
func (r *routing) onSource() bool {
	for _, row := range *r {
		if row.Route.isSource() {
			return true
		}
	}
	return false
}

// onShards returns the routes after the switch of all tables.
func (r *routing) onShards() *routing {
	next := maps.Clone(*r)
	for table, row := range next {
		row.Route = OnShards
		next[table] = row
	}
	return &next
}

// Switched returns the router's state after the switch of all tables of a [Migration] that has a
// Preview or is Strict. It returns nil without such a migration, and if the source serves none of
// its tables.
func (s *Snapshot) Switched() *Snapshot { return s.switched }

// served returns s with the tables of m on the databases that by names.
func (s *Snapshot) served(m *Migration, by *routing) *Snapshot {
	if m == nil {
		return s
	}
	next := *s
	next.migration, next.routing = m, by
	if next.switched = nil; by != nil && (m.Preview != nil || m.Strict) && by.onSource() {
		next.switched = s.served(m, by.onShards())
	}
	next.tables = slices.Clone(s.sharded)
	next.byName = make(map[string]*Table, len(next.tables))
	for i := range next.tables {
		t := &next.tables[i]
		next.byName[fold(t.Name)] = t
		if column, moves := m.Tables[fold(t.Name)]; moves {
			t.applyRoute(by, Origin{Target{m.Source, t.Name}, column})
		}
	}
	return &next
}

// applyRoute sets the target of t that the route names.
func (t *Table) applyRoute(by *routing, from Origin) {
	if by == nil {
		t.Map = Map{version: t.Map.version, closed: ErrRouteUnread}
		return
	}
	route := (*by)[fold(t.Name)].Route
	if route != OnSource {
		t.unnumbered, from.Numbered = from.Numbered, ""
	}
	if route.isSource() {
		t.Map = Map{version: t.Map.version, targets: []Target{from.Target}}
		t.origin = &from
	}
}
