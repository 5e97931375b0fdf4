// SPDX-License-Identifier: Apache-2.0

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

// Shards is a statement for several targets, and the combination of their results.
type Shards struct {
	Targets []Shard
	// Order is the order of the rows. Its columns are counted among the hidden ones: the last
	// columns of each result, which the caller does not get.
	Order         []merge.Key
	Offset, Count int64 // Count is -1 without a LIMIT
	Most          int64 // the largest number of rows of a target, -1 if unknown
	// Distinct are the hidden columns by which equal rows are found, if each row is wanted once.
	// They precede those of the order.
	Distinct []merge.Key
	// Locks says that the query locks rows. Shards are then queried one after another: two queries
	// that lock the same rows in parallel could wait for each other, each in one database.
	Locks bool
	Group *Group // nil for rows
	// Totals are columns of rows that count all rows of their shard. A negative number counts from the end of the
	// columns that the caller gets: -1 is the last of them.
	Totals []int
	// Counted is the name of the only column that the caller gets: the number of the combined rows. It is "" if the caller
	// gets the rows.
	Counted string
}

// Group says how the groups of the shards are combined.
type Group struct {
	Keys    []merge.Key        // columns of the shards' rows
	Columns []merge.Aggregate  // of a combined group
	Shown   int                // the number of columns that the caller gets: the first ones
	Made    map[int]merge.Expr // the columns that are computed from others
	Having  merge.Expr         // nil without HAVING
	Windows []merge.Window     // the window functions over combined groups
	Args    []driver.Value     // of Made and Having
	Sort    []merge.Key        // of combined groups
	Dialect merge.Dialect      // of Made and Having
}

// Shard is the text for one target.
type Shard struct {
	Target sharding.Target
	Text   string
	Args   []int // indexes of the statement's arguments, in the text's order
}

// String describes how the results are combined.
func (s *Shards) String() string {
	g := cmp.Or(s.Group, &Group{})
	var how []string
	for _, step := range []struct {
		is   bool
		says string
	}{
		{s.Group != nil, "groups are combined"},
		{g.Having != nil, "HAVING is applied to them"},
		{len(g.Windows) > 0, "window functions are computed over them"},
		{len(g.Sort) > 0, "they are sorted"},
		{len(s.Totals) > 0, "counts of all rows are added up"},
		{len(s.Order) > 0, "rows are merged in their order"},
		{len(s.Distinct) > 0, "each row is returned once"},
		{s.Count >= 0 || s.Offset > 0, fmt.Sprintf("%d rows after the first %d", s.Count, s.Offset)},
		{s.Counted != "", "they are counted"},
		{s.Locks, "shards are queried one after another"},
	} {
		if step.is {
			how = append(how, step.says)
		}
	}
	return strings.Join(how, "; ")
}

// scatter routes a statement to several targets.
func (p *binding) scatter(set slots) (*Route, error) {
	first := p.sharded[0].table
	if p.combination == nil && !p.untyped {
		return nil, p.unmerged
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return nil, p.refusal(first.Name, err, "")
	}
	apart := p.together(shared(p.Plan, targets))
	if p.combination == nil { // the unknown column may be that of a table of another database
		return nil, cmp.Or(apart, error(p.unmerged))
	}
	if err := cmp.Or(p.timeless(sharding.ErrUnmergeable), apart); err != nil {
		return nil, err
	}
	all := p.combination.Shards
	edits, err := p.combination.bind(&all, p.args)
	if err != nil {
		return nil, p.refusal(first.Name, err, "")
	}
	if none := p.combination.none; none != nil {
		all.Targets, err = united(p, targets, edits, none)
	} else {
		all.Targets, err = p.split(targets, edits)
	}
	if err != nil {
		return nil, err
	}
	return &Route{Kind: Scatter, Pooled: p.stateless, Shards: &all}, nil
}

// shared returns the database of all targets, whose other tables each part of a query may join. It is "" if there
// are several, for a query that locks rows, whose parts would wait for each other's locks, and for one with a
// subquery that may lead to few of the targets when it is executed first.
func shared(p *Plan, targets []sharding.Target) string {
	if p.locks || p.leadingHome || len(targets) == 0 || slices.ContainsFunc(targets, func(t sharding.Target) bool { return t.DB != targets[0].DB }) {
		return ""
	}
	return targets[0].DB
}

// sent returns the selected arguments that exist, and all surplus arguments: the database reports
// which are missing and which are too many.
func (p *binding) sent(chosen []int) []int {
	chosen = slices.DeleteFunc(chosen, func(i int) bool { return i >= len(p.args) })
	for i := p.statement.Args; i < len(p.args); i++ {
		chosen = append(chosen, i)
	}
	return chosen
}

