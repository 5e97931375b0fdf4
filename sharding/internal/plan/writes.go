// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Writes is a statement that writes to several targets. Either all of them execute their part, or
// none does.
type Writes struct {
	Parts []Part
	Rows  int // of VALUES; 0 for an UPDATE or DELETE
	// Keys are set if RETURNING may skip a row: the key of each row of VALUES as a Text. The last
	// columns of its returned row contain the key, too.
	Keys   []string
	Hidden int // the number of these columns
	// Numbered: MySQL or MariaDB numbers rows, on each target separately.
	Numbered bool
}

// Part is the part of one target.
type Part struct {
	combine.Shard

	Rows []int // indexes of the rows of VALUES, in order
}

// divide returns why a write cannot be divided among several targets, of which each executes a part, nil if it can.
func divide(b *analysis.Analysis) *sharding.RouteError {
	limiting := ""
	if b.Statement.Limiting {
		limiting = "the hints SET_VAR and MAX_EXECUTION_TIME would limit each shard by itself; leave them out, and give the context a deadline"
	}
	why := cmp.Or(dividesRows(b, b.Statement.Insert), dividesChange(b, b.Statement.Change), limiting, b.Differs(b.Windows))
	if why == "" {
		return nil
	}
	return b.Refusal(b.FirstSharded(), sharding.ErrCrossShard, why)
}

func dividesRows(b *analysis.Analysis, in *sqlparse.Input) string {
	to := b.Insert
	switch {
	case in == nil:
		return ""
	case in.Query != nil:
		return "INSERT … SELECT reads and writes one shard" + combine.AddKey
	case in.Or == "FAIL" || in.Or == "ROLLBACK":
		return "INSERT OR " + in.Or + " is undone on one shard only; write INSERT"
	case len(b.Refs) > 1 || in.With != nil:
		return "a subquery reads one shard; run it first, and pass its value as an argument"
	case len(in.Returning) > 0 && slices.ContainsFunc(in.Conflicts, func(c sqlparse.Conflict) bool { return c.Where != nil }):
		return "only each shard knows which rows the WHERE of ON CONFLICT returns; leave RETURNING out, or insert the rows of each shard separately"
	case to.LeavesOut() && to.Returned() == nil:
		return "a returned row is matched by a unique key, and all unique keys lack a column; give it a value, or leave RETURNING out"
	}
	if (splice.Parameters{Statement: b.Statement}).Named() {
		return "named parameters are not distributed over shards; write ? for each"
	}
	return ""
}

func dividesChange(b *analysis.Analysis, c *sqlparse.Change) string {
	switch {
	case c == nil:
		return ""
	case c.With != nil && slices.ContainsFunc(c.With.Tables, func(cte sqlparse.CTE) bool { return !analysis.IsList(cte.Query) }):
		return "a WITH is read on one shard" + combine.AddKey
	case c.Limit != nil:
		return "LIMIT counts the rows of one shard" + combine.AddKey
	case len(c.OrderBy) > 0:
		return "ORDER BY orders the rows of one shard" + combine.AddKey
	case c.Or == "FAIL" || c.Or == "ROLLBACK":
		return "UPDATE OR " + c.Or + " is undone on one shard only; write UPDATE"
	}
	for _, s := range combine.SourcesIn(c.From) { // a shard may answer them differently than one table would
		switch {
		case s.Query != nil && !analysis.IsList(s.Query):
			return "a subquery among the tables is read on one shard" + combine.AddKey
		case s.Function != nil && !sqlfunc.RowSources[s.Function.Function()]:
			return "a table function is read on one shard" + combine.AddKey
		}
	}
	why := "all tables must be joined by the sharding key, so that each shard has the rows that belong together"
	for _, r := range b.Refs {
		if r.Role != analysis.Sharded || !r.Written {
			continue
		}
		strays := b.ApartFrom(r, b.Refs)
		if len(strays) == 0 {
			return ""
		}
		joined := slices.ContainsFunc(combine.SourcesIn(c.From), func(s sqlparse.Source) bool { return s.Table == strays[0].At })
		why = cmp.Or(b.Misspelt(), combine.Away(r, strays[0], joined, ""))
	}
	return why
}

func (p *binding) routeChange(set proof.Slots) (*Route, error) {
	first := p.sharded[0].Table
	if set.All && !p.hint.All {
		return nil, missing(p)
	}
	if err := cmp.Or(p.divisible(), p.refuseClockArguments(sharding.ErrCrossShard), p.keyStays()); err != nil {
		return nil, err
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return nil, p.Refusal(first.Name, err, "")
	}
	shards, err := p.split(targets, nil)
	if err != nil {
		return nil, err
	}
	w := &Writes{Parts: make([]Part, len(shards))}
	for i, s := range shards {
		w.Parts[i].Shard = s
	}
	return &Route{Kind: Several, Pooled: p.Stateless, Writes: w, plan: p.Plan, all: set.All}, nil
}

// divisible refuses a write that cannot be divided among several targets.
func (p *binding) divisible() error {
	if p.unmerged != nil {
		return p.unmerged
	}
	return p.together("")
}

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

const cutHint = "give a value that fits, because the row would be searched for by this one"

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
	name := of.At.Name.Span
	if of.At.Alias.Name != "" {
		name = of.At.Alias.Span
	}
	out.WriteString(" FROM " + quote(at.Table) + " AS " + name.Of(p.Statement.Text))
	if c.Where != nil {
		text, args = splice.Parameters{Statement: p.Statement}.Alone(c.Where.Bytes())
		out.WriteString(" WHERE " + text)
	}
	out.WriteString(" LIMIT " + strconv.Itoa(most))
	if p.Options.Merge.Engine != merge.SQLite {
		out.WriteString(" FOR UPDATE")
	}
	return out.String(), args, true
}

// emptied says why a column that leads to slots does not become NULL. MySQL and MariaDB may store 0 in one that cannot be NULL.
func emptied(l *proof.Lead) string {
	if !strings.EqualFold(l.Column, l.Table.Key) {
		return "it is not known to be NULL afterwards, because " + l.Column + " has a default, or cannot be NULL; leave it out"
	}
	return "a row without " + l.Column + " belongs to no shard; delete it instead, as gorm's Association does after Unscoped"
}

// keyStays refuses to change the slot of a row.
func (p *binding) keyStays() error {
	for _, a := range p.Assigned {
		value, l := a.To.Value(p.args), a.Of.Lead(a.Column)
		have, next := a.Of.Slots(p.args), l.SlotOf(value)
		cut := proof.Keeps(a.Of.Schema, a.Column, value, p.Statement.Change.Ignore)
		switch {
		case cut != nil:
			return p.Refusal(l.Table.Name, cut, cutHint)
		case value == nil && a.Of.Schema.Columns[a.Column].Empty: // the sharding key alone says where the row is
		case value == nil:
			return p.Refusal(l.Table.Name, sharding.ErrKeyChange, emptied(l))
		case !have.Empty() && (!have.One || !next.One || have.Only != next.Only):
			return p.Refusal(l.Table.Name, sharding.ErrKeyChange,
				"the row would belong to another shard; insert a new row and delete the old one, or leave "+a.Column+" out")
		}
	}
	return nil
}
