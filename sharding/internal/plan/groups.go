// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// grouping says how the groups of several shards are combined into those of one table. Each shard
// returns its own groups, without HAVING, ORDER BY and LIMIT. In addition to the selected columns
// it returns the keys of the groups and the aggregates of HAVING and ORDER BY.
type grouping struct {
	Group                     // without its Args; Keys are the first hidden columns
	by        []sqlparse.Expr // GROUP BY
	keys      []Value         // how the expressions of by compare
	values    []Value         // how Columns compare
	params    []int           // the arguments of Made and Having
	kept      []string        // conditions of HAVING that a shard applies
	split     []string        // what a shard also groups by, for COUNT(DISTINCT)
	zero      bool            // there is COALESCE or IFNULL
	quotients int             // the number of computed divisions
}

// grouper creates a grouping.
type grouper struct{ *combiner }

// onShards reports whether each group is on one shard, which returns it as one table would.
func (c grouper) onShards() bool {
	if !c.rooted(c.scope) || !slices.ContainsFunc(c.core.GroupBy, func(e sqlparse.Expr) bool { return c.keyed(c.scope, e) }) {
		return false
	}
	for _, e := range c.core.GroupBy {
		c.unambiguous(e)
	}
	return true
}

// grouped records GROUP BY, HAVING, and the order of groups.
func (c grouper) grouped() {
	g := &grouping{Group: Group{Shown: len(c.core.Items), Made: map[int]merge.Expr{}, Dialect: c.options.Merge}}
	c.of.group = g
	if len(c.scope.windows) > 0 {
		c.refuse("window functions over groups are not combined" + addKey)
	}
	for _, e := range c.core.GroupBy {
		c.unambiguous(e)
		by := c.ordered(e)
		v := c.groupValue(by)
		g.by, g.keys = append(g.by, by), append(g.keys, v)
		g.Keys = append(g.Keys, merge.Key{Column: g.Shown + c.hide(c.key(v, by), by), Type: v.Type})
	}
	for i, item := range c.core.Items {
		c.groupItem(item.Expr, i)
	}
	for i, item := range c.core.Items { // computed columns may need further columns
		if aggregated(item.Expr) && combined(item.Expr) == 0 {
			c.compute(i, item.Expr)
			c.typeOnlyItem(item)
		}
	}
	c.having()
	c.sortGroups()
	c.regroup()
	if g.zero && len(g.split) > 0 && len(g.keys) == 0 { // without rows the shards return no group, and so no 0.00
		c.refuse("COALESCE of aggregates with COUNT(DISTINCT) is not combined without GROUP BY; select only one of them")
	}
}

// regroup makes a shard also group by the expressions of COUNT(DISTINCT). It removes HAVING, except
// conditions about columns of GROUP BY, and the following clauses except locks. They are applied to the
// combined groups, because a shard has only a part of each group.
func (c grouper) regroup() {
	by, end, word := c.core.GroupBy, c.query.After, " GROUP BY "
	switch {
	case len(by) > 0:
		end, word = by[len(by)-1].Bytes().To, ", "
	case c.core.Having != nil:
		end = c.core.HavingAt
	}
	if split := c.of.group.split; len(split) > 0 {
		c.of.edits = append(c.of.edits, inserted(end, word+strings.Join(split, ", ")))
	}
	if c.core.Having != nil {
		kept := ""
		if list := c.of.group.kept; len(list) > 0 {
			kept = " HAVING " + strings.Join(list, " AND ")
		}
		c.of.edits = append(c.of.edits, edit{Span: sqlparse.Span{From: end, To: c.core.Having.Bytes().To}, with: kept})
	}
	behind := edit{Span: sqlparse.Span{From: c.query.After, To: c.query.To}}
	for _, l := range c.query.Locks {
		behind.with += " " + l.Span.Of(c.statement.Text)
	}
	c.of.edits = append(c.of.edits, behind)
}

// compute replaces the value of a combined group's column, which has one of the shards' values, by
// an expression.
func (c grouper) compute(at int, e sqlparse.Expr) {
	made, kind := calculator{c}.number(e)
	c.of.group.Made[at], c.of.group.values[at].Type.Kind = made, kind
}

