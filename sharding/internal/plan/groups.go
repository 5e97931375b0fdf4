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
	keys    []Value           // of the hidden columns that tell groups apart
	columns []merge.Aggregate // of a combined group: what is selected, then what is not
	values  []Value           // how these columns compare
	shown   int               // how many of them are selected
	split   []string          // what a shard groups by besides, for COUNT(DISTINCT)
	zero    bool              // there is a COALESCE(SUM(x), 0)
	having  condition         // nil without HAVING
	sort    []merge.Key       // of columns
}

// condition makes an expression with the arguments of a statement.
type condition func(args []any) (merge.Expr, error)

// grouped takes in GROUP BY, HAVING, and the order of groups.
func (c *combiner) grouped() string {
	if c.stars() {
		return "GROUP BY needs a select list without *" + addKey
	}
	g := &grouping{shown: len(c.core.Items)}
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
	if why := c.having(); why != "" {
		return why
	}
	if why := c.sortGroups(); why != "" {
		return why
	}
	if g.zero && len(g.split) > 0 && len(g.keys) == 0 { // of no rows the shards return none, and no 0
		return "COALESCE(SUM(x), 0) beside COUNT(DISTINCT) without GROUP BY is not combined; select one of them"
	}
	return ""
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
	c.of.hidden[c.core.ItemsEnd] = append(list, text+" AS shardid_"+strconv.Itoa(len(list)+1))
	return len(list)
}

// groupItem takes in a selected column: an aggregate, or one of GROUP BY.
func (c *combiner) groupItem(item *sqlparse.Item, at int) string {
	if aggregated(item.Expr) {
		a, v, why := c.partial(item.Expr, at)
		if why == "" {
			c.of.group.add(a, v)
		}
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
	if call, ok := e.(*sqlparse.Call); ok && aggregated(call) {
		if slices.ContainsFunc(c.statement.Params, func(p *sqlparse.Param) bool { return inside(p.Span, e.Bytes()) }) {
			return 0, "parameters in " + c.text(e) + " are not combined; select it"
		}
		if why := c.member(call); why != "" {
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

// having takes in HAVING: comparisons of columns and aggregates with numbers.
func (c *combiner) having() string {
	if c.core.Having == nil {
		return ""
	}
	if len(c.core.GroupBy) == 0 {
		return "HAVING without GROUP BY is not combined" + addKey
	}
	made, why := c.condition(c.core.Having)
	c.of.group.having = made
	return why
}

func (c *combiner) condition(e sqlparse.Expr) (condition, string) {
	switch e := bare(e).(type) {
	case *sqlparse.Operation:
		if e.Op == sqlparse.And || e.Op == sqlparse.Or {
			return c.logic(e)
		}
	case *sqlparse.Not:
		of, why := c.condition(e.X)
		return func(args []any) (merge.Expr, error) {
			x, err := of(args)
			return merge.Not(x), err
		}, why
	case *sqlparse.Compare:
		return c.comparison(e)
	}
	return nil, "in HAVING only comparisons with numbers are combined" + addKey
}

func (c *combiner) logic(e *sqlparse.Operation) (condition, string) {
	parts := make([]condition, len(e.Operands))
	for i, operand := range e.Operands {
		var why string
		if parts[i], why = c.condition(operand); why != "" {
			return nil, why
		}
	}
	return func(args []any) (merge.Expr, error) {
		all := make([]merge.Expr, len(parts))
		for i, part := range parts {
			var err error
			if all[i], err = part(args); err != nil {
				return merge.Expr{}, err
			}
		}
		if e.Op == sqlparse.And {
			return merge.And(all...), nil
		}
		return merge.Or(all...), nil
	}, ""
}

var comparisons = map[sqlparse.Comparison]string{
	sqlparse.Equal: "=", sqlparse.NotEqual: "<>", sqlparse.Less: "<", sqlparse.LessEqual: "<=", sqlparse.Greater: ">", sqlparse.GreaterEqual: ">=",
}

func (c *combiner) comparison(e *sqlparse.Compare) (condition, string) {
	left, right, op := e.Left, e.Right, e.Op
	if _, first := constant(left); first {
		left, right, op = right, left, mirrored(op)
	}
	v, ok := constant(right)
	word := comparisons[op]
	if !ok || word == "" {
		return nil, "in HAVING only comparisons with numbers are combined" + addKey
	}
	if v.param >= 0 && !c.plainParams() {
		return nil, "numbered and named parameters are not combined with HAVING; write ? for each"
	}
	at, why := c.column(left)
	if why != "" {
		return nil, why
	}
	t, d := c.of.group.values[at].Type, c.dialect
	if c.of.group.columns[at].Function == merge.Avg && d.Engine == merge.MySQL && !d.Division.Rounds {
		return nil, "HAVING compares an AVG with more digits than it shows on MariaDB; compare the SUM with a multiple of the COUNT" + addKey
	}
	switch t.Kind {
	case merge.Integer, merge.Decimal, merge.Float, merge.Stored:
	default:
		return nil, "in HAVING only comparisons with numbers are combined; put the condition into WHERE if it is about a column of GROUP BY"
	}
	return func(args []any) (merge.Expr, error) {
		n, err := numeric(v.value(args), t)
		return merge.Comparison(d, word, merge.Column(at, t), n), err
	}, ""
}
