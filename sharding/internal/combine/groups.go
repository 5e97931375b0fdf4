// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// grouping says how the groups of several shards are combined into those of one table. Each shard
// returns its own groups, without HAVING, ORDER BY and LIMIT. In addition to the selected columns
// it returns the keys of the groups and the aggregates of HAVING and ORDER BY.
type grouping struct {
	Group                     // without its Args; Keys are the first hidden columns
	keys      []catalog.Value // how the expressions of GROUP BY compare
	values    []catalog.Value // how Columns compare
	params    []int           // the arguments of Made and Having
	kept      []string        // conditions of HAVING that a shard applies or checks
	split     []string        // what a shard also groups by, for COUNT(DISTINCT)
	zero      bool            // what is selected has a value of its own for no rows: it has a literal, COALESCE, IFNULL or ROUND
	always    []string        // hidden expressions whose values, or their digits after the point, are needed also of no rows
	quotients int             // the number of computed divisions
}

type grouper struct{ *combiner }

// onShards reports whether each group is on one shard, which returns it as one table would.
func (c grouper) onShards() bool {
	if !c.rooted(c.scope) || !c.scope.GroupsBy(func(e sqlparse.Expr) bool { return c.Keyed(c.scope, e) }) {
		return false
	}
	for _, e := range c.core.GroupBy {
		c.unambiguous(e)
	}
	return true
}

// grouped records GROUP BY, HAVING, and the order of groups.
func (c grouper) grouped() {
	g := &grouping{Group: Group{Shown: len(c.core.Items), Made: map[int]merge.Expr{}}}
	c.combination.group = g
	for _, e := range c.core.GroupBy {
		c.unambiguous(e)
		by := c.ordered(e)
		v := c.groupValue(by)
		g.keys = append(g.keys, v)
		g.Keys = append(g.Keys, merge.Key{Column: g.Shown + c.hide(c.key(v, by), by), Type: v.Type})
	}
	for i, item := range c.core.Items {
		c.groupItem(item.Expr, i)
	}
	c.computeAll()
	c.having()
	c.sortGroups()
	c.regroup()
}

// computeAll computes the columns that are computed from aggregates. They may need further columns.
func (c grouper) computeAll() {
	for i, item := range c.core.Items {
		if c.isComputed(item.Expr) {
			c.compute(i, item.Expr)
			c.typeOnlyItem(item)
		}
	}
}

// isComputed reports whether an expression is computed from combined aggregates.
func (c grouper) isComputed(e sqlparse.Expr) bool {
	return sqlfunc.HasWindow(e) || sqlfunc.HasAggregate(e) && combined(e) == 0 && aggregator{c}.ofExtreme(e) == nil
}

// ofNone makes each shard also return the aggregates of no rows, which have the form of their values. They have no groups, whose
// place is end, and the same clauses behind it.
func (c grouper) ofNone(end int, behind []splice.Edit) {
	if c.query.With != nil || c.combination.Counted != "" || len(c.query.Locks) > 0 || splice.Named(c.Statement) {
		c.refuse("a literal, COALESCE, IFNULL or ROUND beside COUNT(DISTINCT) is not combined without GROUP BY; select only one of them")
	}
	none := slices.Clone(c.combination.edits)
	if where := c.core.Where; where != nil {
		none = append(none, splice.Insert(where.Bytes().From, "FALSE AND ("), splice.Insert(where.Bytes().To, ")"))
	} else {
		none = append(none, splice.Insert(end, " WHERE FALSE"))
	}
	for i, hidden := range c.hidden[c.core.ItemsEnd].texts {
		if !slices.ContainsFunc(c.combination.group.always, func(text string) bool { return hidden == hiddenAs(text, i) }) {
			hidden = hiddenAs("NULL", i)
		}
		none = append(none, splice.Insert(c.core.ItemsEnd, ", "+hidden))
	}
	c.combination.none = slices.Concat(none, behind)
}

