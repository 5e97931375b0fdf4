// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Rank is a column that numbers the rows of all shards in the order in which they are returned.
type Rank struct {
	At       int            // its place, as those of Totals
	Function merge.Function // RowNumber, Rank or DenseRank
	Keys     int            // the number of keys of Order by which it numbers: the first ones
}

// Queries of the best rows of all select their ranks: RANK() OVER (ORDER BY score DESC). Rows that are returned in this order
// are numbered one after another; those that LIMIT leaves out are behind the others, and those before OFFSET are read.

// rankOf returns the window function if an expression is such a rank, otherwise nil.
func rankOf(c *combiner, e sqlparse.Expr) *sqlparse.Call {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	if !ok || !ranksAll(call) || len(call.Args) > 0 || call.Odd || len(call.Window) == 0 ||
		len(c.cores) != 1 || c.core.Distinct || len(c.core.DistinctOn) > 0 || analysis.IsGrouped(c.core) || analysis.SortsGroups(c.query.OrderBy) || c.hasParams(call) ||
		!slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return sqlparse.Bare(i.Expr) == call }) {
		return nil
	}
	order := orderIn(c, call)
	all := ordersOfRows(c)
	if order == nil || len(order) > len(all) || call.Function() == "row_number" && len(order) < len(all) { // which row of two is the first one is unknown then
		return nil
	}
	for i, o := range order {
		if b := all[i]; o.Descending != b.Descending || b.Nulls != sqlparse.NullsDefault || !isSame(c, o.Expr, c.ordered(b.Expr)) {
			return nil
		}
	}
	return call
}

// ranksAll reports whether a call is a rank among all rows.
func ranksAll(call *sqlparse.Call) bool {
	return call.Over && windowFunctions[call.Function()] >= merge.RowNumber && call.Partition == 0
}

// isSame reports whether two expressions are one column, or have one text.
func isSame(c *combiner, a, b sqlparse.Expr) bool {
	x, isColumn := c.scope.Column(a)
	y, both := c.scope.Column(b)
	return isColumn && both && x == y || c.text(a) == c.text(b)
}

// orderIn returns the order of a window function, nil if it is not combined. A name in it is no alias.
func orderIn(c *combiner, call *sqlparse.Call) (all []sqlparse.Order) {
	for i, by := range call.Window {
		behind := behindOrder.FindStringSubmatch(strings.TrimSpace(c.Statement.Text[by.Bytes().To:endOf(call, i)]))
		if behind == nil || !computed(by) || c.isOnlyAlias(by) || c.ambiguous(by) {
			return nil
		}
		all = append(all, sqlparse.Order{Expr: by, Descending: strings.EqualFold(behind[1], "desc")})
	}
	return all
}

// endOf returns where the text behind an expression in OVER (…) ends.
func endOf(call *sqlparse.Call, i int) int {
	if i+1 < len(call.Window) {
		return call.Window[i+1].Bytes().From
	}
	return call.To
}

// ordersOfRows returns ORDER BY without counts of all rows, and with the order of a rank in the place of the rank: rows that
// are sorted by their ranks are sorted so on each shard, too. No two rows have one ROW_NUMBER.
func ordersOfRows(c *combiner) (all []sqlparse.Order) {
	for _, o := range orders(c.query) {
		e := selectedAs(c, o.Expr)
		call, ok := sqlparse.Bare(e).(*sqlparse.Call)
		if ok && ranksAll(call) && !o.Descending && o.Nulls == sqlparse.NullsDefault {
			if order := orderIn(c, call); order != nil {
				all = append(all, order...)
				if call.Function() == "row_number" {
					return all
				}
				continue
			}
		}
		if !isTotal(c, e) {
			all = append(all, o)
		}
	}
	return all
}

// selectedAs returns the expression that ORDER BY names by its alias or its number, or the expression itself.
func selectedAs(c *combiner, e sqlparse.Expr) sqlparse.Expr {
	if _, isNumber := sqlparse.Bare(e).(*sqlparse.Literal); isNumber && analysis.HasStar(c.core) {
		return e
	}
	return c.ordered(e)
}

// takeRanks records the selected ranks.
func takeRanks(c *combiner) {
	for i, item := range c.core.Items {
		if call := rankOf(c, item.Expr); call != nil {
			c.of.Ranks = append(c.of.Ranks, Rank{At: placeOf(c, i), Function: windowFunctions[call.Function()], Keys: len(call.Window)})
		}
	}
}
