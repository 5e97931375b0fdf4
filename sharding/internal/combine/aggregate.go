// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// combined returns how the partial results of an expression are combined if it is an aggregate by
// itself, otherwise 0.
func combined(e sqlparse.Expr) merge.Function {
	if e = sqlparse.Bare(e); !sqlfunc.IsAggregate(e) || sqlfunc.IsAverage(e) {
		return 0
	}
	return sqlfunc.Aggregates[e.(*sqlparse.Call).Function()] // it is an aggregate
}

// aggregator determines how the results of aggregates are combined.
type aggregator struct{ grouper }

// partial returns how the partial results of an aggregate are combined, and how the results
// compare. at is its index among the selected columns, or -1. Further values that it needs are in
// hidden columns.
func (c aggregator) partial(e sqlparse.Expr, at int) (merge.Aggregate, catalog.Value) {
	call := sqlparse.Bare(e).(*sqlparse.Call) // it is an aggregate
	function, args := sqlfunc.Aggregates[call.Function()], sqlfunc.AggregatedBy(call)
	switch {
	case call.Odd && (!call.Filtered || call.Distinct), call.Distinct && function != merge.Count && function != merge.Sum, len(args) > 1 && !c.MySQL, len(args) == 0 && (call.Distinct || function != merge.Count):
		c.refuse(c.text(call) + " is not combined" + AddKey)
		return merge.Aggregate{}, catalog.Value{}
	case call.Distinct && function == merge.Sum:
		return c.added(call, at)
	case call.Distinct:
		return c.counted(call, at)
	case function == merge.Count:
		return merge.Aggregate{Function: merge.Count, Column: c.shardColumn(e, at)}, whole
	case function == merge.First:
		return merge.Aggregate{Function: merge.First, Column: c.shardColumn(e, at)}, c.ofAny(call.Args[0], "it may be the value of any row")
	case function == merge.Sum:
		v := c.summand(call.Args[0])
		return merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.shardColumn(e, at)}, v
	}
	return c.extreme(call, function, at)
}

// ofAny returns how the values of an expression compare of which one shard gives any, and why they are not sorted.
func (c aggregator) ofAny(e sqlparse.Expr, why string) catalog.Value {
	tried := probe(&c.comparer)
	if v := tried.typed(e); tried.why == "" && (v.IsNumber() || v.IsTime()) {
		return v
	}
	return catalog.Value{Unordered: why}
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

func (c aggregator) extreme(call *sqlparse.Call, function merge.Function, at int) (merge.Aggregate, catalog.Value) {
	v := c.least(call.Args[0]).Untruncated()
	a := merge.Aggregate{Function: function, By: merge.Key{Type: v.Type}}
	if v.As == catalog.Plain {
		a.Column = c.shardColumn(call, at)
		a.By.Column = a.Column
		return a, v
	}
	a.By.Column = c.selectHidden(v.Selected(c.text(call)))
	asks(c.combiner, v, a.By.Column-len(c.core.Items))
	if a.Column = at; at < 0 {
		a.Column = a.By.Column
	}
	return a, v
}

// counted counts distinct values. Of the sharding key it adds the counts of the shards, because no
// two shards have the same value. Of other columns each shard returns each value once, by grouping
// by it as well.
func (c aggregator) counted(call *sqlparse.Call, at int) (merge.Aggregate, catalog.Value) {
	if col, ok := c.scope.Column(call.Args[0]); ok && len(call.Args) == 1 && col.IsOnOneShard() && c.distincts() == 1 {
		return merge.Aggregate{Function: merge.Count, Column: c.shardColumn(call, at)}, whole
	}
	return merge.Aggregate{Function: merge.Count, Distinct: c.distinct(call.Args)}, whole
}

// distinct makes each shard return each value of the arguments of a DISTINCT once, and returns the columns by which they
// are compared.
func (c aggregator) distinct(args []sqlparse.Expr) (keys []merge.Key) {
	g := c.combination.group
	for _, e := range args {
		c.unambiguous(e)
		if !computed(e) { // GROUP BY takes a number for that of a column
			c.unknown(e)
		}
		told := c.groupValue(e)
		if c.Options.Merge.IsMariaDB() && told.IsTime() && (functions{&c.comparer}).readsTime(e) {
			c.refuse("MariaDB may take what is no date in " + c.text(e) + " for 0000-00-00, which is not NULL" + AddKey)
		}
		keys = append(keys, merge.Key{Column: c.selectHidden(c.key(told, e)), Type: told.Type})
		if !slices.Contains(g.split, c.text(e)) {
			g.split = append(g.split, c.text(e))
		}
	}
	return keys
}

// added returns SUM(DISTINCT x) of exact numbers. A shard groups by x, too, so that its own sums are the values.
func (c aggregator) added(call *sqlparse.Call, at int) (merge.Aggregate, catalog.Value) {
	v := c.summand(call.Args[0])
	if v.Type.Kind == merge.Float {
		c.refuse("the sum of DISTINCT floats depends on their order" + AddKey)
	}
	return merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.shardColumn(call, at), Distinct: c.distinct(call.Args)}, v
}

