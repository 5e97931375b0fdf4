package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// grouping is how the groups of several shards become those of one table. Each shard
// returns its own groups, without HAVING, ORDER BY and LIMIT, and besides what is
// selected the keys of the groups and the aggregates that HAVING and ORDER BY name.
type grouping struct {
	keys      []Value            // of the hidden columns that tell groups apart
	columns   []merge.Aggregate  // of a combined group: what is selected, then what is not
	values    []Value            // how these columns compare
	made      map[int]merge.Expr // of columns: what is computed of others
	params    []int              // the arguments of these expressions, and of having
	shown     int                // how many columns are selected
	split     []string           // what a shard groups by besides, for COUNT(DISTINCT)
	zero      bool               // there is COALESCE or IFNULL
	quotients int                // how many divisions are computed
	having    merge.Expr         // nil without HAVING
	sort      []merge.Key        // of columns
}

// grouped takes in GROUP BY, HAVING, and the order of groups.
func (c *combiner) grouped() string {
	if c.stars() {
		return "GROUP BY needs a select list without *" + addKey
	}
	g := &grouping{shown: len(c.core.Items), made: map[int]merge.Expr{}}
	c.of.group = g
	for _, e := range c.core.GroupBy {
		if c.ambiguous(e) {
			return c.text(e) + " is a column and the alias of something else; give it another alias"
		}
		by, why := c.ordered(e)
		if why != "" {
			return strings.Replace(why, "ORDER BY", "GROUP BY", 1)
		}
		v, why := c.told(by)
		if why != "" {
			return why
		}
		g.keys = append(g.keys, v)
		c.hide(c.key(v, by))
	}
	for i := range c.core.Items {
		if why := c.groupItem(&c.core.Items[i], i); why != "" {
			return why
		}
	}
	for _, part := range []func() string{c.computed, c.having, c.sortGroups} {
		if why := part(); why != "" {
			return why
		}
	}
	if g.zero && len(g.split) > 0 && len(g.keys) == 0 { // of no rows the shards return none, and no 0.00
		return "COALESCE of aggregates beside COUNT(DISTINCT) is not combined without GROUP BY; select one of them"
	}
	return ""
}

// computed takes in what is selected and computed of aggregates.
func (c *combiner) computed() string {
	for i, item := range c.core.Items {
		if !aggregated(item.Expr) || combined(item.Expr) != 0 {
			continue
		}
		if why := c.compute(i, item.Expr); why != "" {
			return why
		}
	}
	return ""
}

// compute makes an expression the value of a column of a combined group, in which one of
// the shards' values is.
func (c *combiner) compute(at int, e sqlparse.Expr) string {
	made, kind, why := c.number(e)
	c.of.group.made[at], c.of.group.values[at].Type.Kind = made, kind
	return why
}

// ambiguous reports whether a name is that of a column and the alias of something else,
// of which dialects take the one or the other in GROUP BY and HAVING.
func (c *combiner) ambiguous(e sqlparse.Expr) bool {
	name, ok := bare(e).(*sqlparse.Column)
	if !ok || len(name.Name.Parts) > 1 {
		return false
	}
	s := c.scope
	own, known := s.column(name)
	for _, item := range c.core.Items {
		if item.Expr == nil || !strings.EqualFold(item.Alias.Name, name.Name.Parts[0].Name) {
			continue
		}
		if aliased, ok := s.column(item.Expr); known && (!ok || aliased != own) {
			return true
		}
	}
	return false
}

// text returns an expression as it is written, without parentheses around it.
func (c *combiner) text(e sqlparse.Expr) string { return bare(e).Bytes().Of(c.statement.Text) }

// hide selects an expression besides, and returns its place among the hidden ones.
func (c *combiner) hide(text string) int {
	list := c.of.hidden[c.core.ItemsEnd]
	c.of.hidden[c.core.ItemsEnd] = append(list, hiddenAs(text, len(list)))
	return len(list)
}

func hiddenAs(text string, at int) string { return text + " AS shardid_" + strconv.Itoa(at+1) }

// groupItem takes in a selected column: an aggregate, or one of GROUP BY.
func (c *combiner) groupItem(item *sqlparse.Item, at int) string {
	if aggregated(item.Expr) {
		a, v, why := merge.Aggregate{Function: merge.First, Column: at}, Value{}, ""
		if combined(item.Expr) != 0 {
			a, v, why = c.partial(item.Expr, at)
		}
		c.of.group.add(a, v)
		return why
	}
	key, ok := c.by(item.Expr)
	if !ok {
		return c.text(item.Expr) + " is neither an aggregate nor in GROUP BY"
	}
	c.of.group.add(merge.Aggregate{Function: merge.First, Column: at}, c.of.group.keys[key])
	return ""
}

