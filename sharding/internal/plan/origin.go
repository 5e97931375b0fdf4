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

// movesFrom returns where the tables of a statement still lie that a Migration is moving,
// if all sharded tables that it names are such: there it is sent as it is, as it was
// before the migration.
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

// unserved returns a table of the statement of which nobody has read yet which place
// serves it, or "".
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

// atOrigin routes a statement whose tables lie in the source of a migration. Only rows
// are changed there: the migration copies them, and would not notice that a table was
// emptied or changed.
func (p *binding) atOrigin() (Route, error) {
	if word := definition(p.statement); word != "" && word != "CREATE" {
		return Route{}, p.refusal(p.origin.Table, sharding.ErrRawTable,
			"its rows are being migrated; change the table before or after that, or use sharding.Unsharded if the statement is about another one")
	}
	if p.hint.Placed() && p.hint.Table == "" && p.hint.On != *p.origin {
		return Route{}, p.refusal(p.origin.Table, sharding.ErrCrossShard,
			fmt.Sprintf("%s serves its rows until the migration's switch, and the context names %s; leave sharding.On out", p.origin, p.hint.On))
	}
	for _, r := range p.refs {
		if r.role == home && p.origin.DB != p.options.Home {
			return Route{}, p.refusal(r.label(), sharding.ErrCrossDatabase,
				fmt.Sprintf("it is a table of the home database, and %s is in %s", p.origin.Table, p.origin.DB))
		}
	}
	return Route{Kind: One, Target: *p.origin, Text: p.statement.Text}, nil
}

// ahead is what is known of a statement for a preview, made when it is asked for.
type ahead struct {
	planned, printed sync.Once
	plan             *Plan
	fingerprint      string
}

// Ahead returns the plan that a statement which the source of a migration serves will
// have after the switch; nil of other statements, and where nobody has asked for a
// preview (see [sharding.Snapshot.Switched]), or has read the tables' columns: a switch may
// have closed them.
func (p *Plan) Ahead() *Plan {
	unread := func(r *reference) bool { return !r.known }
	if p.origin == nil || p.snapshot.Switched() == nil || slices.ContainsFunc(p.sharded, unread) {
		return nil
	}
	p.ahead.planned.Do(func() { p.ahead.plan = Of(p.statement, p.snapshot.Switched(), p.options) })
	return p.ahead.plan
}

// Fingerprint returns the statement without its values: see [sqltext.Fingerprint].
func (p *Plan) Fingerprint() string {
	p.ahead.printed.Do(func() { p.ahead.fingerprint = sqltext.Fingerprint(p.statement.Text, p.options.Reads) })
	return p.ahead.fingerprint
}

// Single reports whether the statement was read. A text that was not may be several
// statements, of which some are done when another one fails.
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

// given refuses an INSERT that leaves a column to the database which the source of a
// migration numbered until its first switch, as a statement does that was written before.
func (p *binding) given() error {
	if p.insert == nil || p.insert.of.table.Unnumbered() == "" {
		return nil
	}
	in, column := p.insert.input, p.insert.of.table.Unnumbered()
	at := p.insert.place(column)
	if len(in.Columns) == 0 && !in.Default || // only the table tells which value is meant for it
		at >= 0 && !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool { return leaves(&row, at, p.args, false) }) {
		return nil
	}
	return &sharding.RouteError{
		Op: "insert", Table: p.insert.of.table.Name, Column: column, Err: sharding.ErrNotNumbered,
		Hint: "have a generator make it; the source of the migration numbered it until the first switch",
	}
}

// A number that the database makes is not one of the row's slot, so nobody would find the
// row by it.
const numbersLeadNowhere = "its number would not lead to the row's shard; have a generator of package keygen make it, with the slot in it"

func numbers(l *lead) error {
	return fmt.Errorf("%w: the database would number %s", sharding.ErrMissingKey, l.column)
}

// empty returns a column that leads to slots, which the database would number in a row.
func (in *insertion) empty(row *sqlparse.Row, args []any, zero bool) *lead {
	for _, l := range in.leads {
		if l.numbered && leaves(row, l.at, args, zero) {
			return l.lead
		}
	}
	return nil
}

// leaves reports whether a row leaves a column to the database: by NULL and DEFAULT, and
// where zero says so, by what is 0 as a whole number.
func leaves(row *sqlparse.Row, at int, args []any, zero bool) bool {
	if at >= len(row.Values) {
		return false
	}
	v, ok := valueOf(row, at, args)
	if !ok {
		return isDefault(row.Values[at])
	}
	if v, err := plain(v); err == nil && v == nil {
		return true
	}
	n, isNumber := numberOf(v)
	return zero && isNumber && math.Round(n) == 0
}

// numberOf returns the number that a database makes of an argument, false where that is
// not certain.
func numberOf(v any) (float64, bool) {
	v, err := plain(v)
	if text, ok := v.([]byte); ok {
		v = string(text)
	}
	written := fmt.Sprint(v)
	n, noNumber := strconv.ParseFloat(written, 64)
	return n, err == nil && noNumber == nil && !strings.ContainsAny(written, "_xXnN") // 1_0, 0x1p1, Inf and NaN are Go's
}

// Numbers returns the table and the column that the source of a migration numbers, of an
// INSERT that it still serves, and otherwise "".
func (p *Plan) Numbers() (table, column string) {
	if p.origin == nil || p.insert == nil {
		return "", ""
	}
	t := p.insert.of.table
	return t.Name, t.Origin().Numbered
}
