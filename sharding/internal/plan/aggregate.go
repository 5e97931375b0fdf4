// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

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
