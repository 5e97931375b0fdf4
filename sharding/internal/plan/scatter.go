package plan

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
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
	// Distinct are the types of the columns before those of the order, by which equal
	// rows are told, where each row is wanted once.
	Distinct []merge.Type
	// Locks says that the query locks rows. Shards are asked one after another then:
	// two that lock the same rows would else wait for each other, each in one database.
	Locks bool
	Group *Group // nil for rows
}

// Group is how the groups of the shards are combined.
type Group struct {
	Keys    []merge.Key        // columns of the shards' rows
	Columns []merge.Aggregate  // of a combined group
	Shown   int                // how many of them the caller gets: the first ones
	Made    map[int]merge.Expr // of Columns: what is computed of others
	Having  merge.Expr         // nil without HAVING
	Args    []driver.Value     // of Made and Having
	Sort    []merge.Key        // of combined groups
}

// Shard is what goes to one target.
type Shard struct {
	Target sharding.Target
	Text   string
}

// String says how the answers are combined.
func (s *Shards) String() string {
	var how []string
	if g := s.Group; g != nil {
		how = append(how, "groups are combined")
		if g.Having != nil {
			how = append(how, "HAVING is applied to them")
		}
		if len(g.Sort) > 0 {
			how = append(how, "they are sorted")
		}
	}
	if len(s.Order) > 0 {
		how = append(how, "rows are merged in their order")
	}
	if len(s.Distinct) > 0 {
		how = append(how, "each row is returned once")
	}
	if s.Count >= 0 || s.Offset > 0 {
		how = append(how, fmt.Sprintf("%d rows after the first %d", s.Count, s.Offset))
	}
	if s.Locks {
		how = append(how, "one shard is asked after another")
	}
	return strings.Join(how, "; ")
}

// scatter routes a statement to several targets.
func (p *Plan) scatter(set slots, args []any) (Route, error) {
	first := p.sharded[0].table
	if p.combination == nil {
		return Route{}, p.unmerged
	}
	if err := cmp.Or(p.timeless(args, sharding.ErrUnmergeable), p.together("")); err != nil {
		return Route{}, err
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return Route{}, p.refusal(first.Name, err, "")
	}
	all := &Shards{Count: -1, Order: p.combination.order, Distinct: p.combination.distinct, Locks: p.locks}
	limit, err := p.combination.cut(all, args)
	if err == nil && p.combination.group != nil {
		all.Group, err = p.combination.group.bind(args)
	}
	if err != nil {
		return Route{}, p.refusal(first.Name, err, "")
	}
	removed := p.removed()
	for i := range args {
		if !slices.ContainsFunc(removed, func(e edit) bool { return p.param(i, e) }) {
			all.Args = append(all.Args, i)
		}
	}
	for _, target := range targets {
		text, err := p.spread(target, removed, limit)
		if err != nil {
			return Route{}, err
		}
		all.Targets = append(all.Targets, Shard{target, text})
	}
	return Route{Kind: Scatter, Shards: all}, nil
}

// targetsOf returns the targets of a set of slots, each once, in slot order. While
// rows are on two targets, as their slot moves, several targets would return them twice.
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
	if len(all) > 1 {
		if _, err := t.Everywhere(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// cut takes LIMIT and OFFSET in, and returns the limit of each shard: as many rows as
// both together.
func (c *combination) cut(all *Shards, args []any) (limit string, err error) {
	if c.limit == nil {
		return "", nil
	}
	for _, part := range []struct {
		e  sqlparse.Expr
		to *int64
	}{{c.limit.Count, &all.Count}, {c.limit.Offset, &all.Offset}} {
		if part.e == nil {
			continue
		}
		v, _ := constant(part.e)
		n, err := number(v.value(args))
		switch {
		case err != nil:
			return "", err
		case n >= 0:
			*part.to = n
		case !c.signed:
			return "", fmt.Errorf("%w: LIMIT and OFFSET are integers from 0, not %d", sharding.ErrUnmergeable, n)
		}
	}
	if c.whole || all.Count < 0 || all.Count > math.MaxInt64-all.Offset {
		return "", nil
	}
	return "LIMIT " + strconv.FormatInt(all.Count+all.Offset, 10), nil
}

// bind makes the grouping with the arguments of its expressions, which are numbers: how
// texts and times compare with them is the database's to know. The keys of the groups are
// the first hidden columns.
func (g *grouping) bind(args []any) (*Group, error) {
	bound := &Group{Columns: g.columns, Made: g.made, Shown: g.shown, Having: g.having, Sort: g.sort, Args: make([]driver.Value, len(args))}
	for i, v := range g.keys {
		bound.Keys = append(bound.Keys, merge.Key{Column: g.shown + i, Type: v.Type})
	}
	for _, i := range g.params {
		v, err := plain(operand{param: i}.value(args))
		if err != nil {
			return nil, err
		}
		switch n := v.(type) {
		case int:
			v = int64(n)
		case nil, int64, float64:
		default:
			return nil, fmt.Errorf("%w: HAVING compares with %T; only numbers are combined", sharding.ErrUnmergeable, v)
		}
		bound.Args[i] = v
	}
	return bound, nil
}

// removed returns the parts of the text that no shard gets: LIMIT, which is another
// one there, and of groups HAVING and ORDER BY, as a shard knows a part of a group.
func (p *Plan) removed() (all []edit) {
	c, query := p.combination, p.statement.Query
	if c.group == nil {
		if c.limit != nil {
			all = append(all, edit{from: c.limit.From, to: c.limit.To})
		}
		return all
	}
	core := query.Parts[0].Select
	if core.Having != nil {
		last := core.GroupBy[len(core.GroupBy)-1].Bytes().To
		all = append(all, edit{from: last, to: core.Having.Bytes().To})
	}
	if query.Span.To > query.After {
		all = append(all, edit{from: query.After, to: query.Span.To})
	}
	return all
}

// param reports whether an argument is that of a parameter in a part of the text.
func (p *Plan) param(i int, in edit) bool {
	return slices.ContainsFunc(p.statement.Params, func(q *sqlparse.Param) bool {
		return q.Index == i && q.Span.From >= in.from && q.Span.To <= in.to
	})
}

// number reads an argument of LIMIT or OFFSET.
func number(v any) (int64, error) {
	v, err := plain(v)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case int64:
		return v, nil
	case int:
		return int64(v), nil
	}
	return 0, fmt.Errorf("%w: LIMIT and OFFSET are integers, not %v", sharding.ErrUnmergeable, v)
}

// spread returns the text for one of several targets: with its names and the hidden
// columns, and without what is removed. A shard of rows gets a limit instead.
func (p *Plan) spread(target sharding.Target, removed []edit, limit string) (string, error) {
	edits, err := p.names(target)
	if err != nil {
		return "", err
	}
	c := p.combination
	for at, list := range c.hidden {
		edits = append(edits, edit{at, at, ", " + strings.Join(list, ", ")})
	}
	if c.group != nil && len(c.group.split) > 0 {
		edits = append(edits, p.split())
	}
	for _, e := range removed {
		if c.group == nil {
			e.with = limit
		}
		edits = append(edits, e)
	}
	return spliced(p.statement.Text, edits), nil
}

// split adds to GROUP BY what is counted with DISTINCT.
func (p *Plan) split() edit {
	query, list := p.statement.Query, strings.Join(p.combination.group.split, ", ")
	if by := query.Parts[0].Select.GroupBy; len(by) > 0 {
		last := by[len(by)-1].Bytes().To
		return edit{last, last, ", " + list}
	}
	return edit{query.After, query.After, " GROUP BY " + list}
}