func (g *grouping) add(a merge.Aggregate, v Value) int {
	g.columns, g.values = append(g.columns, a), append(g.values, v)
	return len(g.columns) - 1
}

// told returns how the values of an expression are told apart by GROUP BY.
func (c *combiner) told(e sqlparse.Expr) (Value, string) {
	v, why := c.value(e)
	if _, column := c.columnOf(e); why == "" && !column && v.Type.Kind == merge.Decimal {
		return v, "MariaDB may take NULL for 0 in GROUP BY of decimals that are computed; group by a column"
	}
	return v.untruncated(), why
}

// key returns what a shard selects to tell groups apart: of what is no column the
// least, as servers take few expressions for functions of a group, and as equal texts
// have several weights, without their padding.
func (c *combiner) key(v Value, e sqlparse.Expr) string {
	selected := v.selected(c.text(e))
	if _, ok := c.scope.column(e); ok && v.As == Plain {
		return selected
	}
	return "MIN(" + selected + ")"
}

// by returns which of GROUP BY an expression is: the same column, or the same words.
func (c *combiner) by(e sqlparse.Expr) (int, bool) {
	s := c.scope
	wanted, isColumn := s.column(e)
	for i, by := range c.core.GroupBy {
		by, why := c.ordered(by)
		if why != "" {
			continue
		}
		if found, ok := s.column(by); ok && isColumn && found == wanted || c.text(by) == c.text(e) {
			return i, true
		}
	}
	return 0, false
}

// column returns the place of an expression among the columns of a combined group:
// one that is selected, or one that is added.
func (c *combiner) column(e sqlparse.Expr) (at int, why string) {
	e = bare(e)
	if c.ambiguous(e) {
		return 0, c.text(e) + " is a column and the alias of something else; give it another alias"
	}
	g := c.of.group
	for i, item := range c.core.Items {
		name, ok := e.(*sqlparse.Column)
		if ok && len(name.Name.Parts) == 1 && strings.EqualFold(item.Alias.Name, name.Name.Parts[0].Name) || c.text(item.Expr) == c.text(e) {
			if v := g.values[i]; v.As == Plain && v.Type.Collation == merge.Binary && (v.Type.Kind != merge.Stored || aggregated(item.Expr)) {
				return i, ""
			}
			e = item.Expr // what is selected is not what compares, or the driver may make a time of it
		}
	}
	if aggregated(e) {
		if slices.ContainsFunc(c.statement.Params, func(p *sqlparse.Param) bool { return inside(p.Span, e.Bytes()) }) {
			return 0, "parameters in " + c.text(e) + " are not combined; select it"
		}
		if combined(e) == 0 {
			at := g.add(merge.Aggregate{Function: merge.First, Column: c.beside(c.text(e))}, Value{})
			return at, c.compute(at, e)
		}
		if why := c.member(e.(*sqlparse.Call)); why != "" { //nolint:forcetypeassert // it is an aggregate
			return 0, why
		}
		a, v, why := c.partial(e, -1)
		if why != "" {
			return 0, why
		}
		return g.add(a, v), ""
	}
	key, ok := c.by(e)
	if !ok {
		return 0, c.text(e) + " is neither selected nor an aggregate nor in GROUP BY"
	}
	return g.add(merge.Aggregate{Function: merge.First, Column: len(c.core.Items) + key}, g.keys[key]), ""
}

func inside(inner, outer sqlparse.Span) bool { return inner.From >= outer.From && inner.To <= outer.To }

// sortGroups takes in ORDER BY and LIMIT of groups.
func (c *combiner) sortGroups() string {
	c.of.limit = c.query.Limit
	if why := c.countable(c.of.limit); why != "" {
		return why
	}
	for _, o := range c.query.OrderBy {
		e, why := c.ordered(o.Expr)
		if why != "" {
			e = o.Expr // an aggregate
		}
		at, why := c.column(e)
		if why != "" {
			return why
		}
		t := c.of.group.values[at].Type
		c.of.group.sort = append(c.of.group.sort, merge.Key{Column: at, Type: t, Desc: o.Descending, NullsFirst: nullsFirst(o)})
	}
	return ""
}

// nullsFirst reports whether NULLs come before all others: they are the least on
// MySQL, MariaDB and SQLite.
func nullsFirst(o sqlparse.Order) bool {
	if o.Nulls != sqlparse.NullsDefault {
		return o.Nulls == sqlparse.NullsFirst
	}
	return !o.Descending
}