// regroup makes a shard also group by the expressions of COUNT(DISTINCT). It removes HAVING, except
// conditions about columns of GROUP BY, and the following clauses except locks. They are applied to the
// combined groups, because a shard has only a part of each group.
func (c grouper) regroup() {
	g, by, end, word := c.combination.group, c.core.GroupBy, c.query.After, " GROUP BY "
	switch {
	case len(by) > 0:
		end, word = by[len(by)-1].Bytes().To, ", "
	case c.core.Having != nil:
		end = c.core.HavingAt
	}
	last := splice.Edit{Span: sqlparse.Span{From: c.query.After, To: c.query.To}}
	for _, l := range c.query.Locks {
		last.With += " " + l.Span.Of(c.Statement.Text)
	}
	behind := []splice.Edit{last}
	if c.core.Having != nil {
		kept := ""
		if len(g.kept) > 0 {
			kept = " HAVING " + strings.Join(g.kept, " AND ")
		}
		behind = []splice.Edit{{Span: sqlparse.Span{From: end, To: c.core.Having.Bytes().To}, With: kept}, last}
	}
	if len(g.split) > 0 {
		if g.zero && len(g.keys) == 0 { // without rows the shards return no group, and so no 0.00
			c.ofNone(end, behind)
		}
		c.combination.edits = append(c.combination.edits, splice.Insert(end, word+strings.Join(g.split, ", ")))
	}
	c.combination.edits = append(c.combination.edits, behind...)
}

// compute replaces the value of a combined group's column, which has one of the shards' values, by
// an expression.
func (c grouper) compute(at int, e sqlparse.Expr) {
	if !sqlfunc.IsAverage(sqlparse.Bare(e)) {
		steadyAverages(c, e)
	}
	if label := (calculator{c}).label(e); label != nil {
		c.combination.group.Made[at], c.combination.group.values[at] = label, catalog.Value{Unordered: labelOrder}
		return
	}
	made, kind := calculator{c}.number(e)
	c.combination.group.zero = c.combination.group.zero || sqlparse.Any(e, mayLackDigits)
	c.combination.group.Made[at], c.combination.group.values[at].Type.Kind = made, kind
}

// typeOnly returns the expression that a shard computes only for the type of its values, because the
// values are computed from other columns. On PostgreSQL the shard does not compute it at all, because its own divisor may be 0
// although the combined one is not, and its own numbers too large for a type.
func (c grouper) typeOnly(e sqlparse.Expr) string {
	all, cast := e.Bytes(), sqlparse.As(e, sqlparse.Cast)
	if c.MySQL {
		return splice.Replaced(c.Statement.Text, all, ownNeighbours(e))
	}
	if !c.Postgres || cast == nil && !sqlparse.Any(e, mayFail) {
		return all.Of(c.Statement.Text)
	}
	of := all
	if cast != nil { // which decides the digits
		of = cast.Operands[0].Bytes()
	}
	return c.Statement.Text[all.From:of.From] + "CASE WHEN FALSE THEN " + of.Of(c.Statement.Text) + " END" + c.Statement.Text[of.To:all.To]
}

// ownNeighbours returns the edits that make LAG and LEAD return the value of the group itself: a shard with one group has none
// beside it, and so no value that shows the type.
func ownNeighbours(e sqlparse.Expr) (all []splice.Edit) {
	for e := range sqlparse.All(e) {
		if call, ok := e.(*sqlparse.Call); ok && call.Over && isNeighbour(call) && len(call.Args) > 0 {
			distance := sqlparse.Span{From: call.Args[0].Bytes().To, To: call.Args[len(call.Args)-1].Bytes().To}
			all = append(all, splice.Edit{Span: distance, With: ", 0"})
		}
	}
	return all
}

// mayFail reports whether an expression is arithmetic.
func mayFail(e sqlparse.Expr) bool {
	o, ok := e.(*sqlparse.Operation)
	return ok && arithmetic[o.Op] != 0
}

// typeOnlyItem replaces a selected expression by its typeOnly form. The column keeps its name.
func (c grouper) typeOnlyItem(item sqlparse.Item) {
	e, with := item.Expr.Bytes(), c.typeOnly(item.Expr)
	name := item.Span.Of(c.Statement.Text)
	if with == e.Of(c.Statement.Text) || c.MySQL && item.Alias.Name == "" && !c.isName(item.Expr, name) {
		return
	}
	if c.Postgres {
		name = c.columnName(item.Expr)
	}
	c.combination.edits = append(c.combination.edits, splice.Edit{Span: e, With: with, Args: splice.ArgsIn(c.Statement, e)})
	if item.Alias.Name == "" {
		c.combination.edits = append(c.combination.edits, splice.Insert(item.To, " AS "+c.Options.Quote(name)))
	}
}

