// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// LookupChanges is the changes of lookup tables for a write.
type LookupChanges struct {
	Table   *sharding.Table
	Changes []LookupChange
	// Frees says that rows may lose values, which other rows may then get.
	Frees bool
	// Upserts says that rows of an INSERT may exist already, and then keep their values.
	Upserts bool
	plan    *Plan
}

// LookupChange is the changes of one lookup table.
type LookupChange struct {
	Lookup *sharding.Lookup
	// Rows are the values and the sharding keys of the rows of an INSERT, without NULLs.
	Rows [][2]any
	// Set is the new value of the rows, if Sets is true; nil is NULL.
	Set  any
	Sets bool
}

// MayChangeLookups reports whether a plan may have to change lookup tables.
func MayChangeLookups(p *Plan) bool {
	return len(p.Changed) > 0 || p.Insert != nil && len(p.Insert.Of.Table.Lookups) > 0
}

// LookupChangesOf returns the changes of lookup tables for a write on the route that Bind has returned,
// nil if there are none. Its errors are [sharding.RouteError]s.
func LookupChangesOf(p *Plan, args []any, to *Route) (*LookupChanges, error) {
	switch {
	case to.Kind != One && to.Kind != Several || p.origin != nil || !MayChangeLookups(p):
		return nil, nil //nolint:nilnil // see above
	case p.Insert != nil:
		return insertedValues(p, args)
	}
	return changedValues(p, args)
}

// changedValues returns the changes of lookup tables for the rows that an UPDATE or DELETE changes, nil
// if there are none.
func changedValues(p *Plan, args []any) (*LookupChanges, error) {
	k := &LookupChanges{Table: p.Changed[0].Of.Table, Frees: true, plan: p}
	for _, c := range p.Changed {
		if c.Lookup == nil {
			to, _ := c.Of.FormedKey(c.To.Value(args))
			if from, _ := c.Of.FormedKey(c.From.Value(args)); proof.Text([]driver.Value{to}) != proof.Text([]driver.Value{from}) {
				return nil, p.Refusal(c.Of.Table.Name, sharding.ErrKeyChange, "the lookup tables have the row under its old "+c.Of.Table.Key+"; insert a new row and delete the old one")
			}
			continue
		}
		if c.Of != p.Changed[0].Of {
			return nil, p.Refusal(c.Of.Table.Name, sharding.ErrLookup, "change one table at a time")
		}
		kept := LookupChange{Lookup: c.Lookup, Sets: c.To != nil}
		if kept.Sets {
			kept.Set = c.To.Value(args)
			if err := proof.Keeps(c.Of.Schema, c.Lookup.Column, kept.Set, p.Statement.Change.Ignore); err != nil {
				return nil, p.Refusal(c.Of.Table.Name, fmt.Errorf("%w: %w", sharding.ErrLookup, err), cutHint)
			}
		}
		k.Changes = append(k.Changes, kept)
	}
	if len(k.Changes) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	return k, nil
}

// insertedValues returns the changes of lookup tables for the rows of an INSERT.
func insertedValues(p *Plan, args []any) (*LookupChanges, error) {
	in := p.Insert
	k := &LookupChanges{Table: in.Of.Table, Frees: p.Statement.Verb == sqlparse.Replace || len(in.Input.Conflicts) > 0, Upserts: in.Input.Ignore || len(in.Input.Conflicts) > 0, plan: p}
	for i := range in.Of.Table.Lookups {
		kept := LookupChange{Lookup: &in.Of.Table.Lookups[i]}
		at := in.Place(kept.Lookup.Column)
		for n := range in.Input.Rows {
			row := &in.Input.Rows[n]
			value, known := in.LookedUp(row, at, kept.Lookup.Column, args)
			key, placed := analysis.ValueOf(row, in.Key, args)
			if !known || !placed {
				return nil, p.Refusal(in.Of.Table.Name, fmt.Errorf("%w: %s of row %d is neither a value nor a parameter", sharding.ErrLookup, kept.Lookup.Column, n), "give it a value")
			}
			if err := proof.Keeps(in.Of.Schema, kept.Lookup.Column, value, in.Input.Ignore); err != nil {
				return nil, p.Refusal(in.Of.Table.Name, fmt.Errorf("%w: %w", sharding.ErrLookup, err), cutHint)
			}
			if in.Of.Schema.Columns[strings.ToLower(kept.Lookup.Column)].Numbered && analysis.Leaves(row, at, args, in.Zeros) {
				return nil, p.Refusal(in.Of.Table.Name, fmt.Errorf("%w: the database would number %s", sharding.ErrLookup, kept.Lookup.Column), "have a generator of package keygen make it")
			}
			if v, err := proof.Plain(value); err != nil || v != nil {
				key, _ = in.Of.FormedKey(key)
				kept.Rows = append(kept.Rows, [2]any{value, key})
			}
		}
		k.Changes = append(k.Changes, kept)
	}
	return k, nil
}

// Before returns the query for the present values of the rows of a target that an UPDATE or DELETE
// changes: the sharding key, and the column of each of Changes, of no more than most rows. args selects
// arguments of the statement. ok is false if the statement has parts that a query may read
// differently; the values are then not read.
func (k *LookupChanges) Before(at sharding.Target, most int) (text string, args []int, ok bool) {
	p := k.plan
	c := p.Statement.Change
	if c == nil || c.Multi || len(c.From) > 0 || c.With != nil || c.Limit != nil || len(p.Refs) != 1 {
		return "", nil, false
	}
	of, quote := p.Refs[0], p.Options.Quote
	var out strings.Builder
	out.WriteString("SELECT " + quote(k.Table.Key))
	for _, kept := range k.Changes {
		out.WriteString(", " + quote(kept.Lookup.Column))
	}
	out.WriteString(" FROM " + quote(at.Table) + " AS " + of.Qualifier().Of(p.Statement.Text))
	if c.Where != nil {
		text, args = splice.Alone(p.Statement, c.Where.Bytes())
		out.WriteString(" WHERE " + text)
	}
	out.WriteString(" LIMIT " + strconv.Itoa(most))
	if p.Options.Merge.Engine != merge.SQLite {
		out.WriteString(" FOR UPDATE")
	}
	return out.String(), args, true
}
