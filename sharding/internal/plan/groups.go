// SPDX-License-Identifier: Apache-2.0

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
	Group                     // but for its Args; Keys are the first hidden columns
	by        []sqlparse.Expr // GROUP BY
	keys      []Value         // how these compare
	values    []Value         // how Columns compare
	params    []int           // the arguments of Made and Having
	split     []string        // what a shard groups by besides, for COUNT(DISTINCT)
	zero      bool            // there is COALESCE or IFNULL
	quotients int             // how many divisions are computed
}

// grouper makes a grouping.
type grouper struct{ *combiner }

// grouped takes in GROUP BY, HAVING, and the order of groups.
func (c grouper) grouped() {
	g := &grouping{Group: Group{Shown: len(c.core.Items), Made: map[int]merge.Expr{}, Dialect: c.dialect}}
	c.of.group = g
	if len(c.scope.windows) > 0 {
		c.refuse("window functions over groups are not combined" + addKey)
	}
	for _, e := range c.core.GroupBy {
		c.unambiguous(e)
		by := c.ordered(e)
		v := c.told(by)
		g.by, g.keys = append(g.by, by), append(g.keys, v)
		g.Keys = append(g.Keys, merge.Key{Column: g.Shown + c.hide(c.key(v, by), by), Type: v.Type})
	}
	for i, item := range c.core.Items {
		c.groupItem(item.Expr, i)
	}
	for i, item := range c.core.Items { // what is computed may need columns behind these
		if aggregated(item.Expr) && combined(item.Expr) == 0 {
			c.compute(i, item.Expr)
			c.of.edits = append(c.of.edits, sparing(item, item.Expr.Bytes().Of(c.statement.Text), c.dialect)...)
		}
	}
	c.having()
	c.sortGroups()
	c.regroup()
	if g.zero && len(g.split) > 0 && len(g.keys) == 0 { // of no rows the shards return none, and no 0.00
		c.refuse("COALESCE of aggregates beside COUNT(DISTINCT) is not combined without GROUP BY; select one of them")
	}
}

// regroup makes a shard group by what is counted with DISTINCT as well, and leaves HAVING and
// what follows to the combined groups, as it knows a part of each.
func (c grouper) regroup() {
	by, end, word := c.core.GroupBy, c.query.After, " GROUP BY "
	if len(by) > 0 {
		end, word = by[len(by)-1].Bytes().To, ", "
	}
	if split := c.of.group.split; len(split) > 0 {
		c.of.edits = append(c.of.edits, inserted(end, word+strings.Join(split, ", ")))
	}
	if c.core.Having != nil {
		c.of.edits = append(c.of.edits, edit{Span: sqlparse.Span{From: end, To: c.core.Having.Bytes().To}})
	}
	c.of.edits = append(c.of.edits, edit{Span: sqlparse.Span{From: c.query.After, To: c.query.To}})
}

// compute makes an expression the value of a column of a combined group, in which one of
// the shards' values is.
func (c grouper) compute(at int, e sqlparse.Expr) {
	made, kind := calculator{c}.number(e)
	c.of.group.Made[at], c.of.group.values[at].Type.Kind = made, kind
}

// spared returns an expression as a shard computes it for the type of its values, as they
// are computed of others: not at all on PostgreSQL, which would refuse to divide by a sum
// of its own that is 0 where that of all shards is not.
func spared(text string, e sqlparse.Expr, d merge.Dialect) string {
	if d.Engine == merge.PostgreSQL && divides(e) {
		return "CASE WHEN FALSE THEN " + text + " END"
	}
	return text
}

// sparing puts that in the place of what is selected. Its column keeps the name that the
// database would give it.
func sparing(item sqlparse.Item, text string, d merge.Dialect) []edit {
	e := sqlparse.Span{From: item.Expr.Bytes().From, To: item.Expr.Bytes().To}
	with := spared(text, item.Expr, d)
	if with == text {
		return nil
	}
	all := []edit{{Span: e, with: with}}
	if item.Alias.Name == "" {
		name := "?column?"
		if call, ok := bare(item.Expr).(*sqlparse.Call); ok {
			name = nameOf(call)
		}
		all = append(all, inserted(item.To, ` AS "`+name+`"`))
	}
	return all
}

// divides reports whether there is a quotient in an expression.
func divides(e sqlparse.Expr) bool {
	return sqlparse.As(e, sqlparse.Div) != nil || slices.ContainsFunc(sqlparse.Operands(e), divides)
}

// hide selects besides what is made of an expression, with its parameters, and returns its
// place among the hidden ones.
func (c *combiner) hide(text string, of sqlparse.Expr) int {
	at := c.core.ItemsEnd
	params := parameters{c.statement}
	switch {
	case of == nil || !c.hasParams(of) || params.named():
	default:
		for range strings.Count(text, c.text(of)) {
			for _, p := range c.statement.Params {
				if inside(p.Span, bare(of).Bytes()) {
					c.copied[at] = append(c.copied[at], p.Index)
				}
			}
		}
	}
	list := c.hidden[at]
	c.hidden[at] = append(list, hiddenAs(text, len(list)))
	return len(list)
}