// ofExtreme returns the MIN or MAX in an expression that depends on nothing else: COALESCE(MAX(name), 'none') or
// DATE(MAX(created_at)). Its value is that of the shard with the least or the greatest x. It returns nil for other
// expressions, and for those which calculator computes. It is not called for an aggregate by itself.
func (c aggregator) ofExtreme(e sqlparse.Expr) *sqlparse.Call {
	found := contents{aggregator: c}
	found.visit(e)
	if found.call == nil || found.other {
		return nil
	}
	switch v := probe(&c.comparer).least(found.call.Args[0]); {
	case !found.beyond && (v.IsNumber() || v.Type.Kind == merge.Stored), found.toTime && c.Postgres && !v.IsTime():
		return nil
	case v.As == catalog.Double: // MySQL writes it with more or fewer digits into a text
		return nil
	}
	return found.call
}

// contents is what an expression consists of.
type contents struct {
	aggregator

	call   *sqlparse.Call // its MIN or MAX
	other  bool           // it depends on something else, too, or a function in it may fail
	beyond bool           // it has what calculator does not compute
	toTime bool           // it converts to a time, which fails for some texts
}

func (x *contents) visit(e sqlparse.Expr) {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Literal:
		x.beyond = x.beyond || e.Kind == sqlparse.Text
	case *sqlparse.Param:
	case *sqlparse.Call:
		if sqlfunc.IsAggregate(e) {
			function := sqlfunc.Aggregates[e.Function()]
			x.other = x.other || x.call != nil && x.text(x.call) != x.text(e) || odd(e) || function != merge.Min && function != merge.Max || x.hasParams(e)
			x.call = e
			return
		}
		x.use(e.Function(), !calculable[e.Function()])
		x.other = x.other || e.Over
		for _, arg := range sqlfunc.Operands(e) {
			x.visit(arg)
		}
	case *sqlparse.Operation:
		if e.Op != sqlparse.Cast {
			x.other = true
			return
		}
		name, _ := castType(e, x.Statement.Text)
		x.use(name, true)
		x.visit(e.Operands[0])
	default:
		x.other = true
	}
}

// use records a function or the type of a cast.
func (x *contents) use(name string, beyond bool) {
	x.other = x.other || !everywhereDefined[name]
	x.beyond = x.beyond || beyond
	x.toTime = x.toTime || name == "date" || strings.HasPrefix(name, "timestamp")
}

// everywhereDefined are the functions and the types of casts that have a result for every value, so that no shard fails where
// one table does not.
var everywhereDefined = sqlfunc.Words("coalesce ifnull nullif greatest least to_char extract date text varchar timestamp timestamptz if iif concat concat_ws strftime datetime julianday", sqlfunc.Folds, sqlfunc.Parts, sqlfunc.Clocks, sqlfunc.Shifts,
	sqlfunc.Words("date_format date_trunc date_part datediff timestampdiff to_days last_day dayname monthname unix_timestamp abs length char_length"))

