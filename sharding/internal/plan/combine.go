// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// combination is how the answers of several shards become the one that a single
// table would have given. It is made once for a statement.
type combination struct {
	edits  []edit // of the statement's text, besides its names and the LIMIT of rows
	order  []Order
	limit  *sqlparse.Limit
	signed bool // a negative LIMIT is none, a negative OFFSET 0: on SQLite
	// distinct are the types of the hidden columns, before those of the order, by which
	// equal rows are told.
	distinct []merge.Type
	whole    bool      // a shard returns all of its rows, whatever LIMIT is
	most     int64     // how many rows a shard returns at most without LIMIT, -1 where nobody knows
	group    *grouping // of a query that aggregates
	integers []int     // arguments that have to be whole numbers, for the kind of a result
}

// Order is an expression of ORDER BY, which a shard returns as a hidden column.
type Order struct {
	Desc, NullsFirst bool
	Type             merge.Type
}

// combine returns how the answers of several shards are combined, or why they
// cannot be.
func (b *builder) combine(d merge.Dialect) (*combination, *sharding.RouteError) {
	c := &combiner{
		comparer: comparer{builder: b, dialect: d}, query: b.statement.Query, of: &combination{signed: d.Engine == merge.SQLite},
		hidden: map[int][]string{}, copied: map[int][]int{},
	}
	if d.Engine != merge.SQLite {
		c.integers = &c.of.integers
	}
	c.form()
	for _, core := range c.cores {
		c.enter(core)
		c.branch()
	}
	if c.of.most = -1; len(c.cores) == 1 && c.scope.single(c.core.Where) {
		c.of.most = 1
	}
	if c.why == "" {
		c.answer()
	}
	if c.why != "" {
		return nil, b.refusal(b.firstSharded(), sharding.ErrUnmergeable, c.why)
	}
	for at, list := range c.hidden {
		e := inserted(at, ", "+strings.Join(list, ", "))
		e.args = c.copied[at]
		c.of.edits = append(c.of.edits, e)
	}
	return c.of, nil
}

// combiner makes a combination.
type combiner struct {
	comparer
	query  *sqlparse.Query
	cores  []*sqlparse.Core // the branches of a UNION, or one
	hidden map[int][]string // expressions that are selected besides, by places in the text
	copied map[int][]int    // the arguments in them
	of     *combination
}

const addKey = "; add a condition on the sharding key, so that one shard answers"

// form accepts SELECT, and several with UNION.
func (c *combiner) form() {
	switch {
	case c.query.With != nil && (c.query.With.Recursive || len(c.query.Parts) > 1):
		c.refuse("a recursive WITH, or one beside a UNION, is not combined" + addKey)
	case c.twice:
		c.refuse("a CTE that is read twice is not combined, as its readers may need rows of other shards" + addKey)
	case c.statement.Limiting:
		c.refuse("a hint in a comment limits each shard's answer; leave it out")
	}
	for i, part := range c.query.Parts {
		core := part.Select
		if n := part.Nested; n != nil && len(c.query.Parts) > 1 && len(n.Parts) == 1 && n.With == nil && len(n.OrderBy) == 0 && n.Limit == nil && len(n.Locks) == 0 {
			core = n.Parts[0].Select
		}
		switch {
		case core == nil:
			c.refuse("only SELECTs are combined, and by UNION those without ORDER BY and LIMIT of their own" + addKey)
			return
		case part.Op == sqlparse.Union && i < len(c.query.Parts)-1 && c.query.Parts[i+1].Op == sqlparse.UnionAll:
			c.refuse("UNION ALL after UNION is not combined" + addKey)
		case part.Op > sqlparse.Union:
			c.refuse("INTERSECT and EXCEPT are not combined" + addKey)
		}
		c.cores = append(c.cores, core)
	}
}