func hiddenAs(text string, at int) string { return text + " AS shardid_" + strconv.Itoa(at+1) }

// groupItem takes in a selected column: an aggregate, or one of GROUP BY.
func (c grouper) groupItem(e sqlparse.Expr, at int) {
	a, v := merge.Aggregate{Function: merge.First, Column: at}, Value{}
	switch key := c.by(e); {
	case combined(e) != 0:
		a, v = c.partial(e, at)
	case aggregated(e): // computed
	case key >= 0:
		v = c.of.group.keys[key]
	case !computed(e): // the same on every shard
	default:
		c.refuse(c.text(e) + " is neither an aggregate nor in GROUP BY")
	}
	c.of.group.add(a, v)
}

func (g *grouping) add(a merge.Aggregate, v Value) int {
	g.Columns, g.values = append(g.Columns, a), append(g.values, v)
	return len(g.Columns) - 1
}

// told returns how the values of an expression are told apart by GROUP BY.
func (c *combiner) told(e sqlparse.Expr) Value {
	v := c.value(e)
	if _, column := c.columnOf(e); !column && v.Type.Kind == merge.Decimal && c.dialect.Engine == merge.MySQL {
		c.refuse("MariaDB may take NULL for 0 in GROUP BY of decimals that are computed; group by a column")
	}
	return v.untruncated()
}

// key returns what a shard selects to tell groups apart: of what is no column the
// least, as servers take few expressions for functions of a group, and as equal texts
// have several weights, without their padding.
func (c *combiner) key(v Value, e sqlparse.Expr) string {
	selected := v.selected(c.text(e))
	if _, ok := c.scope.column(e); ok && v.As == Plain || aggregated(e) || c.dialect.Engine == merge.PostgreSQL { // which knows an expression of GROUP BY again
		return selected
	}
	return "MIN(" + selected + ")"
}

// by returns which of GROUP BY an expression is, the same column or the same words, -1 for
// none.
func (c grouper) by(e sqlparse.Expr) int {
	wanted, isColumn := c.scope.column(e)
	return slices.IndexFunc(c.of.group.by, func(by sqlparse.Expr) bool {
		found, ok := c.scope.column(by)
		return ok && isColumn && found == wanted || c.text(by) == c.text(e)
	})
}

// column returns the place of an expression among the columns of a combined group:
// one that is selected, or one that is added.
func (c grouper) column(e sqlparse.Expr) int {
	e = bare(e)
	c.unambiguous(e)
	g := c.of.group
	for i, item := range c.core.Items {
		if isAlias(item, e) || c.text(item.Expr) == c.text(e) {
			if v := g.values[i]; v.As == Plain && v.Type.Collation == merge.Binary && (v.Type.Kind != merge.Stored || aggregated(item.Expr)) {
				return i
			}
			e = item.Expr // what is selected is not what compares, or the driver may make a time of it
		}
	}
	switch key := c.by(e); {
	case aggregated(e) && c.hasParams(e):
		c.refuse("parameters in " + c.text(e) + " are not combined; select it")
	case combined(e) != 0:
		c.member(e)
		return g.add(c.partial(e, -1))
	case aggregated(e):
		at := g.add(merge.Aggregate{Function: merge.First, Column: c.beside(spared(c.text(e), e, c.dialect))}, Value{})
		c.compute(at, e)
		return at
	case key >= 0:
		return g.add(merge.Aggregate{Function: merge.First, Column: len(c.core.Items) + key}, g.keys[key])
	default:
		c.refuse(c.text(e) + " is neither selected nor an aggregate nor in GROUP BY")
	}
	return 0
}

func inside(inner, outer sqlparse.Span) bool { return inner.From >= outer.From && inner.To <= outer.To }

// sortGroups takes in ORDER BY and LIMIT of groups.
func (c grouper) sortGroups() {
	c.countable()
	for _, o := range c.query.OrderBy {
		by := c.ordered(o.Expr)
		at := c.column(by)
		t := c.inOrder(by, c.of.group.values[at]).Type
		c.of.group.Sort = append(c.of.group.Sort, merge.Key{Column: at, Type: t, Desc: o.Descending, NullsFirst: nullsFirst(o, c.dialect)})
	}
}

// nullsFirst reports whether NULLs come before all others: they are the least on
// MySQL, MariaDB and SQLite, and the greatest on PostgreSQL.
func nullsFirst(o sqlparse.Order, d merge.Dialect) bool {
	if o.Nulls != sqlparse.NullsDefault {
		return o.Nulls == sqlparse.NullsFirst
	}
	return o.Descending == (d.Engine == merge.PostgreSQL)
}

