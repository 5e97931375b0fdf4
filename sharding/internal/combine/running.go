// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Running is the column of a window function over the rows of all shards, in the order in which they are returned.
type Running struct {
	merge.Window     // its Column is a place, as those of Totals; Of is the index of Summed; the Order is set when rows are combined
	Keys         int // the number of keys of Order that are its order: the first ones
}

// Queries of the best rows of all select their ranks, RANK() OVER (ORDER BY score DESC), and those of an account
// select its balance, SUM(amount) OVER (ORDER BY id). Rows that are returned in this order are numbered and added one after another; those that
// LIMIT leaves out are behind the others, and those before OFFSET are read.

// runningOf returns the window function if an expression is such a rank or sum, otherwise nil.
func runningOf(c *combiner, e sqlparse.Expr) *sqlparse.Call {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	if !ok || !ofAllRows(call) || call.Odd || call.Distinct || len(call.Window) == 0 || c.hasParams(call) || !isColumnOfRows(c, call) || analysis.SortsGroups(c.query.OrderBy) {
		return nil
	}
	order, all := call.Order, ordersOfRows(c)
	if !isWindowCombined(c, call) || len(order) > len(all) || !ranks(call) && !(addsUp(call) && tellsApart(c.scope, order)) || call.Function() == "row_number" && len(order) < len(all) { // which row of two is the first one is unknown then
		return nil
	}
	for i, o := range order {
		if b := all[i]; o.Descending != b.Descending || b.Nulls != sqlparse.NullsDefault || !isSame(c, o.Expr, c.ordered(b.Expr)) {
			return nil
		}
	}
	return call
}

// ofAllRows reports whether a call is a window function of all rows together.
func ofAllRows(call *sqlparse.Call) bool {
	return call.Over && windowFunctions[call.Function()] != 0 && call.Partition == 0
}

func ranks(call *sqlparse.Call) bool {
	return windowFunctions[call.Function()] >= merge.RowNumber && len(call.Args) == 0
}

// addsUp reports whether a window function is SUM(x), COUNT(x) or COUNT(*).
func addsUp(call *sqlparse.Call) bool {
	return windowFunctions[call.Function()] < merge.RowNumber && (call.Star || len(call.Args) == 1 && computed(call.Args[0]))
}

// isColumnOfRows reports whether a call is a selected column of the only SELECT, whose rows are neither distinct nor groups.
func isColumnOfRows(c *combiner, call *sqlparse.Call) bool {
	return len(c.cores) == 1 && !c.core.Distinct && len(c.core.DistinctOn) == 0 && !analysis.IsGrouped(c.core) &&
		slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return sqlparse.Bare(i.Expr) == call })
}

// isWindowCombined reports whether the partition and the order of a window function are combined. A name in them is no alias.
func isWindowCombined(c *combiner, call *sqlparse.Call) bool {
	isNamed := func(by sqlparse.Expr) bool { return !computed(by) || c.isOnlyAlias(by) || c.ambiguous(by) }
	hasNulls := func(o sqlparse.Order) bool { return o.Nulls != sqlparse.NullsDefault }
	return !call.Framed && !slices.ContainsFunc(call.Window, isNamed) && !slices.ContainsFunc(call.Order, hasNulls)
}

// ordersOfRows returns ORDER BY without counts of all rows, and with the order of a rank in the place of the rank: rows that
// are sorted by their ranks are sorted so on each shard, too. No two rows have one ROW_NUMBER.
func ordersOfRows(c *combiner) (all []sqlparse.Order) {
	for _, o := range orders(c.query) {
		e := c.ordered(o.Expr)
		call, ok := sqlparse.Bare(e).(*sqlparse.Call)
		isRank := ok && ofAllRows(call) && ranks(call) && !o.Descending && o.Nulls == sqlparse.NullsDefault && isWindowCombined(c, call) && len(call.Order) > 0
		switch {
		case isRank && call.Function() == "row_number":
			return append(all, call.Order...)
		case isRank:
			all = append(all, call.Order...)
		case !isTotal(c, e):
			all = append(all, o)
		}
	}
	return all
}

// takeRunning records the selected ranks and sums, and selects what is added.
func takeRunning(c *combiner) {
	for i, item := range c.core.Items {
		call := runningOf(c, item.Expr)
		if call == nil {
			continue
		}
		r := Running{Window: merge.Window{Column: placeOf(c, i), Function: windowFunctions[call.Function()], Of: -1}, Keys: len(call.Window)}
		if len(call.Args) == 1 {
			r.Of = c.combination.Summed
			c.combination.Summed++
			c.hide(c.text(call.Args[0]), call.Args[0])
		}
		if r.Function == merge.Sum {
			if r.Kind = c.summand(call.Args[0]).Type.Kind; r.Kind != merge.Integer && r.Kind != merge.Decimal && r.Kind != merge.Stored {
				c.refuse("a running sum of floats depends on the order of the additions" + AddKey)
			}
		}
		c.combination.Running = append(c.combination.Running, r)
	}
}
