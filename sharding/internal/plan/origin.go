// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// movesFrom returns the table in the source of a Migration that still serves the tables of a
// statement, if all sharded tables that it names are served there. The statement is then sent
// unchanged.
func (r *reading) movesFrom() *sharding.Target {
	var at *sharding.Target
	for _, name := range r.statement.Names {
		t, ok := r.snapshot.Lookup(name)
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
func (r *reading) unserved() string {
	for _, name := range r.statement.Names {
		if t, ok := r.snapshot.Lookup(name); ok {
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
	if word := definition(p.statement); word != "" && word != "CREATE" {
		return nil, p.refusal(p.origin.Table, sharding.ErrRawTable,
			"its rows are being migrated; change the table before or after the migration, or use sharding.Unsharded if the statement means another table")
	}
	if p.hint.Placed() && p.hint.Table == "" && p.hint.On != *p.origin {
		return nil, p.refusal(p.origin.Table, sharding.ErrCrossShard,
			fmt.Sprintf("%s serves its rows until the migration's switch, and the context names %s; leave sharding.On out", p.origin, p.hint.On))
	}
	for _, r := range p.refs {
		if r.role == home && p.origin.DB != p.options.Home {
			return nil, p.refusal(r.label(), sharding.ErrCrossDatabase,
				fmt.Sprintf("it is a table of the home database, and %s is in %s", p.origin.Table, p.origin.DB))
		}
	}
	return &Route{Kind: One, Pooled: true, Target: *p.origin, Text: p.statement.Text}, nil
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
	unread := func(r *reference) bool { return !r.known }
	if p.origin == nil || p.snapshot.Switched() == nil || slices.ContainsFunc(p.sharded, unread) {
		return nil
	}
	p.afterSwitch.planned.Do(func() { p.afterSwitch.plan = Of(p.statement, p.snapshot.Switched(), p.options) })
	return p.afterSwitch.plan
}

// Filled returns the plan of an INSERT as if an adapter had filled the column of
// [sharding.Table.Unnumbered] in each row that leaves it to the database. The values are not known: if
// the column is the sharding key, the route has such rows as Unplaced; otherwise they lead to the shard
// of the sharding key. Its routes are for previews, and are not sent.
func (p *Plan) Filled() *Plan {
	p.afterSwitch.completed.Do(func() {
		options := p.options
		options.Filled = true
		p.afterSwitch.filled = Of(p.statement, p.snapshot, options)
	})
	return p.afterSwitch.filled
}

// Fingerprint returns the statement without its values: see [sqltext.Fingerprint].
func (p *Plan) Fingerprint() string {
	p.afterSwitch.printed.Do(func() { p.afterSwitch.fingerprint = sqltext.Fingerprint(p.statement.Text, p.options.Reads.Rules()) })
	return p.afterSwitch.fingerprint
}

// Single reports whether the statement was parsed. A text that was not parsed may contain several
// statements, some of which may have been executed when another fails.
func (p *Plan) Single() bool { return p.statement.Verb != sqlparse.Unknown }

// Table returns the first table of the router that the statement names, or "".
func (p *Plan) Table() string {
	if len(p.sharded) > 0 {
		return p.sharded[0].table.Name
	}
	for _, name := range p.statement.Names {
		if t, ok := p.snapshot.Lookup(name); ok {
			return t.Name
		}
		if p.snapshot.IsBroadcast(name) {
			return name
		}
	}
	return ""
}

// Routed reports whether the statement names a table of the router.
func (p *Plan) Routed() bool { return p.routed }

// given refuses an INSERT that leaves a column to the database which the source of a migration
// numbered until its first switch. Statements that were written before the switch do that.
func (p *binding) given() error {
	if p.insert == nil || p.insert.of.table.Unnumbered() == "" || p.options.Filled {
		return nil
	}
	in, column := p.insert.input, p.insert.of.table.Unnumbered()
	at := p.insert.place(column)
	if len(in.Columns) == 0 && !in.Default || // the column's position is known only to the database
		at >= 0 && !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool { return leaves(&row, at, p.args, false) }) {
		return nil
	}
	return &sharding.RouteError{
		Op: "insert", Table: p.insert.of.table.Name, Column: column, Err: sharding.ErrNotNumbered,
		Hint: "use a generator for it; the source of the migration numbered it until the first switch",
	}
}

// A number that the database assigns does not carry the row's slot, so the row could not be found
// by it.
const numbersLeadNowhere = "its number would not lead to the row's shard; have a generator of package keygen make it, with the slot in it"

func numbers(l *lead) error {
	return fmt.Errorf("%w: the database would number %s", sharding.ErrMissingKey, l.column)
}

// empty returns a column that leads to slots and that the database would number in a row.
func (in *insertion) empty(row *sqlparse.Row, args []any) *lead {
	for i := range in.leads {
		if l := &in.leads[i]; l.numbered && leaves(row, l.at, args, in.zeros) {
			return l.lead
		}
	}
	return nil
}

// leavesFilled reports whether an adapter fills the column of [Plan.Filled] in a row.
func (in *insertion) leavesFilled(row *sqlparse.Row, args []any) bool {
	return in.filled != "" && (in.filledAt < 0 || leaves(row, in.filledAt, args, in.zeros))
}

// isUnplaced reports whether only the value that an adapter fills in a row leads to its shard.
func (in *insertion) isUnplaced(row *sqlparse.Row, args []any) bool {
	return in.fillsKey && in.leavesFilled(row, args)
}

// addsKey reports whether an adapter adds the sharding key, which the INSERT does not name.
func (in *insertion) addsKey() bool {
	return in.fillsKey && in.filledAt < 0 && in.input.Query == nil
}

// leaves reports whether a row leaves a column to the database: by NULL or DEFAULT, and if zero is
// set, by a value that is the whole number 0.
func leaves(row *sqlparse.Row, at int, args []any, zero bool) bool {
	if at >= len(row.Values) {
		return false
	}
	v, ok := valueOf(row, at, args)
	if !ok {
		return isDefault(row.Values[at])
	}
	switch v, err := plain(v); v := v.(type) {
	case nil:
		return err == nil
	case int64:
		return zero && v == 0
	}
	if !zero {
		return false
	}
	n, isNumber := numberOf(v)
	return isNumber && math.Round(n) == 0
}

// numberOf returns the number to which a database converts an argument, false if that is uncertain.
func numberOf(v any) (float64, bool) {
	v, err := plain(v)
	if text, ok := v.([]byte); ok {
		v = string(text)
	}
	written := fmt.Sprint(v)
	n, noNumber := strconv.ParseFloat(written, 64)
	return n, err == nil && noNumber == nil && !strings.ContainsAny(written, "_xXnN") // 1_0, 0x1p1, Inf and NaN are numbers only in Go
}

// Numbers returns the table and the column that the source of a migration numbers, for an INSERT
// into a table that the source still serves, and otherwise "".
func (p *Plan) Numbers() (table, column string) {
	if p.origin == nil || p.insert == nil {
		return "", ""
	}
	t := p.insert.of.table
	return t.Name, t.Origin().Numbered
}
