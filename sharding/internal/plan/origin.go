// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
)

// movesFrom returns the table in the source of a Migration that still serves the tables of a
// statement, if all sharded tables that it names are served there. The statement is then sent
// unchanged.
func movesFrom(r *analysis.Reading) *sharding.Target {
	var at *sharding.Target
	for _, name := range r.Statement.Names {
		t, ok := r.Snapshot.Lookup(name)
		if !ok {
			continue
		}
		from := t.Origin()
		if from == nil || at != nil && at.DB != from.Target.DB {
			return nil
		}
		if at == nil {
			at = &from.Target
		}
	}
	return at
}

// unserved returns a table of the statement whose route has not been read yet, or "".
func unserved(r *analysis.Reading) string {
	for _, name := range r.Statement.Names {
		if t, ok := r.Snapshot.Lookup(name); ok {
			if _, err := t.Everywhere(); errors.Is(err, sharding.ErrRouteUnread) {
				return t.Name
			}
		}
	}
	return ""
}

// atOrigin routes a statement whose tables the source of a migration serves. Only statements that
// change rows are allowed: the migration copies changed rows, but would not notice DDL or TRUNCATE.
func (p *binding) atOrigin() (*Route, error) {
	if word := analysis.Definition(p.Statement); word != "" && word != "CREATE" {
		return nil, p.Refusal(p.origin.Table, sharding.ErrRawTable,
			"its rows are being migrated; change the table before or after the migration, or use sharding.Unsharded if the statement means another table")
	}
	if p.hint.Placed() && p.hint.Table == "" && p.hint.On != *p.origin {
		return nil, p.Refusal(p.origin.Table, sharding.ErrCrossShard,
			fmt.Sprintf("%s serves its rows until the migration's switch, and the context names %s; leave sharding.On out", p.origin, p.hint.On))
	}
	for _, r := range p.Refs {
		if r.Role == analysis.Home && p.origin.DB != p.Options.Home {
			return nil, p.Refusal(r.Label(), sharding.ErrCrossDatabase,
				fmt.Sprintf("it is a table of the home database, and %s is in %s", p.origin.Table, p.origin.DB))
		}
	}
	return &Route{Kind: One, Pooled: true, Target: *p.origin, Text: p.Statement.Text}, nil
}

// switchedPlan is the cached results of AfterSwitch, Filled and Fingerprint.
type switchedPlan struct {
	planned, completed, printed sync.Once
	plan, filled                *Plan
	fingerprint                 string
}

// AfterSwitch returns the plan that a statement which the source of a migration serves will have after
// the switch. It returns nil for other statements, without a preview (see
// [sharding.Snapshot.Switched]), and if the tables' columns could not be read, because a switch may
// have closed them.
func (p *Plan) AfterSwitch() *Plan {
	unread := func(r *analysis.Reference) bool { return !r.Known }
	if p.origin == nil || p.Snapshot.Switched() == nil || slices.ContainsFunc(tablesOf(p), unread) {
		return nil
	}
	p.afterSwitch.planned.Do(func() { p.afterSwitch.plan = Of(p.Statement, p.Snapshot.Switched(), p.Options) })
	return p.afterSwitch.plan
}

// Filled returns the plan of an INSERT as if an adapter had filled the column of
// [sharding.Table.Unnumbered] in each row that leaves it to the database. The values are not known: if
// the column is the sharding key, the route has such rows as Unplaced; otherwise they lead to the shard
// of the sharding key. Its routes are for previews, and are not sent.
func (p *Plan) Filled() *Plan {
	p.afterSwitch.completed.Do(func() {
		options := p.Options
		options.Filled = true
		p.afterSwitch.filled = Of(p.Statement, p.Snapshot, options)
	})
	return p.afterSwitch.filled
}

// Fingerprint returns the statement without its values: see [sqltext.Fingerprint].
func (p *Plan) Fingerprint() string {
	p.afterSwitch.printed.Do(func() { p.afterSwitch.fingerprint = sqltext.Fingerprint(p.Statement.Text, p.Options.Reads.Rules()) })
	return p.afterSwitch.fingerprint
}

// Single reports whether the statement was parsed. A text that was not parsed may contain several
// statements, some of which may have been executed when another fails.
func (p *Plan) Single() bool { return p.Statement.Verb != sqlparse.Unknown }

// First returns the first sharded table of a statement, nil if it has none.
func First(p *Plan) *sharding.Table {
	if len(p.sharded) == 0 {
		return nil
	}
	return p.sharded[0].Table
}

// Table returns the first table of the router that the statement names, or "".
func (p *Plan) Table() string {
	if len(p.sharded) > 0 {
		return p.sharded[0].Table.Name
	}
	for _, name := range p.Statement.Names {
		if t, ok := p.Snapshot.Lookup(name); ok {
			return t.Name
		}
		if p.Snapshot.IsBroadcast(name) {
			return name
		}
	}
	return ""
}

// given refuses an INSERT that leaves a column to the database which the source of a migration
// numbered until its first switch. Statements that were written before the switch do that.
func (p *binding) given() error {
	if p.Insert == nil || p.Insert.Of.Table.Unnumbered() == "" || p.Options.Filled {
		return nil
	}
	in, column := p.Insert.Input, p.Insert.Of.Table.Unnumbered()
	at := p.Insert.Place(column)
	if len(in.Columns) == 0 && !in.Default || // the column's position is known only to the database
		at >= 0 && !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool { return analysis.Leaves(&row, at, p.args, false) }) {
		return nil
	}
	return &sharding.RouteError{
		Op: "insert", Table: p.Insert.Of.Table.Name, Column: column, Err: sharding.ErrNotNumbered,
		Hint: "use a generator for it; the source of the migration numbered it until the first switch",
	}
}

// Numbers returns the table and the column that the source of a migration numbers, for an INSERT
// into a table that the source still serves, and otherwise "".
func (p *Plan) Numbers() (table, column string) {
	if p.origin == nil || p.Insert == nil {
		return "", ""
	}
	t := p.Insert.Of.Table
	return t.Name, t.Origin().Numbered
}
