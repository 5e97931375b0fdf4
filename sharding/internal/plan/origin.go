// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/sqlparse"
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

// unserved refuses a table whose route has not been read yet, and one whose slots are assigned by a stored map that the program does
// not follow: slots may have moved.
func unserved(r *analysis.Reading) *sharding.RouteError {
	if len(r.Refs) == 0 && r.Refused == nil { // only a CTE has its name
		return nil
	}
	for _, name := range r.Statement.Names {
		t, ok := r.Snapshot.Lookup(name)
		if !ok {
			continue
		}
		if _, err := t.Everywhere(); errors.Is(err, sharding.ErrRouteUnread) {
			return r.Refusal(t.Name, sharding.ErrRouteUnread, "call Router.Load when the program starts")
		}
		if by := r.Options.Schema[strings.ToLower(name)].Unfollowed; by != "" && !t.Map.Leased() && t.Origin() == nil {
			return r.Refusal(t.Name, fmt.Errorf("%w: its slots are assigned by %s", sharding.ErrStaleMap, by), "follow the map (slotstore.Store.Follow)")
		}
	}
	return nil
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

// onDemand is what few callers ask of a plan, and what is therefore computed when it is asked for first.
type onDemand struct {
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
	p.onDemand.planned.Do(func() { p.onDemand.plan = Of(p.Statement, p.Snapshot.Switched(), p.Options) })
	return p.onDemand.plan
}

// Filled returns the plan of an INSERT as if an adapter had filled the column of
// [sharding.Table.Unnumbered] in each row that leaves it to the database. The values are not known: if
// the column is the sharding key, the route has such rows as Unplaced; otherwise they lead to the shard
// of the sharding key. Its routes are for previews, and are not sent.
func (p *Plan) Filled() *Plan {
	p.onDemand.completed.Do(func() {
		options := p.Options
		options.Filled = true
		p.onDemand.filled = Of(p.Statement, p.Snapshot, options)
	})
	return p.onDemand.filled
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