// branch accepts one SELECT.
func (c *combiner) branch() {
	switch {
	case len(c.core.DistinctOn) > 0:
		c.refuse("DISTINCT ON is not combined" + addKey)
	case c.core.Rollup:
		c.refuse("WITH ROLLUP is not combined" + addKey)
	case len(c.core.Windows) > 0:
		c.refuse("a WINDOW is not combined; write PARTITION BY with the sharding key into OVER (…)")
	case len(c.core.Modifiers) > 0:
		c.refuse(c.core.Modifiers[0] + " is not combined; leave it out")
	case c.scope.quantified && !c.rooted(c.scope) && !c.asks():
		c.refuse("ALL (SELECT …) and ANY (SELECT …) compare with rows of all shards, of which each shard has its own; read the least or the greatest of them before, and give it as an argument; = ANY is IN, which is combined where both columns lead to the shard")
	case !c.rooted(c.scope) && !c.asks():
		c.refuse("the rows of an answer have to come from one row each of a sharded table, with whose slot all other tables agree; join them by the sharding key")
	}
	c.expressions()
}

// asks reports whether a SELECT has EXISTS alone, of rows that the shards make of theirs:
// there is one if any shard has one.
func (c *combiner) asks() bool {
	if len(c.cores) > 1 || len(c.core.From) > 0 || c.core.Where != nil || len(c.core.Items) != 1 || len(c.query.OrderBy) > 0 || c.query.Limit != nil || c.core.Distinct {
		return false
	}
	exists := sqlparse.As(bare(c.core.Items[0].Expr), sqlparse.Exists)
	if exists == nil {
		return false
	}
	q := exists.Operands[0].(*sqlparse.Subquery).Query //nolint:forcetypeassert // the parser puts nothing else there
	if q.Limit != nil && q.Limit.Offset != nil {       // LIMIT leaves a row of a shard where it leaves one of all
		c.refuse("what OFFSET leaves out for EXISTS, it leaves out of all rows, and not of each shard's" + addKey)
	}
	return c.only(q) != nil && q.With == nil && c.parted(q.Parts[0].Select, q.OrderBy)
}

// rooted reports whether each row of a SELECT, before it is grouped, comes from rows of a
// sharded table in one slot: one row of it, or a row of a derived table.
func (c *combiner) rooted(s *scope) bool {
	return slices.ContainsFunc(s.refs, func(r *reference) bool {
		return r.nullable == 0 && (r.role == sharded && c.near(r) || r.query != nil && c.derived(r.query))
	})
}

// derived reports whether the rows of a derived table are those that the shards make of
// their rows.
func (c *combiner) derived(q *sqlparse.Query) bool {
	return q.Limit == nil && q.With == nil && c.parted(q.Parts[0].Select, q.OrderBy)
}

// parted reports whether the rows of a SELECT are those that the shards make of theirs: it
// is rooted, and equal rows and groups have a column that is on one shard.
func (c *combiner) parted(core *sqlparse.Core, order []sqlparse.Order) bool {
	s := c.scopes[core]
	if core.Rollup || len(core.DistinctOn) > 0 || !c.rooted(s) {
		return false
	}
	if core.Distinct && !slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return c.keyed(s, i.Expr) }) {
		return false
	}
	if len(core.GroupBy) > 0 {
		return slices.ContainsFunc(core.GroupBy, func(e sqlparse.Expr) bool { return c.keyed(s, e) })
	}
	return core.Having == nil && !sums(core, order)
}

// near reports whether the rows of all other sharded tables lie in the slot of the
// root's row.
func (c *combiner) near(root *reference) bool {
	all := c.refs
	if len(c.cores) > 1 {
		all = c.scope.inside
	}
	return !slices.ContainsFunc(all, func(r *reference) bool {
		return r.role == sharded && r != root && !slices.Contains(c.neighbours(r), root)
	})
}

// expressions refuses what a shard computes otherwise than one table would.
func (c *combiner) expressions() {
	if slices.ContainsFunc(c.core.From, hasFunction) {
		c.refuse("a table function is not combined" + addKey)
	}
	for _, l := range c.limits {
		if l.query != c.query && !slices.ContainsFunc(l.refs, func(r *reference) bool { return r.role == sharded }) && !c.total(l.query) {
			c.refuse("which rows LIMIT leaves of a copied table may differ from database to database; order by a unique key of it")
		}
	}
	c.refuse(c.differs())
}