// isName reports whether a text of an expression names its column on MySQL and MariaDB, and may be an alias. A driver may have
// written arguments into it, and a table in it would be renamed.
func (c grouper) isName(e sqlparse.Expr, text string) bool {
	const longest = 256
	return len(text) <= longest && !c.hasParams(e) && !sqlparse.Any(e, sqlparse.Is[*sqlparse.Subquery])
}

// columnName returns the name that PostgreSQL gives the column of an expression without an alias: that of its function, or
// of the type of a cast.
func (c grouper) columnName(e sqlparse.Expr) string {
	inner := sqlparse.Bare(e)
	for cast := sqlparse.As(inner, sqlparse.Cast); cast != nil; cast = sqlparse.As(inner, sqlparse.Cast) {
		inner = sqlparse.Bare(cast.Operands[0])
	}
	if call, ok := inner.(*sqlparse.Call); ok {
		return call.Function()
	}
	switch cast := sqlparse.As(sqlparse.Bare(e), sqlparse.Cast); {
	case cast == nil && sqlparse.As(inner, sqlparse.Case) != nil:
		return "case"
	case cast == nil:
		return "?column?"
	default:
		name, _ := castType(cast, c.Statement.Text)
		if size := wholeTypes[name]; size > 0 {
			return "int" + strconv.Itoa(size/8)
		}
		if isDecimalType(name) {
			return "numeric"
		}
		return "float8"
	}
}

// hide selects an additional expression that is made from another one, with its parameters, and
// returns its index among the hidden columns.
func (c *combiner) hide(text string, of sqlparse.Expr) int {
	more := c.hidden[c.core.ItemsEnd]
	if of != nil && !splice.Named(c.Statement) {
		more.args = append(more.args, slices.Repeat(splice.ArgsIn(c.Statement, sqlparse.Bare(of).Bytes()), strings.Count(text, c.text(of)))...)
	}
	more.texts = append(more.texts, hiddenAs(text, len(more.texts)))
	c.hidden[c.core.ItemsEnd] = more
	return len(more.texts) - 1
}

func hiddenAs(text string, at int) string { return text + " AS " + hiddenName(at) }

func hiddenName(at int) string { return "shardid_" + strconv.Itoa(at+1) }

// groupItem records a selected column: an aggregate, or an expression of GROUP BY.
func (c grouper) groupItem(e sqlparse.Expr, at int) {
	a, v := merge.Aggregate{Function: merge.First, Column: at}, catalog.Value{}
	switch key := c.by(e); {
	case combined(e) != 0:
		a, v = aggregator{c}.partial(e, at)
	case aggregator{c}.ofExtreme(e) != nil:
		a, v = aggregator{c}.atExtreme(e, at)
	case sqlfunc.OfRows(e): // computed from aggregates
	case key >= 0:
		v = c.combination.group.keys[key]
	case !computed(e): // the same on every shard
		c.combination.group.zero = c.combination.group.zero || !isNull(e)
		v = c.literalValue(e)
	case len(c.core.GroupBy) == 0 && isCastOfLiteral(e): // so is its cast
		c.combination.group.zero = true
		v = c.dependent(e)
	case len(c.core.GroupBy) > 0 && c.dependsOnGroup(e): // the same on every shard that has the group
		v = c.dependent(e)
	default:
		c.refuse(cmp.Or(c.Unresolved(c.scope, e), c.text(e)+" is neither an aggregate nor in GROUP BY; add it there, or read it with a query of its own"))
	}
	c.combination.group.add(a, v)
}

// isCastOfLiteral reports whether an expression is a literal or parameter as a value of a type.
func isCastOfLiteral(e sqlparse.Expr) bool {
	o := sqlparse.As(sqlparse.Bare(e), sqlparse.Cast)
	return o != nil && !computed(o.Operands[0])
}

// dependent returns how the values of a selected expression compare that is computed from expressions of GROUP BY.
func (c grouper) dependent(e sqlparse.Expr) catalog.Value {
	alone := probe(&c.comparer)
	if v := alone.value(e); alone.why == "" {
		return v
	}
	return catalog.Value{Unordered: strings.TrimSuffix(alone.why, AddKey)}
}

