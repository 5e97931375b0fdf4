package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// combination is how the answers of several shards become the one that a single
// table would have given. It is made once for a statement.
type combination struct {
	hidden map[int][]string // expressions that are selected besides, by places in the text
	order  []Order
	limit  *sqlparse.Limit
	// distinct are the types of the hidden columns, before those of the order, by which
	// equal rows are told.
	distinct []merge.Type
	whole    bool      // a shard returns all of its rows, whatever LIMIT is
	group    *grouping // of a query that aggregates
}

// Order is an expression of ORDER BY, which a shard returns as a hidden column.
type Order struct {
	Desc, NullsFirst bool
	Type             merge.Type
}

// combine returns how the answers of several shards are combined, or why they
// cannot be.
func (b *builder) combine(st *sqlparse.Statement, d merge.Dialect) (*combination, *oddity) {
	c := &combiner{builder: b, statement: st, query: st.Query, of: &combination{hidden: map[int][]string{}}, dialect: d}
	why := c.form()
	for _, core := range c.cores {
		if why == "" {
			c.core, c.scope = core, b.scopes[core]
			why = c.branch()
		}
	}
	switch {
	case why != "":
	case len(c.cores) > 1:
		why = c.union()
	default:
		why = c.answer()
	}
	if why != "" {
		return nil, &oddity{c.table(), sharding.ErrUnmergeable, why}
	}
	return c.of, nil
}

// combiner makes a combination.
type combiner struct {
	*builder
	statement *sqlparse.Statement
	query     *sqlparse.Query
	cores     []*sqlparse.Core // the branches of a UNION, or one
	core      *sqlparse.Core   // the present one
	scope     *scope           // its
	of        *combination
	dialect   merge.Dialect
}

func (c *combiner) table() string {
	for _, r := range c.refs {
		if r.role == sharded {
			return r.table.Name
		}
	}
	return ""
}

const addKey = "; add a condition on the sharding key, so that one shard answers"

// form accepts SELECT, and several with UNION.
func (c *combiner) form() string {
	switch {
	case c.query.With != nil:
		return "a WITH is not combined" + addKey
	case c.statement.Limiting:
		return "a hint in a comment limits each shard's answer; leave it out"
	case len(c.query.Locks) > 0:
		return "a locking clause holds for the transaction of one database" + addKey
	}
	for i, part := range c.query.Parts {
		core := part.Select
		if n := part.Nested; n != nil && len(c.query.Parts) > 1 && len(n.Parts) == 1 && n.With == nil && len(n.OrderBy) == 0 && n.Limit == nil && len(n.Locks) == 0 {
			core = n.Parts[0].Select
		}
		switch {
		case core == nil:
			return "only SELECTs are combined, and by UNION those without ORDER BY and LIMIT of their own" + addKey
		case part.Op == sqlparse.Union && i < len(c.query.Parts)-1 && c.query.Parts[i+1].Op == sqlparse.UnionAll:
			return "UNION ALL after UNION is not combined" + addKey
		case part.Op > sqlparse.Union:
			return "INTERSECT and EXCEPT are not combined" + addKey
		}
		c.cores = append(c.cores, core)
	}
	return ""
}

// branch accepts one SELECT.
func (c *combiner) branch() string {
	switch {
	case len(c.core.DistinctOn) > 0:
		return "DISTINCT ON is not combined" + addKey
	case c.core.Rollup:
		return "WITH ROLLUP is not combined" + addKey
	case len(c.core.Windows) > 0:
		return "window functions are not combined" + addKey
	case len(c.core.Modifiers) > 0:
		return c.core.Modifiers[0] + " is not combined; leave it out"
	}
	if why := c.roots(); why != "" {
		return why
	}
	return c.expressions()
}

// roots looks for a sharded table from one row of which each row of the answer comes.
func (c *combiner) roots() string {
	if slices.ContainsFunc(c.scope.refs, func(r *reference) bool { return r.role == derived }) {
		return "a subquery or CTE in FROM is not combined" + addKey
	}
	if slices.ContainsFunc(c.scope.refs, func(r *reference) bool { return r.role == sharded && !r.nullable && c.near(r) }) {
		return ""
	}
	return "the rows of an answer have to come from one row each of a sharded table, with whose slot all other tables agree; join them by the sharding key"
}

// near reports whether the rows of all other sharded tables lie in the slot of the
// root's row.
func (c *combiner) near(root *reference) bool {
	all := c.refs
	if len(c.cores) > 1 {
		all = c.scope.inside
	}
	for _, r := range all {
		if r.role != sharded || r == root {
			continue
		}
		if !slices.Contains(c.neighbours(r), root) {
			return false
		}
	}
	return true
}