// total reports whether a query of one table has an order in which no two rows are equal.
func (c *combiner) total(q *sqlparse.Query) bool {
	s := c.only(q)
	if s == nil || len(s.inside) == 0 {
		return s != nil
	}
	ordered := func(name string) bool {
		return slices.ContainsFunc(q.OrderBy, func(o sqlparse.Order) bool {
			by, ok := s.column(o.Expr)
			return ok && by == column{s.refs[0], name}
		})
	}
	return len(s.inside) == 1 && len(s.refs) == 1 && slices.ContainsFunc(s.refs[0].schema.Unique, func(key []string) bool {
		return !slices.ContainsFunc(key, func(name string) bool { return !ordered(name) })
	})
}

func hasFunction(s sqlparse.Source) bool {
	return s.Function != nil || s.Join != nil && (hasFunction(*s.Join.Left) || hasFunction(*s.Join.Right))
}

// answer takes in what is selected: groups, or rows.
func (c *combiner) answer() {
	if c.asks() {
		found := merge.Aggregate{Function: merge.Max, By: merge.Key{Type: merge.Type{Kind: merge.Integer}}}
		c.of.group = &grouping{Group: Group{Columns: []merge.Aggregate{found}, Shown: 1}}
		return
	}
	several := len(c.cores) > 1
	once := !several && c.core.Distinct || c.query.Parts[len(c.query.Parts)-1].Op == sqlparse.Union
	for _, core := range c.cores {
		c.enter(core)
		groups := core.Having != nil || len(core.GroupBy) > 0 || slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return aggregated(i.Expr) })
		switch {
		case groups && c.stars():
			c.refuse("GROUP BY needs a select list without *" + addKey)
		case c.stars() && (once || several && len(c.query.OrderBy) > 0):
			c.refuse("DISTINCT, UNION, and ORDER BY over UNION ALL need select lists without *" + addKey)
		case several && (groups || core.Distinct && !once) && !c.parted(core, nil):
			c.refuse("DISTINCT and groups in a UNION are combined where each row or group is on one shard: select or group by the sharding key, or send its SELECTs one by one")
		case groups && several:
			continue
		case core.Distinct && groups:
			c.refuse("DISTINCT of groups is not combined" + addKey)
		case groups:
			grouper{c}.grouped()
		default:
			continue
		}
		return
	}
	if once {
		c.once()
	}
	c.sorted()
}

// once takes in DISTINCT and UNION: hidden columns, each equal to a selected one, make no
// two rows differ. Only weights without their padding may: then 'a' and 'a ' are two
// rows of a shard, and a LIMIT there would count both.
func (c *combiner) once() {
	for at, item := range c.cores[0].Items {
		if v, ok := constant(item.Expr); ok && v.param >= 0 && len(c.cores) == 1 && c.dialect.Engine == merge.PostgreSQL {
			continue // the same in all rows, whatever it is taken for
		}
		v := c.result(at).untruncated()
		c.of.distinct = append(c.of.distinct, v.Type)
		c.of.whole = c.of.whole || v.loose()
		c.hideResult(at, v)
	}
	if len(c.of.distinct) == 0 {
		c.refuse("how " + c.text(c.core.Items[0].Expr) + " compares is not known" + addKey)
	}
}

// sorted takes in ORDER BY and LIMIT.
func (c *combiner) sorted() {
	for _, o := range c.query.OrderBy {
		c.of.order = append(c.of.order, Order{Desc: o.Descending, NullsFirst: nullsFirst(o, c.dialect), Type: c.sort(o.Expr).Type})
	}
	c.countable()
}

// sort selects besides what the rows are ordered by: a result column, or any expression
// where each row of the answer is one of a SELECT.
func (c *combiner) sort(by sqlparse.Expr) (v Value) {
	c.enter(c.cores[0])
	e := c.ordered(by)
	switch at := c.place(e); {
	case at >= 0:
		if v = c.inOrder(e, c.result(at)); c.dialect.Engine != merge.SQLite && written(c.cores, at) > 1 {
			c.refuse("how " + c.text(e) + " is sorted is known to the collation of a connection alone; order by a number: SELECT 1 AS x … UNION ALL SELECT 2 …")
		}
		c.hideResult(at, v)
	case len(c.of.distinct) > 0 || len(c.cores) > 1:
		c.refuse("DISTINCT and UNION are ordered by what is selected; select " + c.text(e))
	default:
		v = c.inOrder(e, c.typed(e))
		c.hide(v.selected(c.text(e)), e)
	}
	return v
}

