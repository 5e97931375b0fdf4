// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// Step is a statement for one physical table.
type Step struct {
	Version   int64
	Statement int             // counted from 1, in its direction of the version
	Target    sharding.Target // the physical table; for a RENAME, or a DROP of several, the first
	SQL       string          // the text that is sent

	text     string            // the text in the file
	physical map[string]string // the statement's physical tables, by their logical names in lower case
	around   map[string]string // the same, and the other tables of the group's shard
	own      []string          // the physical tables whose definitions the statement changes
	drops    bool              // none of these exists after it
}

// versionStatements are the statements of all versions, parsed for one dialect.
type versionStatements map[*version]map[direction][]*statement

// readStatements parses every statement before any is sent.
func readStatements(all []*version, dialectName string, flavor sqltext.Flavor) (versionStatements, error) {
	known := newCatalog()
	b := versionStatements{}
	for _, v := range all {
		b[v] = map[direction][]*statement{}
		for _, d := range []direction{up, down} {
			for _, text := range v.in(d).statements {
				s, err := read(text, dialectName, flavor, known)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
				b[v][d] = append(b[v][d], s)
			}
		}
	}
	for _, v := range all {
		for _, d := range []direction{up, down} {
			for _, s := range b[v][d] {
				if err := known.settle(s, dialectName); err != nil {
					return nil, fmt.Errorf("%s: %w", v.name, err)
				}
			}
		}
	}
	return b, nil
}

// flavorOf returns how a server parses texts.
func flavorOf(ctx context.Context, db dialect.Querier, d dialect.Dialect) (sqltext.Flavor, error) {
	switch d.Name() {
	case "postgres":
		return sqltext.PostgreSQL, nil
	case "sqlite":
		return sqltext.SQLite, nil
	}
	var mode string
	if err := db.QueryRowContext(ctx, "SELECT @@sql_mode").Scan(&mode); err != nil {
		return 0, err
	}
	flavor, m := sqltext.MySQL, dialect.ParseMode(mode)
	if m.NoBackslashEscapes {
		flavor &^= sqltext.BackslashEscapes
	}
	if m.ANSIQuotes {
		flavor &^= sqltext.DoubleQuoteStrings
	}
	return flavor, nil
}

// places returns the statement's physical tables in a database; each map has those of one
// shard.
func places(router *sharding.Snapshot, s *statement, db string) ([]map[string]string, error) {
	for _, table := range s.tables {
		if router.IsBroadcast(table) {
			continue
		}
		t, ok := router.Lookup(table)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s is neither a sharded nor a broadcast table of the router; change other tables with a tool for one database", ErrStatement, table)
		case t.Origin() != nil || len(router.Targets(table)) == 0:
			return nil, fmt.Errorf("%w: %s is being migrated; wait until its shards serve", ErrStatement, table)
		}
	}
	if router.IsBroadcast(s.tables[0]) {
		for _, table := range s.tables {
			if !router.IsBroadcast(table) {
				return nil, fmt.Errorf("%w: a broadcast table cannot refer to %s, of which each database has a part", ErrStatement, table)
			}
		}
		return []map[string]string{broadcast(s.tables)}, nil
	}
	return shards(router, s, db)
}

func broadcast(tables []string) map[string]string {
	place := map[string]string{}
	for _, table := range tables {
		place[fold(table)] = table
	}
	return place
}

// shards iterates over the slots, so that tables of a group are matched with those that
// hold the same slots.
func shards(router *sharding.Snapshot, s *statement, db string) (all []map[string]string, err error) {
	first := s.tables[0]
	found := map[string]map[string]string{} // by the first table's physical name
	t, _ := router.Lookup(first)
	for slot := range router.Slots(first) {
		at, ok := t.Map.Target(sharding.Slot(slot))
		if !ok {
			continue
		}
		place := broadcast(s.tables)
		place[fold(first)] = at.Table
		for _, other := range s.tables[1:] {
			if router.IsBroadcast(other) {
				continue
			}
			o, _ := router.Lookup(other)
			there, ok := o.Map.Target(sharding.Slot(slot))
			if !ok || there.DB != at.DB || router.Slots(first) != router.Slots(other) || !router.SameGroup(first, other) && fold(first) != fold(other) {
				return nil, fmt.Errorf("%w: %s and %s do not lie in the same shards; tables of one group do", ErrStatement, first, other)
			}
			place[fold(other)] = there.Table
		}
		if at.DB != db {
			continue
		}
		before, seen := found[at.Table]
		if !seen {
			found[at.Table] = place
			all = append(all, place)
			continue
		}
		for table, physical := range place {
			if before[table] != physical {
				return nil, fmt.Errorf("%w: rows of %s belong to %s and to %s", ErrStatement, at, before[table], physical)
			}
		}
	}
	slices.SortFunc(all, func(a, b map[string]string) int { return compareNames(a[fold(first)], b[fold(first)]) })
	return all, nil
}

// steps returns the steps of a version for a database, in order.
func (b versionStatements) steps(router *sharding.Snapshot, v *version, d direction, db string, on dialect.Dialect) ([]Step, error) {
	var all []Step
	for i, s := range b[v][d] {
		list, err := places(router, s, db)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", v.name, err, shortened(s.sql))
		}
		for _, place := range list {
			text, err := s.on(on, place)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			step := Step{Version: v.number, Statement: i + 1, SQL: text, text: s.sql, physical: place, drops: s.dropsTables, Target: sharding.Target{DB: db, Table: place[fold(s.tables[0])]}}
			step.around = neighbours(router, s.tables[0], step.Target)
			maps.Copy(step.around, place)
			for _, table := range s.tables[:s.own] {
				step.own = append(step.own, place[fold(table)])
			}
			all = append(all, step)
		}
	}
	return all, nil
}