// aggregates are the functions of groups, and how their partial results are combined. An
// average is computed of a sum and a count.
var aggregates = map[string]merge.Function{"count": merge.Count, "sum": merge.Sum, "avg": average, "min": merge.Min, "max": merge.Max}

const average merge.Function = 100

func nameOf(call *sqlparse.Call) string { return strings.ToLower(call.Name.Parts[0].Name) }

// aggregated reports whether an expression has an aggregate in it. Those of
// subqueries are their own.
func aggregated(e sqlparse.Expr) bool {
	if call, ok := e.(*sqlparse.Call); ok && aggregates[nameOf(call)] != 0 && !call.Over {
		return len(call.Args) <= 1 || call.Distinct || call.Odd // MAX(a, b) of SQLite is none
	}
	return slices.ContainsFunc(sqlparse.Operands(e), aggregated)
}

// combined returns how the partial results of an expression are combined, if it is an
// aggregate by itself, else 0.
func combined(e sqlparse.Expr) merge.Function {
	call, ok := bare(e).(*sqlparse.Call)
	if !ok || aggregates[nameOf(call)] == average || !aggregated(call) {
		return 0
	}
	return aggregates[nameOf(call)]
}

// partial returns how the partial results of an aggregate are combined, and how the
// results compare. at is its place among the selected columns, or -1. What it needs
// besides is in hidden columns.
func (c grouper) partial(e sqlparse.Expr, at int) (merge.Aggregate, Value) {
	call := bare(e).(*sqlparse.Call) //nolint:forcetypeassert // it is an aggregate
	function := aggregates[nameOf(call)]
	switch {
	case call.Odd, call.Distinct && function != merge.Count, len(call.Args) > 1 && c.dialect.Engine != merge.MySQL, len(call.Args) == 0 && (call.Distinct || function != merge.Count):
		c.refuse(c.text(call) + " is not combined" + addKey)
		return merge.Aggregate{}, Value{}
	case call.Distinct:
		return c.counted(call, at)
	case function == merge.Count:
		return merge.Aggregate{Function: merge.Count, Column: c.place(e, at)}, whole
	case function == merge.Sum:
		v := c.summand(call.Args[0])
		return merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.place(e, at)}, v
	}
	return c.extreme(call, function, at)
}

// place returns the column of the shards' rows that has an expression: the selected
// one, or a hidden one.
func (c grouper) place(e sqlparse.Expr, at int) int {
	if at >= 0 {
		return at
	}
	return c.beside(c.text(e))
}

// beside selects an expression besides, once, and returns its column.
func (c grouper) beside(text string) int {
	for i, hidden := range c.hidden[c.core.ItemsEnd] {
		if hidden == hiddenAs(text, i) {
			return len(c.core.Items) + i
		}
	}
	return len(c.core.Items) + c.hide(text, nil)
}

func (c grouper) extreme(call *sqlparse.Call, function merge.Function, at int) (merge.Aggregate, Value) {
	v := c.least(call.Args[0]).untruncated()
	a := merge.Aggregate{Function: function, By: merge.Key{Type: v.Type}}
	if v.As == Plain {
		a.Column = c.place(call, at)
		a.By.Column = a.Column
		return a, v
	}
	a.By.Column = c.beside(v.selected(c.text(call)))
	if a.Column = at; at < 0 {
		a.Column = a.By.Column
	}
	return a, v
}

// counted counts distinct values: of the sharding key those of each shard, as no
// two shards have the same; of others the shards return each value once, by grouping
// by it as well.
func (c grouper) counted(call *sqlparse.Call, at int) (merge.Aggregate, Value) {
	a, g := merge.Aggregate{Function: merge.Count}, c.of.group
	if col, ok := c.scope.column(call.Args[0]); ok && len(call.Args) == 1 && apart(col) && c.distincts() == 1 {
		a.Column = c.place(call, at)
		return a, whole
	}
	for _, e := range call.Args {
		c.unambiguous(e)
		told := c.told(e)
		a.Distinct = append(a.Distinct, merge.Key{Column: c.beside(c.key(told, e)), Type: told.Type})
		if !slices.Contains(g.split, c.text(e)) {
			g.split = append(g.split, c.text(e))
		}
	}
	return a, whole
}

// apart reports whether equal values of a column are on one shard.
func apart(col column) bool {
	l := col.of.lead(col.name)
	return l != nil && l.always && (l.holds == Integers || l.holds == Bytes)
}

// distincts returns how many aggregates there are with DISTINCT.
func (c grouper) distincts() (n int) {
	var count func(e sqlparse.Expr)
	count = func(e sqlparse.Expr) {
		if call, ok := e.(*sqlparse.Call); ok && call.Distinct {
			n++
		}
		for _, operand := range sqlparse.Operands(e) {
			count(operand)
		}
	}
	for _, item := range c.core.Items {
		count(item.Expr)
	}
	count(c.core.Having)
	for _, o := range c.query.OrderBy {
		count(o.Expr)
	}
	return n
}