// typeOnly returns the expression that a shard computes only for the type of its values, because the
// values are computed from other columns. On PostgreSQL the shard does not compute it at all,
// because its own divisor may be 0 although the combined one is not.
func (c grouper) typeOnly(e sqlparse.Expr) string {
	text := e.Bytes().Of(c.statement.Text)
	if c.postgres && sqlparse.Any(e, func(e sqlparse.Expr) bool { return sqlparse.As(e, sqlparse.Div) != nil }) {
		return "CASE WHEN FALSE THEN " + text + " END"
	}
	return text
}

// typeOnlyItem replaces a selected expression by its typeOnly form. The column keeps its name.
func (c grouper) typeOnlyItem(item sqlparse.Item) {
	e, with := item.Expr.Bytes(), c.typeOnly(item.Expr)
	if with == e.Of(c.statement.Text) {
		return
	}
	c.of.edits = append(c.of.edits, edit{Span: e, with: with, args: parameters{c.statement}.in(e)})
	if item.Alias.Name == "" {
		c.of.edits = append(c.of.edits, inserted(item.To, ` AS "`+c.columnName(item.Expr)+`"`))
	}
}

// columnName returns the name that PostgreSQL gives the column of an expression without an alias: that of its function, or
// of the type of a cast.
func (c grouper) columnName(e sqlparse.Expr) string {
	inner := bare(e)
	for cast := sqlparse.As(inner, sqlparse.Cast); cast != nil; cast = sqlparse.As(inner, sqlparse.Cast) {
		inner = bare(cast.Operands[0])
	}
	if call, ok := inner.(*sqlparse.Call); ok {
		return nameOf(call)
	}
	switch cast := sqlparse.As(bare(e), sqlparse.Cast); {
	case cast == nil && sqlparse.As(inner, sqlparse.Case) != nil:
		return "case"
	case cast == nil:
		return "?column?"
	default:
		if size := wholeTypes[calculator{c}.typeOf(cast)]; size > 0 {
			return "int" + strconv.Itoa(size/8)
		}
		return "float8"
	}
}

// hide selects an additional expression that is made from another one, with its parameters, and
// returns its index among the hidden columns.
func (c *combiner) hide(text string, of sqlparse.Expr) int {
	more := c.hidden[c.core.ItemsEnd]
	if of != nil && !(parameters{c.statement}).named() {
		more.args = append(more.args, slices.Repeat(parameters{c.statement}.in(bare(of).Bytes()), strings.Count(text, c.text(of)))...)
	}
	more.texts = append(more.texts, hiddenAs(text, len(more.texts)))
	c.hidden[c.core.ItemsEnd] = more
	return len(more.texts) - 1
}

func hiddenAs(text string, at int) string { return text + " AS shardid_" + strconv.Itoa(at+1) }