// literalValue returns how the values of a selected literal or parameter compare.
func (c grouper) literalValue(e sqlparse.Expr) catalog.Value {
	switch v, isNumber := numeral(e, nil); {
	case isNumber && c.SQLite:
		return catalog.OfKind(merge.Stored)
	case isNumber:
		return v
	}
	return catalog.Value{Unordered: labelOrder}
}

func (g *grouping) add(a merge.Aggregate, v catalog.Value) int {
	g.Columns, g.values = append(g.Columns, a), append(g.values, v)
	return len(g.Columns) - 1
}

// addHidden adds a column of an expression that the shards select additionally. It has the value of any of them.
func addHidden(c grouper, text string, v catalog.Value) int {
	return c.combination.group.add(merge.Aggregate{Function: merge.First, Column: c.selectHidden(text)}, v)
}

// groupValue returns how GROUP BY distinguishes the values of an expression.
func (c *combiner) groupValue(e sqlparse.Expr) catalog.Value {
	v := c.value(e)
	if _, column := c.columnOf(e); !column && v.Type.Kind == merge.Decimal && c.Options.Merge.IsMariaDB() {
		c.refuse("MariaDB may treat NULL as 0 in GROUP BY of computed decimals; group by a column, or by whole numbers: CAST(x AS SIGNED)")
	}
	return v.Untruncated()
}

// key returns the expression that a shard selects to distinguish groups. For anything but a column
// it is the minimum, because servers recognise few expressions as functions of a group, and because
// equal texts have several weights without their padding. SQLite accepts any expression, and MIN
// would make it choose another row for the columns that are neither aggregates nor in GROUP BY.
func (c *combiner) key(v catalog.Value, e sqlparse.Expr) string {
	selected := v.Selected(c.text(e))
	_, isColumn := c.scope.Column(e)
	recognized := c.Postgres && (isColumn || v.As != catalog.Trimmed && v.As != catalog.Asked) // PostgreSQL recognises an expression of GROUP BY, but not x COLLATE "C" in a CAST
	if isColumn && v.As == catalog.Plain || sqlfunc.OfRows(e) || recognized || c.SQLite {
		return selected
	}
	return "MIN(" + selected + ")"
}

// by returns the index in GROUP BY of an expression, by the same column or the same text, -1 for
// none.
func (c grouper) by(e sqlparse.Expr) int {
	return slices.IndexFunc(c.core.GroupBy, func(by sqlparse.Expr) bool { return isSame(c.combiner, c.ordered(by), e) })
}

// isSame reports whether two expressions are one column, or have one text.
func isSame(c *combiner, a, b sqlparse.Expr) bool {
	x, isColumn := c.scope.Column(a)
	y, _ := c.scope.Column(b)
	return isColumn && x == y || alike(&c.comparer, a, b)
}

// column returns the index of an expression among the columns of a combined group: of a selected
// column, or of an added one.
func (c grouper) column(e sqlparse.Expr) int {
	e = sqlparse.Bare(e)
	c.unambiguous(e)
	g := c.combination.group
	for i, item := range c.core.Items {
		if analysis.IsAlias(item, e) && !c.isSelected(e) || alike(&c.comparer, item.Expr, e) {
			if v := g.values[i]; v.As == catalog.Plain && v.Type.Collation == merge.Binary && (v.Type.Kind != merge.Stored || c.isComputed(item.Expr) || sqlfunc.HasAggregate(item.Expr)) {
				return i
			}
			e = sqlparse.Bare(item.Expr) // the selected form is not compared, or the driver may convert it to a time
		}
	}
	switch key := c.by(e); {
	case sqlfunc.OfRows(e) && c.hasParams(e):
		c.refuse("parameters in " + c.text(e) + " are not combined; select it")
	case combined(e) != 0:
		c.refuseMember(e)
		return g.add(aggregator{c}.partial(e, -1))
	case sqlfunc.OfRows(e):
		at := addHidden(c, c.typeOnly(e), catalog.Value{})
		c.compute(at, e)
		return at
	case key >= 0:
		return g.add(merge.Aggregate{Function: merge.First, Column: len(c.core.Items) + key}, g.keys[key])
	case len(c.core.GroupBy) == 0 && c.dependsOnGroup(e): // a constant, which has its value also beside aggregates of no rows
		v := c.value(e)
		text := v.Selected(c.text(e))
		g.zero, g.always = true, append(g.always, text)
		return addHidden(c, text, v)
	case c.dependsOnGroup(e):
		v := c.value(e)
		return addHidden(c, c.key(v, e), v)
	default:
		c.refuse(cmp.Or(c.Unresolved(c.scope, e), c.text(e)+" is neither selected nor an aggregate nor in GROUP BY"))
	}
	return 0
}

