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

// Migration says that tables of the router are being moved out of a database,
// the source, by package schema/migrate. It is an [Option] of [New].
//
// As long as the source serves them (see [Route]), each of these tables has one
// target, the table of its name in the source; see [Table.Origin]. From the
// switch on it has those of its map, and after a rollback that of the source
// again. The router reads the route rows in [Router.Load], which a program calls
// when it starts, and again when a statement finds its place closed: no
// statement costs a query more.
//
// Take the option out when the job is finalized.
type Migration struct {
	// Source is the name in [DBs] of the database that is being migrated: its
	// primary, as a replica may not know yet that a place is closed. The database
	// of the route rows.
	Source string
	// Tables are the tables of the job, by logical name, which is the name in the
	// source. The value is the column that the source numbers (AUTO_INCREMENT,
	// rowid): adapters leave it empty until the first switch, and let generators
	// fill it from then on, also after a rollback. "" is for a table whose keys the
	// application makes before the switch, too. Tables of one group belong into one
	// migration.
	Tables map[string]string
	// Patience is how long a statement may wait for the next place when its own
	// was closed. It should be above the longest pause that the switch is
	// allowed. Defaults to 10 s.
	Patience time.Duration
	// Preview collects what the shards will do otherwise with the statements that the
	// source serves, as package shardsql finds them: which they refuse, which several of
	// them answer, and before which others are asked. Statements of a transaction that
	// would be on two databases are among them. Nothing more is sent, and the source
	// answers as ever. Defaults to nil, which costs nothing.
	Preview *Preview
	// Strict refuses already while the source serves what the shards will refuse, for
	// tests. An INSERT that leaves a column to the source that numbers it is accepted
	// until the switch: no other one is right before that.
	Strict bool
}

// Origin is where a table lies before its migration.
type Origin struct {
	// Target is the source's table, under its logical name.
	Target Target
	// Numbered is the column that the database numbers, "" if there is none, and
	// after a rollback.
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

// validate returns everything that is wrong with m for the tables of s.
func (m Migration) validate(s *Snapshot, dbs map[string]bool) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("Migration: "+format, args...)) }
	if !dbs[m.Source] {
		add("Source: the router has no database %q; name the one that is being migrated", m.Source)
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
			add("Tables: %q: its target in %s is the table that is being migrated; shards there need names of their own", name, m.Source)
		} else if len(t.Lookups) > 0 {
			add("Tables: %q: its lookup tables would not be kept while the source serves it; declare Lookups when the migration is over, and fill them with lookups.Build", name)
		}
		if column := m.Tables[name]; column != "" {
			if err := dialect.CheckIdent(column); err != nil {
				add("Tables: %q: column %w", name, err)
			}
		}
	}
	return errors.Join(append(errs, m.checkGroups(s))...)
}

// checkGroups refuses groups of which only a part would be switched.
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

// routing is what the source said about its tables, by folded name. It is
// immutable.
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

// Switched returns what the router will know after the switch of all tables of a
// [Migration] that has a Preview or is Strict; nil without such a one, and as long as its
// source serves none of them.
func (s *Snapshot) Switched() *Snapshot { return s.switched }

// served returns s with the tables of m where by says that they are.
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
			t.settle(by, Origin{Target{m.Source, t.Name}, column})
		}
	}
	return &next
}

// settle gives t the place that the route names.
func (t *Table) settle(by *routing, from Origin) {
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