// groupItem records a selected column: an aggregate, or an expression of GROUP BY.
func (c grouper) groupItem(e sqlparse.Expr, at int) {
	a, v := merge.Aggregate{Function: merge.First, Column: at}, Value{}
	switch key := c.by(e); {
	case combined(e) != 0:
		a, v = c.partial(e, at)
	case aggregated(e): // computed from aggregates
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

// groupValue returns how GROUP BY distinguishes the values of an expression.
func (c *combiner) groupValue(e sqlparse.Expr) Value {
	v := c.value(e)
	if _, column := c.columnOf(e); !column && v.Type.Kind == merge.Decimal && c.mysql && !c.options.Merge.Division.Rounds {
		c.refuse("MariaDB may treat NULL as 0 in GROUP BY of computed decimals; group by a column, or by whole numbers: CAST(x AS SIGNED)")
	}
	return v.untruncated()
}

// key returns the expression that a shard selects to distinguish groups. For anything but a column
// it is the minimum, because servers recognise few expressions as functions of a group, and because
// equal texts have several weights without their padding. SQLite accepts any expression, and MIN
// would make it choose another row for the columns that are neither aggregates nor in GROUP BY.
func (c *combiner) key(v Value, e sqlparse.Expr) string {
	selected := v.selected(c.text(e))
	_, isColumn := c.scope.column(e)
	recognized := c.postgres && (isColumn || v.As != Trimmed) // PostgreSQL recognises an expression of GROUP BY, but not x COLLATE "C" in a CAST
	if isColumn && v.As == Plain || aggregated(e) || windowed(e) || recognized || c.sqlite {
		return selected
	}
	return "MIN(" + selected + ")"
}

func windowed(e sqlparse.Expr) bool {
	return sqlparse.Any(e, func(e sqlparse.Expr) bool {
		call, ok := e.(*sqlparse.Call)
		return ok && call.Over
	})
}

// by returns the index in GROUP BY of an expression, by the same column or the same text, -1 for
// none.
func (c grouper) by(e sqlparse.Expr) int {
	wanted, isColumn := c.scope.column(e)
	return slices.IndexFunc(c.of.group.by, func(by sqlparse.Expr) bool {
		found, ok := c.scope.column(by)
		return ok && isColumn && found == wanted || c.text(by) == c.text(e)
	})
}

// column returns the index of an expression among the columns of a combined group: of a selected
// column, or of an added one.
func (c grouper) column(e sqlparse.Expr) int {
	e = bare(e)
	c.unambiguous(e)
	g := c.of.group
	for i, item := range c.core.Items {
		if isAlias(item, e) && !c.isSelected(e) || c.text(item.Expr) == c.text(e) {
			if v := g.values[i]; v.As == Plain && v.Type.Collation == merge.Binary && (v.Type.Kind != merge.Stored || aggregated(item.Expr)) {
				return i
			}
			e = bare(item.Expr) // the selected form is not compared, or the driver may convert it to a time
		}
	}
	switch key := c.by(e); {
	case aggregated(e) && c.hasParams(e):
		c.refuse("parameters in " + c.text(e) + " are not combined; select it")
	case combined(e) != 0:
		c.member(e)
		return g.add(c.partial(e, -1))
	case aggregated(e):
		at := g.add(merge.Aggregate{Function: merge.First, Column: c.selectHidden(c.typeOnly(e))}, Value{})
		c.compute(at, e)
		return at
	case key >= 0:
		return g.add(merge.Aggregate{Function: merge.First, Column: len(c.core.Items) + key}, g.keys[key])
	default:
		c.refuse(c.text(e) + " is neither selected nor an aggregate nor in GROUP BY")
	}
	return 0
}

// isSelected reports whether an expression is in the select list, where a name denotes no alias.
func (c grouper) isSelected(e sqlparse.Expr) bool {
	return slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return inside(e.Bytes(), i.Span) })
}

func inside(inner, outer sqlparse.Span) bool { return inner.From >= outer.From && inner.To <= outer.To }

// sortGroups records ORDER BY and LIMIT of groups.
func (c grouper) sortGroups() {
	c.countable()
	for _, o := range orders(c.query) {
		by := c.ordered(o.Expr)
		at := c.column(by)
		t := c.inOrder(by, c.of.group.values[at]).Type
		c.of.group.Sort = append(c.of.group.Sort, merge.Key{Column: at, Type: t, Desc: o.Descending, NullsFirst: c.nullsFirst(o)})
	}
}

// nullsFirst reports whether NULLs sort before all other values: they are the least on MySQL,
// MariaDB and SQLite, and the greatest on PostgreSQL.
func (c *comparer) nullsFirst(o sqlparse.Order) bool {
	if o.Nulls != sqlparse.NullsDefault {
		return o.Nulls == sqlparse.NullsFirst
	}
	return o.Descending == c.postgres
}

// aggregates maps the aggregate functions to the combination of their partial results. An average
// is computed from a sum and a count. Those of onlyShards are computed by a shard that has all rows
// of a group.
var aggregates = combinations()

func combinations() map[string]merge.Function {
	all := map[string]merge.Function{"count": merge.Count, "sum": merge.Sum, "avg": average, "min": merge.Min, "max": merge.Max, "any_value": merge.First, "bool_and": merge.Min, "every": merge.Min, "bool_or": merge.Max}
	for name := range words("group_concat json_arrayagg json_objectagg std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor " +
		"string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg percentile_cont percentile_disc corr covar_pop covar_samp " +
		"total median json_group_array json_group_object jsonb_group_array jsonb_group_object") {
		all[name] = onlyShards
	}
	return all
}

// Functions of this package alone.
const (
	average    merge.Function = 100
	onlyShards merge.Function = 101
)

func isAverage(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && aggregates[nameOf(call)] == average
}

func nameOf(call *sqlparse.Call) string { return strings.ToLower(call.Name.Parts[0].Name) }

// aggregated reports whether an expression contains an aggregate. Aggregates in subqueries do not
// count.
func aggregated(e sqlparse.Expr) bool { return sqlparse.Any(e, isAggregate) }

func isAggregate(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && aggregates[nameOf(call)] != 0 && !call.Over && (len(call.Args) <= 1 || aggregates[nameOf(call)] == onlyShards || call.Distinct || call.Odd) // MAX(a, b) of SQLite is none
}

