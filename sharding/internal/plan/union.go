package plan

import (
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

// union takes in a UNION, which every shard answers for its rows: UNION ALL returns the
// rows of all shards, UNION each row once.
func (c *combiner) union() string {
	once := c.query.Parts[len(c.query.Parts)-1].Op == sqlparse.Union
	for _, c.core = range c.cores {
		if c.sums() || len(c.core.GroupBy) > 0 || c.core.Having != nil || c.core.Distinct {
			return "DISTINCT and groups in a UNION are not combined; send its SELECTs one by one"
		}
		if c.stars() && (once || len(c.query.OrderBy) > 0) {
			return "UNION and ORDER BY over it need select lists without *" + addKey
		}
	}
	for at := range c.cores[0].Items {
		if !once {
			break
		}
		v, why := c.alike(at)
		if why != "" {
			return why
		}
		v = v.untruncated()
		c.of.distinct = append(c.of.distinct, v.Type)
		c.of.whole = c.of.whole || v.loose()
		c.hideAll(at, v)
	}
	if c.of.limit = c.query.Limit; len(c.query.OrderBy) == 0 {
		return c.countable(c.of.limit)
	}
	for _, o := range c.query.OrderBy {
		at := c.result(o.Expr)
		if at < 0 {
			return "ORDER BY over a UNION takes names and numbers of what its first SELECT selects; " + c.text(o.Expr) + " is none"
		}
		v, why := c.alike(at)
		if why != "" {
			return why
		}
		c.hideAll(at, v)
		c.of.order = append(c.of.order, Order{Desc: o.Descending, NullsFirst: nullsFirst(o), Type: v.Type})
	}
	return c.countable(c.of.limit)
}

// alike returns how the values of a result column compare, which has to be the same in
// all branches.
func (c *combiner) alike(at int) (first Value, why string) {
	for i, core := range c.cores {
		c.core, c.scope = core, c.scopes[core]
		if at >= len(core.Items) {
			return first, "the SELECTs of a UNION have as many columns each"
		}
		v, why := c.value(core.Items[at].Expr)
		switch {
		case why != "":
			return v, why
		case v.As == Number:
			return v, c.text(core.Items[at].Expr) + " is compared by its text in a UNION" + addKey
		case i == 0:
			first = v
		case !v.same(first):
			return v, "the columns of a UNION compare in several ways: " + c.text(core.Items[at].Expr) + addKey
		}
	}
	return first, ""
}

// hideAll selects a result column besides, in every branch.
func (c *combiner) hideAll(at int, v Value) {
	for _, c.core = range c.cores {
		c.hide(v.selected(c.text(c.core.Items[at].Expr)))
	}
}

// result returns which result column a name or a number in ORDER BY means, or -1.
func (c *combiner) result(e sqlparse.Expr) int {
	c.core = c.cores[0]
	c.scope = c.scopes[c.core]
	found, why := c.ordered(e)
	name, isName := bare(e).(*sqlparse.Column)
	for at, item := range c.core.Items {
		if why == "" && item.Expr == found {
			return at
		}
		column, isColumn := bare(item.Expr).(*sqlparse.Column)
		if isName && isColumn && item.Alias.Name == "" && len(name.Name.Parts) == 1 && strings.EqualFold(column.Name.Parts[len(column.Name.Parts)-1].Name, name.Name.Parts[0].Name) {
			return at
		}
	}
	return -1
}

// same reports whether two values compare in the same way.
func (v Value) same(w Value) bool {
	a, b := v.Type, w.Type
	return v.As == w.As && a.Kind == b.Kind && a.Collation == b.Collation && a.Prefix == b.Prefix && a.Most == b.Most && string(a.Pad) == string(b.Pad)
}