// calculable are those of them which calculator computes.
var calculable = sqlfunc.Words("coalesce ifnull nullif if iif")

// atExtreme returns how an expression of ofExtreme is combined, and how its values compare.
func (c aggregator) atExtreme(e sqlparse.Expr, at int) (merge.Aggregate, catalog.Value) {
	of := c.ofExtreme(e)
	a, _ := c.extreme(of, sqlfunc.Aggregates[of.Function()], -1)
	a.Column = at
	c.combination.group.zero = true
	return a, c.ofAny(e, "it is computed by one of the shards; order by "+c.text(of))
}

// distincts returns the number of aggregates with DISTINCT.
func (c aggregator) distincts() (n int) {
	for e := range sqlparse.All(analysis.Computed(c.core, c.query.OrderBy)...) {
		if call, ok := e.(*sqlparse.Call); ok && call.Distinct {
			n++
		}
	}
	return n
}

// windowFunctions are the window functions over combined groups.
var windowFunctions = map[string]merge.Function{"sum": merge.Sum, "count": merge.Count, "row_number": merge.RowNumber, "rank": merge.Rank, "dense_rank": merge.DenseRank, "lag": merge.Lag, "lead": merge.Lead}

// areOverGroups reports whether a window function sees the groups of a SELECT that are combined, so that it is computed
// after them. Without GROUP BY there is one row, over which MariaDB computes them wrongly.
func areOverGroups(c *combiner, w analysis.Window) bool {
	call := w.Call
	_, has := windowFunctions[call.Function()]
	return has && call.Over && !call.Odd && !call.Distinct && (len(call.Args) <= 1 || isNeighbour(call) && len(call.Args) == 2) && len(c.cores) == 1 && len(c.core.GroupBy) > 0 && w.Of == c.scope && !c.Partitioned(w)
}

// isTotal reports whether an expression counts the rows of a SELECT and is selected with each of them: COUNT(*) OVER ().
// Each shard counts its own rows, before LIMIT.
func isTotal(c *combiner, e sqlparse.Expr) bool {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	return ok && call.Over && call.Function() == "count" && (!call.Odd || call.Filtered) && !call.Distinct && len(call.Window) == 0 && !call.Framed && isColumnOfRows(c, call)
}

func takeTotals(c *combiner) {
	for i, item := range c.core.Items {
		if isTotal(c, item.Expr) {
			c.combination.Totals = append(c.combination.Totals, placeOf(c, i))
		}
	}
}

// placeOf returns the place of an item among the columns that the caller gets. Behind * it is counted from the end: -1 is the
// last one.
func placeOf(c *combiner, item int) int {
	items := c.core.Items
	isStar := func(i sqlparse.Item) bool { return i.Star }
	switch {
	case !slices.ContainsFunc(items[:item], isStar):
		return item
	case slices.ContainsFunc(items[item:], isStar):
		c.refuse("the place of " + c.text(items[item].Expr) + " between two * is not known; select it first or last")
	}
	return item - len(items)
}

// sortsTotal reports whether an expression of ORDER BY is a count of all rows, which sorts nothing: it is the same in all
// rows. It refuses one that is computed from such a count.
func sortsTotal(c *combiner, by sqlparse.Expr) bool {
	if len(c.combination.Totals) == 0 {
		return false
	}
	e := c.ordered(by)
	isNamed := func(of sqlparse.Expr) bool {
		return slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return analysis.IsAlias(i, of) && isTotal(c, i.Expr) })
	}
	switch {
	case isTotal(c, e):
		return true
	case sqlparse.Any(e, isNamed):
		c.refuse("ORDER BY computes " + c.text(e) + " from a count of all rows; leave it out, it is the same in all rows")
	}
	return false
}

