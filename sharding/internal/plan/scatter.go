package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlparse"
)

// Shards is a statement that goes to several targets, and how their answers are
// combined.
type Shards struct {
	Targets []Shard
	// Args are the arguments of each text: which of the statement's, in their order.
	Args []int
	// Order is what the rows are ordered by: the last columns of each answer, which
	// the caller does not get.
	Order         []Order
	Offset, Count int64 // Count is -1 without a LIMIT
	// Aggregates combine the single rows of the shards, where there are any.
	Aggregates []merge.Aggregate
}

// Shard is what goes to one target.
type Shard struct {
	Target sharding.Target
	Text   string
}

// scatter routes a statement to several targets.
func (p *Plan) scatter(set slots, args []any) (Route, error) {
	first := p.sharded[0].table
	if p.combination == nil {
		return Route{}, p.refusal(p.unmerged.table, p.unmerged.err, p.unmerged.hint)
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return Route{}, p.refusal(first.Name, err, "")
	}
	for _, r := range p.refs {
		if r.role == home {
			return Route{}, p.refusal(r.label(), sharding.ErrCrossShard, "it is a table of the home database; declare it with sharding.Broadcast if every database has a copy")
		}
	}
	all := &Shards{Count: -1, Order: p.combination.order, Aggregates: p.combination.sums}
	dropped, limit, err := p.combination.cut(all, args)
	if err != nil {
		return Route{}, p.refusal(first.Name, err, "")
	}
	for i := range args {
		if !slices.Contains(dropped, i) {
			all.Args = append(all.Args, i)
		}
	}
	for _, target := range targets {
		text, err := p.spread(target, limit)
		if err != nil {
			return Route{}, err
		}
		all.Targets = append(all.Targets, Shard{target, text})
	}
	return Route{Kind: Scatter, Shards: all}, nil
}

// targetsOf returns the targets of a set of slots, each once, in slot order.
func targetsOf(t *sharding.Table, s slots) ([]sharding.Target, error) {
	if s.all {
		return t.Everywhere()
	}
	var all []sharding.Target
	for _, slot := range s.list() {
		at, err := t.On(slot)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all, nil
}

// cut takes LIMIT and OFFSET in. Each shard returns as many rows as both together.
// It returns the arguments that no text has then, and the limit of each.
func (c *combination) cut(all *Shards, args []any) (dropped []int, limit string, err error) {
	if c.limit == nil {
		return nil, "", nil
	}
	for _, part := range []struct {
		e  sqlparse.Expr
		to *int64
	}{{c.limit.Count, &all.Count}, {c.limit.Offset, &all.Offset}} {
		if part.e == nil {
			continue
		}
		v, _ := constant(part.e)
		if *part.to, err = number(v.value(args)); err != nil {
			return nil, "", err
		}
		if v.param >= 0 {
			dropped = append(dropped, v.param)
		}
	}
	if all.Count < 0 || all.Count > math.MaxInt64-all.Offset {
		return dropped, "", nil
	}
	return dropped, "LIMIT " + strconv.FormatInt(all.Count+all.Offset, 10), nil
}

// number reads an argument of LIMIT. A negative one is none on SQLite, and an error
// elsewhere.
func number(v any) (int64, error) {
	v, err := plain(v)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case int64:
		if v >= 0 {
			return v, nil
		}
	case int:
		if v >= 0 {
			return int64(v), nil
		}
	}
	return 0, fmt.Errorf("%w: LIMIT and OFFSET are integers from 0, not %v", sharding.ErrUnmergeable, v)
}

// spread returns the text for one of several targets: with its names, the hidden
// columns and the limit of a shard.
func (p *Plan) spread(target sharding.Target, limit string) (string, error) {
	edits, err := p.names(target)
	if err != nil {
		return "", err
	}
	c := p.combination
	if at := p.statement.Query.Parts[0].Select.ItemsEnd; len(c.hidden) > 0 {
		edits = append(edits, edit{at, at, ", " + strings.Join(c.hidden, ", ")})
	}
	if c.limit != nil {
		edits = append(edits, edit{c.limit.From, c.limit.To, limit})
	}
	return spliced(p.statement.Text, edits), nil
}