// place returns the result column that ORDER BY means, or -1: the one whose number or alias
// it has given, or else of this name, or of this text. Columns of one text may be of several
// ones in another branch of a UNION.
func (c *combiner) place(by sqlparse.Expr) int {
	for _, is := range []func(sqlparse.Item) bool{
		func(i sqlparse.Item) bool { return i.Expr == by },
		func(i sqlparse.Item) bool { return isCalled(i, by) },
		func(i sqlparse.Item) bool { return !i.Star && c.text(i.Expr) == c.text(by) },
	} {
		if at := slices.IndexFunc(c.core.Items, is); at >= 0 {
			return at
		}
	}
	return -1
}

// isCalled reports whether a name in ORDER BY is that of a result column.
func isCalled(i sqlparse.Item, by sqlparse.Expr) bool {
	column, isColumn := bare(i.Expr).(*sqlparse.Column)
	return isColumn && i.Alias.Name == "" && strings.EqualFold(last(column.Name), unqualified(by))
}

// result returns how the values of a result column compare, which has to be the same in
// all branches of a UNION.
func (c *combiner) result(at int) (first Value) {
	for i, core := range c.cores {
		c.enter(core)
		if at >= len(core.Items) {
			c.refuse("the SELECTs of a UNION have as many columns each")
			return first
		}
		e := core.Items[at].Expr
		v, ok := c.fixed(e, at)
		if !ok {
			v = c.selects(e)
		}
		switch {
		case v.As == Number && len(c.cores) > 1:
			c.refuse(c.text(core.Items[at].Expr) + " is compared by its text in a UNION" + addKey)
		case i == 0:
			first = v
		case !v.same(first):
			c.refuse("the columns of a UNION compare in several ways: " + c.text(core.Items[at].Expr) + addKey)
		}
	}
	return first
}

// fixed returns how the values of a result column compare that is written, or given as an
// argument. SQLite's is known by itself, and what PostgreSQL takes an argument for is not.
func (c *combiner) fixed(e sqlparse.Expr, at int) (Value, bool) {
	_, isParam := bare(e).(*sqlparse.Param)
	switch {
	case c.dialect.Engine == merge.SQLite, isParam && c.dialect.Engine == merge.PostgreSQL:
		return Value{}, false
	case written(c.cores, at) > 0:
		return Value{Type: merge.Type{Kind: merge.Bytes}}, true
	}
	return numeral(e, c.integers)
}

// hideResult selects a result column besides, in every branch.
func (c *combiner) hideResult(at int, v Value) {
	for _, core := range c.cores {
		c.enter(core)
		switch {
		case at >= len(core.Items):
		case core.Distinct && len(c.of.distinct) == 0 && v.loose(): // equal texts have several weights
			c.refuse("UNION ALL with DISTINCT is not ordered by a text; order by other columns, or write UNION")
		case len(core.GroupBy) > 0:
			c.hide(c.key(v, core.Items[at].Expr), core.Items[at].Expr)
		default:
			c.hide(v.selected(c.text(core.Items[at].Expr)), core.Items[at].Expr)
		}
	}
}

// countable takes in a LIMIT that can be computed before, and whose parameters can be
// left out: those that are not numbered by their places cannot.
func (c *combiner) countable() {
	l := c.query.Limit
	if c.of.limit = l; l == nil {
		return
	}
	switch {
	case l.Ties:
		c.refuse("WITH TIES is not combined" + addKey)
	case len(c.query.Locks) > 0 && (len(c.cores) > 1 || !c.scope.single(c.core.Where)):
		c.refuse("each shard would lock as many rows as LIMIT says, and most of them would not be returned; leave LIMIT out, or name a row by a unique key" + addKey)
	}
	for _, e := range []sqlparse.Expr{l.Count, l.Offset} {
		v, ok := constant(e)
		switch {
		case e == nil:
		case !ok:
			c.refuse("LIMIT and OFFSET have to be numbers or parameters")
		case v.param >= 0 && parameters{c.statement}.named():
			c.refuse("named parameters are not combined with LIMIT; write ? for each")
		}
	}
}