// dependsOnGroup reports whether an expression is computed from expressions of GROUP BY alone.
func (c grouper) dependsOnGroup(e sqlparse.Expr) bool {
	switch e = sqlparse.Bare(e); e.(type) {
	case *sqlparse.Literal:
		return true
	case *sqlparse.Column, *sqlparse.Subquery:
		return c.by(e) >= 0
	}
	return c.by(e) >= 0 || !slices.ContainsFunc(sqlfunc.Operands(e), func(of sqlparse.Expr) bool { return !c.dependsOnGroup(of) })
}

// isSelected reports whether an expression is in the select list, where a name denotes no alias.
func (c grouper) isSelected(e sqlparse.Expr) bool {
	return slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return e.Bytes().In(i.Span) })
}

// sortGroups records ORDER BY and LIMIT of groups.
func (c grouper) sortGroups() {
	c.countable()
	for _, o := range orders(c.query) {
		o.Expr = c.ordered(o.Expr)
		c.combination.group.Sort = append(c.combination.group.Sort, c.sortKey(o))
	}
}

// sortKey returns the column of combined groups by which an expression sorts them.
func (c grouper) sortKey(o sqlparse.Order) merge.Key {
	by, g := o.Expr, c.combination.group
	at, v, selected := -1, catalog.Value{}, false
	if isCollated(&c.comparer, by) && c.dependsOnGroup(by) {
		if v = orderOf(&c.comparer, by); c.hasParams(by) {
			c.refuse(c.text(by) + parametersCompared)
		}
	} else {
		if at = c.column(by); g.Made[at] != nil && g.values[at].Unordered != "" { // a shard knows the weights of its own value only
			c.refuse(g.values[at].Unordered)
		}
		v = c.inOrder(by, g.values[at])
		if selected = v.As == g.values[at].As; !selected {
			c.value(by)
		}
	}
	if !selected { // the weights or the texts to ask for are not selected yet
		hidden := c.selectHidden("MIN(" + v.Selected(c.text(by)) + ")")
		asks(c.combiner, v, hidden-len(c.core.Items))
		at = g.add(merge.Aggregate{Function: merge.First, Column: hidden}, v)
	}
	return merge.Key{Column: at, Type: v.Type, Desc: o.Descending, NullsFirst: c.nullsFirst(o)}
}

// nullsFirst reports whether NULLs sort before all other values: they are the least on MySQL,
// MariaDB and SQLite, and the greatest on PostgreSQL.
func (c *comparer) nullsFirst(o sqlparse.Order) bool {
	if o.Nulls != sqlparse.NullsDefault {
		return o.Nulls == sqlparse.NullsFirst
	}
	return o.Descending == c.Postgres
}

// aggregateUnion creates the grouping of a UNION ALL of SELECTs that return one row of aggregates each: SELECT 'paid', COUNT(*) …
// UNION ALL SELECT 'open', COUNT(*) …. The shards number the SELECTs, so that the rows of one are combined.
type aggregateUnion struct{ grouper }

// grouped records the SELECTs and their order.
func (c aggregateUnion) grouped() {
	g := &grouping{Group: Group{Shown: len(c.cores[0].Items), Made: map[int]merge.Expr{}}}
	g.Keys = []merge.Key{{Column: g.Shown, Type: whole.Type}}
	c.combination.group = g
	for n, core := range c.cores {
		c.enter(core)
		c.hide(strconv.Itoa(n), nil)
		columns, values := g.Columns, g.values
		g.Columns, g.values = nil, nil
		for i, item := range core.Items {
			c.column(item.Expr, i)
		}
		c.computeAll()
		if n > 0 {
			c.unite(columns, values)
		}
	}
	if len(g.split) > 0 || len(c.query.Locks) > 0 || c.why != "" {
		c.refuse(differentAggregates)
		return
	}
	c.enter(c.cores[0])
	c.sort()
	c.regroup()
}

