// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

func (p *binding) scatter(set proof.Slots) (*Route, error) {
	first := p.sharded[0].Table
	switch {
	case p.flat != nil:
		return p.flat.Bind(p.args, p.hint)
	case p.combination == nil && !p.untyped:
		return withLiterals(p)
	}
	targets, err := ownTargets(p, set)
	if err != nil {
		return nil, p.Refusal(first.Name, err, "")
	}
	apart := p.together(shared(p.Plan, targets))
	if p.combination == nil { // the unknown column may be that of a table of another database
		return nil, cmp.Or(apart, error(p.unmerged))
	}
	if err := cmp.Or(p.refuseClockArguments(sharding.ErrUnmergeable), apart); err != nil {
		return nil, err
	}
	all, edits, others, err := p.combination.Bind(p.args)
	if err != nil {
		return nil, p.Refusal(first.Name, err, "")
	}
	if others != nil {
		all.Targets, err = doubled(p, targets, edits, others)
	} else {
		all.Targets, err = p.split(targets, edits)
	}
	if err != nil {
		return nil, err
	}
	return &Route{Kind: Scatter, Pooled: p.Stateless, Shards: all, plan: p.Plan}, nil
}

// shared returns the database of all targets, whose other tables each part of a query may join. It is "" if there
// are several, for a query that locks rows, whose parts would wait for each other's locks, and for one with a
// subquery that may lead to few of the targets when it is executed first.
func shared(p *Plan, targets []sharding.Target) string {
	if p.Locks || p.leadingHome || len(targets) == 0 || !inOneDatabase(targets) {
		return ""
	}
	return targets[0].DB
}

// sent returns the selected arguments that exist, and all surplus arguments: the database reports
// which are missing and which are too many.
func (p *binding) sent(chosen []int) []int {
	chosen = slices.DeleteFunc(chosen, func(i int) bool { return i >= len(p.args) })
	for i := p.Statement.Args; i < len(p.args); i++ {
		chosen = append(chosen, i)
	}
	return chosen
}

// maxUnion is the largest number of tables that one text searches: each costs the database a search
// in an index, and all of them together must cost less than another round trip.
const maxUnion = 16

// union is a query for the row with a unique value. The tables are in one database, and each has an
// index on the column. So one text searches all of them, without the lookup table.
type union struct {
	first sharding.Target
	text  string
	args  []int
}

// unite returns nil for any other query. At most one table has a row, and no more than one, so
// ORDER BY, LIMIT, OFFSET and DISTINCT have the same effect on each table as on all. The columns of *
// may have another order in each table, and another number while the tables are altered one after
// another. SQLite runs in the process and has no round trip to save.
func unite(p *Plan) *union {
	q, core := p.Statement.Query, analysis.CoreOf(p.Statement.Query)
	switch {
	case p.Statement.Verb != sqlparse.Select, p.Options.Merge.Engine == merge.SQLite, len(p.Refs) != 1, p.Refused != nil, p.origin != nil, p.Locks, !p.Stateless:
		return nil
	case q.With != nil, core == nil || len(core.From) != 1 || core.From[0].Table == nil, analysis.HasStar(core), p.combination == nil, p.combination.IsGrouped(), !proof.IsUnique(p.sharded[0].Proof):
		return nil
	}
	targets, err := p.sharded[0].Table.Everywhere()
	if err != nil || len(targets) > maxUnion || !inOneDatabase(targets) {
		return nil
	}
	u := &union{first: targets[0]}
	behind := len(p.Statement.Text) - q.To
	texts := make([]string, len(targets))
	for i, target := range targets {
		text, err := p.edited(target, nil)
		if err != nil {
			return nil
		}
		texts[i] = "(" + text[q.From:len(text)-behind] + ")"
	}
	u.text = p.Statement.Text[:q.From] + strings.Join(texts, " UNION ALL ") + p.Statement.Text[q.To:]
	if u.args, _ = splice.Around(p.Statement, nil); !splice.Numbered(p.Statement) { // otherwise all tables take the same arguments
		u.args = slices.Repeat(u.args, len(targets))
	}
	return u
}