func isNeighbour(call *sqlparse.Call) bool {
	return windowFunctions[call.Function()] >= merge.Lag
}

// distance returns the distance of LAG or LEAD of a column of combined groups. It refuses one of values that are no exact numbers, or
// of groups of which two may have one place in the order: it returns -1.
func (c calculator) distance(e *sqlparse.Call, of int) int {
	n := 1
	if len(e.Args) == 2 {
		text, _ := analysis.Literal(e.Args[1], sqlparse.Integer)
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			c.refuse("the distance of " + c.text(e) + " is no literal number" + AddKey)
			return -1
		}
	}
	if of < 0 || c.MySQL && sqlparse.Any(e.Args[0], isQuotient) || !c.combination.group.values[of].IsExact() {
		c.refuse("only LAG and LEAD of whole numbers and decimals are computed over the groups of several shards" + AddKey)
		return -1
	}
	isIn := func(by sqlparse.Expr) bool {
		return slices.ContainsFunc(e.Window, func(in sqlparse.Expr) bool { return isSame(c.combiner, c.ordered(by), in) })
	}
	for _, by := range c.core.GroupBy {
		if !isIn(by) {
			c.refuse("which group is beside another in " + c.text(e) + " is not known: name all expressions of GROUP BY in OVER (…)" + AddKey)
			return -1
		}
	}
	return n
}

// window returns the value of a window function over combined groups.
func (c calculator) window(e *sqlparse.Call) (merge.Expr, merge.Kind) {
	g, w, kind := c.combination.group, merge.Window{Function: windowFunctions[e.Function()], Of: -1}, merge.Integer
	if !areOverGroups(c.combiner, analysis.Window{Call: e, Of: c.scope}) || c.hasParams(e) || slices.ContainsFunc(e.Args, isNull) {
		return c.uncomputed(c.text(e) + " is not computed over the groups of several shards: only SUM, COUNT, ROW_NUMBER, RANK, DENSE_RANK, LAG and LEAD without parameters and NULL are" + AddKey)
	}
	if len(e.Args) > 0 && computed(e.Args[0]) {
		w.Of = c.column(e.Args[0])
	}
	switch {
	case isNeighbour(e):
		if w.Distance = c.distance(e, w.Of); w.Distance < 0 {
			return nil, 0
		}
		if kind = g.values[w.Of].Type.Kind; c.Postgres { // that of a computed column is only wide enough for it
			kind = c.kindOf(e.Args[0])
		}
		w.Kind = kind
	case w.Function == merge.Sum:
		if w.Of < 0 || c.MySQL && sqlparse.Any(e.Args[0], isQuotient) || !g.values[w.Of].IsExact() {
			return c.uncomputed("only a sum of whole numbers and decimals is computed over the groups of several shards" + AddKey)
		}
		switch w.Kind = g.values[w.Of].Type.Kind; {
		case c.MySQL:
			w.Kind = merge.Decimal
		case c.Postgres:
			w.Kind = ofGroups(c).summand(e.Args[0]).Type.Kind
		}
		kind = w.Kind
	}
	if !isWindowCombined(c.combiner, e) {
		return c.uncomputed("OVER (…) of groups is combined if it has only aggregates and expressions of GROUP BY, which are no aliases, without NULLS FIRST, NULLS LAST and a frame" + AddKey)
	}
	for _, by := range e.Window[:e.Partition] {
		w.Partition = append(w.Partition, c.sortKey(sqlparse.Order{Expr: by}))
	}
	for _, by := range e.Order {
		w.Order = append(w.Order, c.sortKey(by))
	}
	w.Column = addHidden(c.grouper, c.typeOnly(e), catalog.Value{Type: merge.Type{Kind: kind}})
	g.Windows = append(g.Windows, w)
	return merge.Column(w.Column, kind), c.wider(kind)
}
