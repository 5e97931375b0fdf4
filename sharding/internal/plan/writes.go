// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
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
		limiting = combine.NoLimiting
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
	case splice.Named(b.Statement):
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
		if slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return r.Written && r.Slots(p.args).All }) {
			return nil, p.missing()
		}
		return nil, cmp.Or(p.divisible(), p.missing()) // rows of a subquery or a join lack the key, not those that are written
	}
	if err := cmp.Or(p.divisible(), p.refuseClockArguments(sharding.ErrCrossShard), p.keyStays()); err != nil {
		return nil, err
	}
	targets, err := targetsOf(p.Plan, set)
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

const cutHint = "give a value that fits, because the row would be searched for by this one"

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
		case value == nil && !strings.EqualFold(l.Column, l.Table.Key) && a.Of.Schema.Columns[a.Column].Empty: // the sharding key alone says where the row is
		case value == nil:
			return p.Refusal(l.Table.Name, sharding.ErrKeyChange, emptied(l))
		case !have.Empty() && (!have.One || !next.One || have.Only != next.Only):
			return p.Refusal(l.Table.Name, sharding.ErrKeyChange,
				"the row would belong to another shard; insert a new row and delete the old one, or leave "+a.Column+" out")
		}
	}
	return nil
}