// expressions refuses what a shard computes otherwise than one table would.
func (c *combiner) expressions() string {
	for i := range c.core.From {
		if hasFunction(&c.core.From[i]) {
			return "a table function is not combined" + addKey
		}
	}
	return c.restless
}

func hasFunction(s *sqlparse.Source) bool {
	return s.Function != nil || s.Join != nil && (hasFunction(s.Join.Left) || hasFunction(s.Join.Right))
}

// answer takes in what is selected: groups, or rows.
func (c *combiner) answer() string {
	sums := c.sums()
	switch {
	case c.core.Distinct && (sums || len(c.core.GroupBy) > 0):
		return "DISTINCT of groups is not combined" + addKey
	case sums || len(c.core.GroupBy) > 0 || c.core.Having != nil:
		return c.grouped()
	case c.core.Distinct:
		if why := c.distinct(); why != "" {
			return why
		}
	}
	return c.sorted()
}

// sums reports whether what the present SELECT selects is an aggregate.
func (c *combiner) sums() bool {
	return slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return i.Expr != nil && aggregated(i.Expr) })
}

// distinct takes in DISTINCT: hidden columns, each equal to a selected one, make no
// two rows differ. Only weights without their padding may: then 'a' and 'a ' are two
// rows of a shard, and a LIMIT there would count both.
func (c *combiner) distinct() string {
	for _, item := range c.core.Items {
		if item.Star {
			return "DISTINCT needs a select list without *" + addKey
		}
		v, why := c.value(item.Expr)
		if why != "" {
			return why
		}
		v = v.untruncated()
		c.of.distinct = append(c.of.distinct, v.Type)
		c.of.whole = c.of.whole || v.loose()
		c.hide(v.selected(c.text(item.Expr)))
	}
	for _, o := range c.query.OrderBy {
		e, why := c.ordered(o.Expr)
		if why != "" {
			return why
		}
		if !slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return c.text(i.Expr) == c.text(e) }) {
			return "DISTINCT is ordered by what is selected; select " + c.text(e)
		}
	}
	return ""
}

// sorted takes in ORDER BY and LIMIT.
func (c *combiner) sorted() string {
	c.of.limit = c.query.Limit
	if why := c.countable(c.of.limit); why != "" {
		return why
	}
	for _, o := range c.query.OrderBy {
		e, why := c.ordered(o.Expr)
		if why != "" {
			return why
		}
		v, why := c.value(e)
		if why != "" {
			return why
		}
		c.hide(v.selected(c.text(e)))
		c.of.order = append(c.of.order, Order{Desc: o.Descending, NullsFirst: nullsFirst(o), Type: v.Type})
	}
	return ""
}

// countable accepts a LIMIT that can be computed before, and whose parameters can be
// left out: those that are not numbered by their places cannot.
func (c *combiner) countable(l *sqlparse.Limit) string {
	if l == nil {
		return ""
	}
	if l.Ties {
		return "WITH TIES is not combined" + addKey
	}
	for _, e := range []sqlparse.Expr{l.Count, l.Offset} {
		if e == nil {
			continue
		}
		v, ok := constant(e)
		if !ok {
			return "LIMIT and OFFSET have to be numbers or parameters"
		}
		if v.param >= 0 && !c.plainParams() {
			return "numbered and named parameters are not combined with LIMIT; write ? for each"
		}
	}
	return ""
}

// plainParams reports whether every parameter takes the argument of its place.
func (c *combiner) plainParams() bool {
	for i, p := range c.statement.Params {
		if p.Index != i || p.Of(c.statement.Text) != "?" {
			return false
		}
	}
	return true
}

// ordered returns the selected expression that a name or a number in ORDER BY means,
// or the expression itself.
func (c *combiner) ordered(e sqlparse.Expr) (sqlparse.Expr, string) {
	switch e := bare(e).(type) {
	case *sqlparse.Literal:
		n, err := strconv.Atoi(e.Value)
		if e.Kind != sqlparse.Integer || err != nil || n < 1 || n > len(c.core.Items) || c.stars() {
			return nil, "ORDER BY a number needs a select list without *" + addKey
		}
		return c.core.Items[n-1].Expr, ""
	case *sqlparse.Column:
		if len(e.Name.Parts) > 1 {
			return e, ""
		}
		for _, item := range c.core.Items {
			if item.Expr != nil && strings.EqualFold(item.Alias.Name, e.Name.Parts[0].Name) {
				return item.Expr, ""
			}
		}
		return e, ""
	}
	return bare(e), ""
}

func (c *combiner) stars() bool {
	for _, item := range c.core.Items {
		if item.Star {
			return true
		}
	}
	return false
}