// bind applies the arguments of LIMIT and OFFSET and of groups, and returns the edits of the text.
// The limit of each shard is the sum of both.
func (c *combination) bind(all *Shards, args []any) (edits []edit, err error) {
	if c.group != nil {
		if all.Group, err = c.group.bind(args); err != nil {
			return nil, err
		}
	}
	if err := c.computable(args); err != nil {
		return nil, err
	}
	if c.limit == nil {
		return c.edits, nil
	}
	if all.Count, err = c.number(c.limit.Count, args, -1); err != nil {
		return nil, err
	}
	if all.Offset, err = c.number(c.limit.Offset, args, 0); err != nil {
		return nil, err
	}
	if c.group != nil { // a shard returns all of its groups
		return c.edits, nil
	}
	limit := edit{Span: c.limit.Span}
	if !c.whole && all.Count >= 0 && all.Count <= math.MaxInt64-all.Offset {
		most := all.Count + all.Offset
		limit.with = "LIMIT " + strconv.FormatInt(most, 10)
		if all.Most < 0 || most < all.Most {
			all.Most = most
		}
	}
	return append(slices.Clip(c.edits), limit), nil
}

// computable refuses arguments for which the kind of a result is unknown.
func (c *combination) computable(args []any) error {
	for _, i := range c.integers {
		v, err := plain(operand{param: i}.value(args))
		if err != nil {
			return fmt.Errorf("%w: argument %d: %w", sharding.ErrUnmergeable, i+1, err)
		}
		switch v.(type) {
		case nil, int, int64:
		default:
			return fmt.Errorf("%w: how a result of argument %d compares depends on how its driver sends a %T; pass a whole number", sharding.ErrUnmergeable, i+1, v)
		}
	}
	return nil
}

// bind returns the grouping with the arguments of its expressions. They must be numbers, because
// only the database knows how texts and times compare with them.
func (g *grouping) bind(args []any) (*Group, error) {
	bound := g.Group
	bound.Args = make([]driver.Value, len(args))
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
	return &bound, nil
}

// number returns the number of LIMIT or OFFSET, which is none if it is missing or negative.
func (c *combination) number(e sqlparse.Expr, args []any, none int64) (int64, error) {
	if e == nil {
		return none, nil
	}
	is, _ := constant(e)
	v, err := plain(is.value(args))
	if n, ok := v.(int); ok {
		v = int64(n)
	}
	if n, ok := v.(int64); ok && err == nil && (n >= 0 || c.signed) {
		return max(n, none), nil
	}
	return 0, fmt.Errorf("%w: LIMIT and OFFSET must be integers from 0, not %v", sharding.ErrUnmergeable, v)
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
func (p *Plan) unite() *union {
	q := p.statement.Query
	switch {
	case p.statement.Verb != sqlparse.Select, p.options.Merge.Engine == merge.SQLite, len(p.refs) != 1, p.refused != nil, p.origin != nil, p.locks, !p.stateless:
		return nil
	case q.With != nil, !ofOneTable(coreOf(q)), hasStar(coreOf(q)), p.combination == nil, p.combination.group != nil, !isUnique(p.sharded[0].proof):
		return nil
	}
	targets, err := p.sharded[0].table.Everywhere()
	if err != nil || len(targets) > maxUnion || slices.ContainsFunc(targets, func(t sharding.Target) bool { return t.DB != targets[0].DB }) {
		return nil
	}
	u := &union{first: targets[0]}
	behind := len(p.statement.Text) - q.To
	texts := make([]string, len(targets))
	for i, target := range targets {
		text, err := p.edited(target, nil)
		if err != nil {
			return nil
		}
		texts[i] = "(" + text[q.From:len(text)-behind] + ")"
	}
	u.text = p.statement.Text[:q.From] + strings.Join(texts, " UNION ALL ") + p.statement.Text[q.To:]
	params := parameters{p.statement}
	if u.args, _ = params.around(nil); !params.numbered() { // otherwise all tables take the same arguments
		u.args = slices.Repeat(u.args, len(targets))
	}
	return u
}

func ofOneTable(c *sqlparse.Core) bool { return c != nil && len(c.From) == 1 && c.From[0].Table != nil }

// isUnique reports whether all rows have one value in a column with a unique lookup.
func isUnique(p proof) bool {
	switch p := p.(type) {
	case allOf:
		return slices.ContainsFunc(p, isUnique)
	case *owned:
		return p.lead.lookup.Unique && len(p.values) == 1
	}
	return false
}