// aggregatedBy returns the arguments of an aggregate, without the condition of FILTER.
func aggregatedBy(call *sqlparse.Call) []sqlparse.Expr {
	if call.Filtered {
		return call.Args[:len(call.Args)-1]
	}
	return call.Args
}

// combined returns how the partial results of an expression are combined if it is an aggregate by
// itself, otherwise 0.
func combined(e sqlparse.Expr) merge.Function {
	if e = bare(e); !isAggregate(e) || isAverage(e) {
		return 0
	}
	return aggregates[nameOf(e.(*sqlparse.Call))] //nolint:forcetypeassert // it is an aggregate
}

// partial returns how the partial results of an aggregate are combined, and how the results
// compare. at is its index among the selected columns, or -1. Further values that it needs are in
// hidden columns.
func (c grouper) partial(e sqlparse.Expr, at int) (merge.Aggregate, Value) {
	call := bare(e).(*sqlparse.Call) //nolint:forcetypeassert // it is an aggregate
	function, args := aggregates[nameOf(call)], aggregatedBy(call)
	switch {
	case call.Odd && (!call.Filtered || call.Distinct), call.Distinct && function != merge.Count, len(args) > 1 && !c.mysql, len(args) == 0 && (call.Distinct || function != merge.Count):
		c.refuse(c.text(call) + " is not combined" + addKey)
		return merge.Aggregate{}, Value{}
	case call.Distinct:
		return c.counted(call, at)
	case function == merge.Count:
		return merge.Aggregate{Function: merge.Count, Column: c.shardColumn(e, at)}, whole
	case function == merge.First:
		return merge.Aggregate{Function: merge.First, Column: c.shardColumn(e, at)}, c.anyOf(call.Args[0])
	case function == merge.Sum:
		v := c.summand(call.Args[0])
		return merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.shardColumn(e, at)}, v
	}
	return c.extreme(call, function, at)
}

// anyOf returns how the values of ANY_VALUE compare.
func (c grouper) anyOf(e sqlparse.Expr) Value {
	probe := c.comparer
	probe.why = ""
	if v := probe.typed(e); probe.why == "" && (v.number() || v.clock()) {
		return v
	}
	return Value{Unordered: "it may be the value of any row"}
}

// shardColumn returns the column of the shards' rows that has an expression: the selected one, or a
// hidden one.
func (c grouper) shardColumn(e sqlparse.Expr, at int) int {
	if at >= 0 {
		return at
	}
	return c.selectHidden(c.text(e))
}

// selectHidden adds an expression to the selected ones, once, and returns its column.
func (c grouper) selectHidden(text string) int {
	for i, hidden := range c.hidden[c.core.ItemsEnd].texts {
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
		a.Column = c.shardColumn(call, at)
		a.By.Column = a.Column
		return a, v
	}
	a.By.Column = c.selectHidden(v.selected(c.text(call)))
	if a.Column = at; at < 0 {
		a.Column = a.By.Column
	}
	return a, v
}

// counted counts distinct values. Of the sharding key it adds the counts of the shards, because no
// two shards have the same value. Of other columns each shard returns each value once, by grouping
// by it as well.
func (c grouper) counted(call *sqlparse.Call, at int) (merge.Aggregate, Value) {
	a, g := merge.Aggregate{Function: merge.Count}, c.of.group
	if col, ok := c.scope.column(call.Args[0]); ok && len(call.Args) == 1 && apart(col) && c.distincts() == 1 {
		a.Column = c.shardColumn(call, at)
		return a, whole
	}
	for _, e := range call.Args {
		c.unambiguous(e)
		if !computed(e) { // GROUP BY takes a number for that of a column
			c.unknown(e)
		}
		told := c.groupValue(e)
		a.Distinct = append(a.Distinct, merge.Key{Column: c.selectHidden(c.key(told, e)), Type: told.Type})
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

// distincts returns the number of aggregates with DISTINCT.
func (c grouper) distincts() (n int) {
	all := []sqlparse.Expr{c.core.Having}
	for _, item := range c.core.Items {
		all = append(all, item.Expr)
	}
	for _, o := range c.query.OrderBy {
		all = append(all, o.Expr)
	}
	for _, e := range all {
		sqlparse.Any(e, func(e sqlparse.Expr) bool {
			if call, ok := e.(*sqlparse.Call); ok && call.Distinct {
				n++
			}
			return false
		})
	}
	return n
}
