// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// edited returns the text with the names of the target, and of the other tables of its group that
// have the same slots, and with more edits. It renumbers numbered parameters if a renumbering is
// given. Every other byte is unchanged.
func (p *Plan) edited(target sharding.Target, with splice.Renumbering, more ...splice.Edit) (string, error) {
	edits, err := editsFor(p, target)
	if err != nil {
		return "", err
	}
	every := edits
	for _, e := range more {
		for _, of := range e.Copied {
			e.With = strings.ReplaceAll(e.With, of.Of(p.Statement.Text), splice.Replaced(p.Statement.Text, of, every))
		}
		edits = append(edits, e)
	}
	return splice.Written(p.Statement, edits, with, p.Options.Reads.Rules()), nil
}

// editsFor returns the edits of every text for a target: the names of its tables, and the conditions on its own rows.
func editsFor(p *Plan, target sharding.Target) (edits []splice.Edit, err error) {
	for _, r := range tablesOf(p) {
		at, err := besideTarget(p, r.Table, target)
		if err != nil {
			return nil, err
		}
		edits = p.rename(edits, r, at.Table)
	}
	if !p.ownRows {
		return edits, nil
	}
	conditions, err := leftOut(p, target)
	return append(edits, conditions...), err
}

// rename replaces a logical table name by the physical one. The logical name becomes the alias, by
// which columns are qualified. A physical table with the logical name needs no alias.
func (p *Plan) rename(edits []splice.Edit, r *analysis.Reference, physical string) []splice.Edit {
	if r.Label() == physical {
		return edits
	}
	name := r.At.Name.Last().Span // the qualifier stays
	quoted := p.Options.Quote(physical)
	edits = append(edits, splice.Edit{Span: name, With: quoted})
	switch {
	case r.At.Alias.Name != "":
	case r.Renamed:
		for _, c := range r.Columns {
			edits = append(edits, splice.Edit{Span: c.Span, With: quoted})
		}
	default:
		edits = append(edits, splice.Insert(max(name.To, r.At.Partition.To), " AS "+name.Of(p.Statement.Text)))
	}
	return edits
}

// quoted returns a column of a sharded table as a statement names it.
func quoted(p *Plan, of *sharding.Table, column string) string {
	return p.Options.Quote(p.Options.Schema[strings.ToLower(of.Name)].Written(column))
}

// labelled returns the selected expressions by whose texts columns of the result may be named, and which name a sharded table:
// MySQL, MariaDB and SQLite name a selected expression without an alias by its text, and * selects that name from a derived table.
func labelled(p *Plan, b *analysis.Analysis) (all []sqlparse.Span) {
	if p.Statement.Query == nil || p.Options.Merge.Engine == merge.PostgreSQL {
		return nil
	}
	for core := range b.Scopes {
		for _, item := range core.Items {
			if item.Alias.Name == "" && slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return r.At.Name.Parts[0].In(item.Span) }) {
				all = append(all, item.Span)
			}
		}
	}
	return all
}

// Labels replaces, in the names of the columns of a target's rows, the texts of expressions and the names of its tables by those that
// one table would have given them. It is nil if they have none.
func Labels(p *Plan, to *Route) *strings.Replacer {
	if len(p.labelled) == 0 || to.Kind != One && to.Kind != Scatter {
		return nil
	}
	target := to.Target
	if to.Kind == Scatter {
		target = to.Shards.Targets[0].Target
	}
	var whole, first, all []string
	if isMoving(p) { // the expressions may contain conditions
		edits, err := editsFor(withOwnRows(p), target)
		for _, item := range p.labelled {
			if err == nil {
				whole = append(whole, splice.Replaced(p.Statement.Text, item, edits), item.Of(p.Statement.Text))
			}
		}
	}
	for _, r := range p.sharded {
		at, err := besideTarget(p, r.Table, target)
		if err != nil || r.Label() == at.Table {
			continue
		}
		name := r.At.Name.Last().Of(p.Statement.Text)
		quoted := p.Options.Quote(at.Table)
		first, all = append(first, quoted+" AS "+name, name), append(all, quoted, name)
	}
	return strings.NewReplacer(slices.Concat(whole, first, all)...)
}

// doubled returns the texts of each target with these edits and with others, with UNION ALL between them. The second one reads no rows,
// so it needs no condition on its own, which would be another WHERE.
func doubled(p *binding, targets []sharding.Target, edits, others []splice.Edit) ([]combine.Shard, error) {
	shards, q := make([]combine.Shard, len(targets)), p.Statement.Query
	args, with := splice.Around(p.Statement, edits)
	if more, _ := splice.Around(p.Statement, others); !splice.Numbered(p.Statement) {
		args = append(args, more...)
	}
	args = p.sent(args)
	none := *p.Plan
	none.ownRows = false
	for i, target := range targets {
		first, err := p.edited(target, with, edits...)
		if err != nil {
			return nil, err
		}
		second, err := none.edited(target, with, others...)
		if err != nil {
			return nil, err
		}
		end := len(first) - (len(p.Statement.Text) - q.To)
		shards[i] = combine.Shard{Target: target, Text: first[:end] + " UNION ALL " + second[q.From:], Args: args}
	}
	return shards, nil
}

// split returns the text of each target with these edits. Its long lists have only the values
// that rows of the target can have.
func (p *binding) split(targets []sharding.Target, edits []splice.Edit) ([]combine.Shard, error) {
	shards := make([]combine.Shard, len(targets))
	lists := slices.DeleteFunc(slices.Clone(p.lists), func(l list) bool {
		return slices.ContainsFunc(edits, func(e splice.Edit) bool { return e.From < l.To && l.From < e.To })
	})
	values := make([][]proof.Slots, len(lists))
	for i, l := range lists {
		values[i] = make([]proof.Slots, len(l.values))
		for n, v := range l.values {
			values[i][n] = l.lead.SlotOf(v.Value(p.args))
		}
	}
	var args []int
	var with splice.Renumbering
	for i, target := range targets {
		own := slices.Clone(edits)
		for n, l := range lists {
			e, err := p.on(l, values[n], target)
			if err != nil {
				return nil, err
			}
			own = append(own, e)
		}
		if i == 0 || len(lists) > 0 { // otherwise all texts have the same parameters
			args, with = splice.Around(p.Statement, own)
			args = p.sent(args)
		}
		text, err := p.spliced(target, with, own)
		if err != nil {
			return nil, err
		}
		shards[i] = combine.Shard{Target: target, Text: text, Args: args}
	}
	return shards, nil
}

// spliced returns the cached text of a target if it has no edits.
func (p *binding) spliced(target sharding.Target, with splice.Renumbering, edits []splice.Edit) (string, error) {
	if len(edits) == 0 {
		to, err := p.routes.to(p.Plan, target)
		if err != nil {
			return "", err
		}
		return to.Text, nil
	}
	return p.edited(target, with, edits...)
}