// sort records ORDER BY of columns of the result, and LIMIT.
func (c aggregateUnion) sort() {
	c.countable()
	g := c.combination.group
	for _, o := range orders(c.query) {
		by := c.ordered(o.Expr)
		at := c.place(by)
		if at < 0 || g.values[at].As != catalog.Plain || c.inOrder(by, g.values[at]).As != catalog.Plain {
			c.refuse("a UNION ALL of aggregates is ordered by selected numbers and times only; " + c.text(o.Expr) + " is none")
			return
		}
		g.Sort = append(g.Sort, merge.Key{Column: at, Type: g.values[at].Type, Desc: o.Descending, NullsFirst: c.nullsFirst(o)})
	}
}

const differentAggregates = "a UNION ALL of aggregates is combined if its columns have the same aggregate in each SELECT, and none with DISTINCT; send its SELECTs one by one"

func (c aggregateUnion) column(e sqlparse.Expr, at int) {
	if first := c.cores[0].Items; c.isComputed(e) && (at >= len(first) || c.text(first[at].Expr) != c.text(e)) {
		c.refuse(differentAggregates)
	}
	c.groupItem(e, at)
}

// unite combines the columns of a SELECT with those of the SELECTs before it. A database adds counts and sums in one column
// as it adds sums.
func (c aggregateUnion) unite(columns []merge.Aggregate, values []catalog.Value) {
	g := c.combination.group
	if len(columns) != len(g.Columns) || len(c.hidden[c.core.ItemsEnd].texts) != len(c.hidden[c.cores[0].ItemsEnd].texts) {
		c.refuse(differentAggregates)
		return
	}
	for i, before := range columns {
		a := &g.Columns[i]
		counts := a.Function == merge.Count && before.Function == merge.Sum || a.Function == merge.Sum && before.Function == merge.Count
		sums := a.Function == merge.Sum && before.Function == merge.Sum && a.Kind != merge.Float && before.Kind != merge.Float
		switch {
		case a.Column != before.Column || a.By != before.By:
			c.refuse(differentAggregates)
		case counts || sums:
			a.Function, a.Kind = merge.Sum, max(a.Kind, before.Kind)
			g.values[i] = catalog.OfKind(a.Kind)
		case a.Function != before.Function || a.Kind != before.Kind:
			c.refuse(differentAggregates)
		case g.values[i] != values[i]:
			g.values[i] = catalog.Value{Unordered: "its SELECTs compare it in several ways"}
		}
	}
}

// refuseAnyValue refuses ANY_VALUE in a SELECT that it alone would make a group. On MySQL it is no aggregate by itself: such a SELECT,
// also one in a subquery, returns each row.
func refuseAnyValue(c *combiner) {
	if !c.MySQL {
		return
	}
	for core := range c.Scopes {
		list := []sqlparse.Expr{core.Having}
		for _, item := range core.Items {
			list = append(list, item.Expr)
		}
		if core == analysis.CoreOf(c.query) {
			for _, by := range c.query.OrderBy {
				list = append(list, by.Expr)
			}
		}
		if len(core.GroupBy) == 0 && hasOnlyAnyValue(list) {
			c.refuse("without GROUP BY and another aggregate ANY_VALUE returns the value of each row; leave ANY_VALUE out, or write MIN")
		}
	}
}

// hasOnlyAnyValue reports whether the only aggregate in some expressions is ANY_VALUE.
func hasOnlyAnyValue(list []sqlparse.Expr) bool {
	var isAny, isOther bool
	for e := range sqlparse.All(slices.DeleteFunc(list, func(e sqlparse.Expr) bool { return e == nil })...) {
		if sqlfunc.IsAggregate(e) {
			is := e.(*sqlparse.Call).Function() == "any_value" // an aggregate is a call
			isAny, isOther = isAny || is, isOther || !is
		}
	}
	return isAny && !isOther
}
