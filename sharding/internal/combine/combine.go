// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Combination says how the results of several shards are combined into the result of a single
// table. It is computed once for a statement.
type Combination struct {
	Shards                 // without its Targets, and without what depends on arguments
	edits    []splice.Edit // of the statement's text, except its names and the LIMIT of rows
	none     []splice.Edit // of a second text of no rows, nil for none
	limit    *sqlparse.Limit
	engine   merge.Engine
	whole    bool      // a shard returns all of its rows, whatever LIMIT is
	group    *grouping // for a query that aggregates
	integers []int     // arguments that must be whole numbers, because the type of a result depends on them
}

// Of returns how the results of several shards are combined, or why they cannot be. It only reads the analysis. If groups
// cannot be combined, those of a primary key need not be: ids are unique over all shards, so each group is on one shard.
// Otherwise they are combined, because GROUP BY id HAVING COUNT(*) > 1 looks for ids that are not. untyped says that the only
// reason is the unknown type of a column.
func Of(b *analysis.Analysis) (combined *Combination, untyped bool, refused *sharding.RouteError) {
	combined, untyped, refused = combineOnce(b)
	if refused == nil {
		return combined, false, nil
	}
	if again, _, still := combineOnce(b.WithUniqueIDs()); still == nil {
		return again, false, nil
	}
	return nil, untyped, refused
}

// combineOnce is Of for one assumption about primary keys.
func combineOnce(b *analysis.Analysis) (combined *Combination, untyped bool, refused *sharding.RouteError) {
	c := &combiner{
		comparer: comparer{Analysis: b}, query: b.Statement.Query,
		combination: &Combination{Shards: Shards{Count: -1, Most: -1, Locks: b.Locks}, engine: b.Options.Merge.Engine},
		hidden:      map[int]hidden{},
	}
	if !b.SQLite {
		c.integers = &c.combination.integers
	}
	refuseAnyValue(c)
	countRows(c)
	c.form()
	for _, core := range c.cores {
		c.enter(core)
		c.branch()
	}
	if c.why == "" {
		c.answer()
	}
	if g := c.combination.group; g != nil && len(g.keys)+len(g.split) == 0 || len(c.cores) == 1 && c.scope.Single(c.core.Where) {
		c.combination.Most = int64(len(c.cores)) // a SELECT of aggregates without GROUP BY has one row
	}
	if c.why != "" {
		if strings.HasSuffix(c.why, AddKey) && slices.ContainsFunc(c.cores, analysis.IsGrouped) {
			c.why += orReport
		}
		return nil, c.untyped, b.Refusal(b.FirstSharded(), sharding.ErrUnmergeable, c.why)
	}
	for at, more := range c.hidden {
		e := splice.Insert(at, ", "+strings.Join(more.texts, ", "))
		e.Args = more.args
		c.combination.edits = append(c.combination.edits, e)
	}
	subqueries := copiedSubqueries(c)
	for _, edits := range [][]splice.Edit{c.combination.edits, c.combination.none} {
		for i := range edits {
			edits[i].Copied = subqueries
		}
	}
	return c.combination, false, nil
}

// copiedSubqueries returns the subqueries in expressions that may be selected once more, the longest first, because one
// may contain the text of another.
func copiedSubqueries(c *combiner) (all []sqlparse.Span) {
	if len(c.hidden) == 0 {
		return nil
	}
	computed := analysis.Computed(c.cores[0], c.query.OrderBy)
	for _, core := range c.cores[1:] {
		computed = append(computed, analysis.Computed(core, nil)...)
	}
	for e := range sqlparse.All(computed...) {
		if s, ok := e.(*sqlparse.Subquery); ok {
			all = append(all, s.Span)
		}
	}
	slices.SortFunc(all, func(a, b sqlparse.Span) int { return (b.To - b.From) - (a.To - a.From) })
	return all
}

type combiner struct {
	comparer
	query       *sqlparse.Query
	cores       []*sqlparse.Core // the branches of a UNION, or one
	hidden      map[int]hidden   // by offsets in the text
	combination *Combination
}

// hidden is the expressions that a SELECT selects additionally, and the arguments in them.
type hidden struct {
	texts []string
	args  []int
}

// AddKey is the remedy that every query has.
const AddKey = "; add a condition on the sharding key, so that one shard answers"

// NoLimiting is why a statement with a hint that limits it is for one shard only.
const NoLimiting = "the hints SET_VAR and MAX_EXECUTION_TIME would limit each shard by itself; leave them out, and give the context a deadline"

// form accepts a SELECT, or several with UNION, INTERSECT and EXCEPT.
func (c *combiner) form() {
	switch {
	case c.ShardedCTE && c.query.With != nil && c.query.With.Recursive:
		c.refuse("a recursive WITH is not combined; its recursive SELECT has to compare the sharding key of the table with that of the CTE, which is read once and has no LIMIT, groups or windows" + AddKey)
	case c.ShardedCTE && c.query.With != nil && len(c.query.Parts) > 1:
		c.refuse("a WITH is not combined with a UNION" + AddKey)
	case c.ShardedCTE && c.Twice:
		c.refuse("a CTE that is read twice is not combined, because its readers may need rows of other shards" + AddKey)
	case c.Statement.Limiting:
		c.refuse(NoLimiting)
	}
	if c.cores = coresOf(c.query); c.cores == nil {
		c.refuse("only SELECTs are combined, and by UNION those without ORDER BY and LIMIT of their own" + AddKey)
	}
}

// branch accepts one SELECT.
func (c *combiner) branch() {
	switch {
	case c.core.Rollup:
		c.refuse("ROLLUP, CUBE and GROUPING SETS are not combined" + AddKey)
	case len(c.core.Windows) > 0:
		c.refuse("a WINDOW is not combined; write its PARTITION BY and ORDER BY into OVER (…)")
	case len(c.core.Modifiers) > 0:
		c.refuse(c.core.Modifiers[0] + " is not combined; leave it out")
	case c.scope.Quantified && !c.rooted(c.scope) && !c.asksExistence():
		c.refuse("ALL (SELECT …) and ANY (SELECT …) compare with rows of all shards, but each shard has only its own; read the least or the greatest row first, and pass it as an argument; = ANY is IN, which is combined if both columns lead to the shard")
	case !c.rooted(c.scope) && !c.asksExistence() && !groupsOuter(c):
		c.refuse(cmp.Or(c.Misspelt(), c.apart(c.scope)))
	}
	c.expressions()
}

// rooted reports whether each row of a SELECT, before grouping, comes from rows of a sharded table
// in one slot: from one of its rows, or from a row of a derived table.
func (c *combiner) rooted(s *analysis.Scope) bool {
	return slices.ContainsFunc(s.Refs, func(r *analysis.Reference) bool {
		return r.Nullable == 0 && (r.Role == analysis.Sharded && len(c.strays(r)) == 0 || r.Query != nil && c.derived(r.Query))
	})
}

// derived reports whether each shard computes its rows of a derived table from its own rows.
func (c *combiner) derived(q *sqlparse.Query) bool {
	return q.Limit == nil && q.With == nil && c.computedPerShard(q.Parts[0].Select, q.OrderBy)
}

// computedPerShard reports whether each shard computes its rows of a SELECT from its own rows: the SELECT is
// rooted, and its distinct rows and groups have a column whose values are on one shard each.
func (c *combiner) computedPerShard(core *sqlparse.Core, order []sqlparse.Order) bool {
	s := c.Scopes[core]
	keyed := func(e sqlparse.Expr) bool { return c.Keyed(s, e) }
	return c.rooted(s) && s.GroupedBy(keyed, core, order) &&
		(!core.Distinct || len(core.DistinctOn) > 0 || slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return showsKey(&c.Knowledge, s, i) }))
}

// strays returns the sharded tables of the present SELECT whose rows may be in other slots than the root's row.
func (c *combiner) strays(root *analysis.Reference) []*analysis.Reference {
	if len(c.cores) > 1 {
		return c.ApartFrom(root, c.scope.Inside)
	}
	return c.ApartFrom(root, c.Refs)
}

// expressions refuses expressions that a shard computes differently than one table would.
func (c *combiner) expressions() {
	if slices.ContainsFunc(SourcesIn(c.core.From), func(s sqlparse.Source) bool { return s.Function != nil && !sqlfunc.RowSources[s.Function.Function()] }) {
		c.refuse("a table function is not combined" + AddKey)
	}
	for _, l := range c.Limits {
		if l.Query != c.query && !slices.ContainsFunc(l.Refs, func(r *analysis.Reference) bool { return r.Role == analysis.Sharded }) && !IsFullyOrdered(&c.Knowledge, l.Query) {
			c.refuse("the rows of a broadcast table that LIMIT or DISTINCT ON keeps may differ from database to database; order by a unique key of the table whose columns are NOT NULL")
		}
	}
	isRooted := c.rooted(c.scope)
	windows := slices.DeleteFunc(slices.Clone(c.Windows), func(w analysis.Window) bool {
		return isRooted && isPerRow(w) || areOverGroups(c, w) || isTotal(c, w.Call) || runningOf(c, w.Call) != nil
	})
	if slices.ContainsFunc(windows, func(w analysis.Window) bool {
		return ofAllRows(w.Call) && len(w.Call.Window) > 0 && w.Of == c.scope && !c.Partitioned(w)
	}) {
		c.refuse("a window function of the rows of all shards is computed in the order in which these are returned: select ROW_NUMBER, RANK or DENSE_RANK by itself, and give the query the ORDER BY of OVER (…), and no more for ROW_NUMBER; or SUM or COUNT of one table whose ORDER BY has the primary key" + AddKey)
	}
	c.refuse(c.Differs(windows))
}

// isPerRow reports whether a function is in a subquery of sharded rows in an expression. If its query is rooted, these rows are in
// the slot of the row around it.
func isPerRow(w analysis.Window) bool {
	return w.Of != nil && w.Of.Operand && slices.ContainsFunc(w.Of.Inside, func(r *analysis.Reference) bool { return r.Role == analysis.Sharded })
}

// IsFullyOrdered reports whether a query has an order in which no two rows are equal.
func IsFullyOrdered(k *analysis.Knowledge, q *sqlparse.Query) bool {
	s := k.Only(q)
	return s != nil && (len(s.Inside) == 0 || tellsApart(s, q.OrderBy))
}

// tellsApart reports whether no two rows of the only table of a SELECT are equal in an order, because it has the columns of a
// key. Rows of two shards may be equal in another key than that of their ids.
func tellsApart(s *analysis.Scope, order []sqlparse.Order) bool {
	if len(s.Inside) != 1 || len(s.Refs) != 1 {
		return false
	}
	of := s.Refs[0]
	keys := of.Schema.Total
	switch {
	case of.Role != analysis.Sharded:
	case of.Schema.Primary:
		keys = of.Schema.Unique[:1]
	default:
		keys = nil
	}
	return catalog.HasKey(keys, func(name string) bool {
		return slices.ContainsFunc(order, func(o sqlparse.Order) bool {
			by, _ := s.Column(o.Expr)
			return by == analysis.Column{Of: of, Name: name}
		})
	})
}

// SourcesIn returns the tables, queries and functions in FROM, those of its joins included.
func SourcesIn(from []sqlparse.Source) (all []sqlparse.Source) {
	for _, s := range from {
		if s.Join != nil {
			all = append(all, SourcesIn([]sqlparse.Source{*s.Join.Left, *s.Join.Right})...)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// answer records what is selected: groups, or rows.
func (c *combiner) answer() {
	if c.asksExistence() {
		c.combination.group = anyExists(c)
		return
	}
	several := len(c.cores) > 1
	if several && isAggregateUnion(c) {
		aggregateUnion{grouper{c}}.grouped()
		return
	}
	leading := !several && len(c.core.DistinctOn) > 0
	apart := (several || isDistinct(c.core)) && apartRows(c)
	if !apart && !unites(c.query) {
		c.refuse("INTERSECT, EXCEPT, several SELECTs in parentheses, and UNION ALL after UNION are combined only if the sharding key has one place in all select lists, without *, and the rows are ordered by numbers and times" + AddKey)
		return
	}
	once := !leading && !apart && (!several && isDistinct(c.core) || c.query.Parts[len(c.query.Parts)-1].Op == sqlparse.Union)
	for _, core := range c.cores {
		c.enter(core)
		if !answersRows(c, once) {
			return
		}
	}
	switch {
	case once:
		c.distinctRows()
	case leading && !c.computedPerShard(c.core, nil):
		distinctOn(c)
	}
	takeTotals(c)
	takeRunning(c)
	c.sorted()
}

// isDistinct reports whether a SELECT returns equal rows once. Aggregates without GROUP BY are one row.
func isDistinct(core *sqlparse.Core) bool {
	return core.Distinct && (len(core.GroupBy) > 0 || !analysis.IsGrouped(core))
}

// answersRows reports whether each row of a SELECT is one of a shard. Otherwise it records the groups of the SELECT, or refuses
// it. once says that equal rows are returned once.
func answersRows(c *combiner, once bool) bool {
	groups, several := analysis.IsGrouped(c.core) || analysis.SortsGroups(c.query.OrderBy), len(c.cores) > 1
	whole := groups && !several && grouper{c}.onShards() && !slices.ContainsFunc(c.Windows, func(w analysis.Window) bool { return areOverGroups(c, w) })
	switch {
	case groups && !whole && analysis.HasStar(c.core):
		c.refuse("GROUP BY needs a select list without *" + AddKey)
	case analysis.HasStar(c.core) && (once || several && len(c.query.OrderBy) > 0):
		c.refuse("DISTINCT, UNION, and ORDER BY over UNION ALL need select lists without *" + AddKey)
	case several && (groups || len(c.core.DistinctOn) > 0 || c.core.Distinct && !once) && !c.computedPerShard(c.core, nil):
		c.refuse("DISTINCT and groups in a UNION are combined only if each row or group is on one shard: select or group by the sharding key, or send its SELECTs one by one")
	case groups && several || whole:
		c.derives = true
		return true
	case groups && (isDistinct(c.core) || len(c.core.DistinctOn) > 0):
		c.refuse("DISTINCT of groups is not combined" + AddKey)
	case groups:
		grouper{c}.grouped()
	default:
		return true
	}
	return false
}

// isAggregateUnion reports whether a query is a UNION ALL of SELECTs of one row of aggregates each.
func isAggregateUnion(c *combiner) bool {
	return !slices.ContainsFunc(c.query.Parts[1:], func(p *sqlparse.Part) bool { return p.Op != sqlparse.UnionAll }) &&
		!slices.ContainsFunc(c.cores, func(core *sqlparse.Core) bool {
			return !analysis.IsGrouped(core) || len(core.GroupBy) > 0 || core.Having != nil || core.Distinct || analysis.HasStar(core)
		})
}

// isStarred reports whether an expression is a column of a table whose columns are all selected, by * or name.*.
func isStarred(c *combiner, e sqlparse.Expr) bool {
	col, ok := c.scope.Column(e)
	return ok && slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return slices.Contains(c.scope.Starred(i), col.Of) })
}

// showsKey reports whether a selected item is, or contains, a column of which no two shards have one value. NULL is a value
// here, so another column that leads to the shard does not suffice.
func showsKey(k *analysis.Knowledge, s *analysis.Scope, i sqlparse.Item) bool {
	return k.Keyed(s, i.Expr) || slices.ContainsFunc(s.Starred(i), func(r *analysis.Reference) bool {
		return r != nil && r.Role == analysis.Sharded && r.Nullable == 0 && analysis.Column{Of: r, Name: strings.ToLower(r.Table.Key)}.IsOnOneShard()
	})
}

// distinctRows records DISTINCT and UNION. It adds hidden columns, each equal to a selected one, so that
// they do not make two rows differ. The exception is weights without their padding: 'a' and 'a '
// would then be two rows of a shard, and a LIMIT there would count both.
func (c *combiner) distinctRows() {
	for at, item := range c.cores[0].Items {
		if v, ok := proof.Constant(item.Expr); ok && v.Param >= 0 && len(c.cores) == 1 && c.Postgres {
			continue // the same in all rows, so its type does not matter
		}
		v := c.result(at).Untruncated()
		c.combination.Distinct = append(c.combination.Distinct, merge.Key{Column: len(c.combination.Distinct), Type: v.Type})
		c.combination.whole = c.combination.whole || v.HasPadding()
		c.hideResult(at, v)
	}
	if len(c.combination.Distinct) == 0 {
		c.refuse("it is not known how values of " + c.text(c.core.Items[0].Expr) + " are compared" + AddKey)
	}
}

// distinctOn records DISTINCT ON. Each shard returns the first row of each of its groups, and the first of these in the order
// of all rows is that of one table.
func distinctOn(c *combiner) {
	for _, e := range c.core.DistinctOn {
		by := c.ordered(e)
		v := c.value(by)
		c.combination.Distinct = append(c.combination.Distinct, merge.Key{Column: len(c.combination.Distinct), Type: v.Type})
		c.hideCompared(v, by)
	}
}

// sorted records ORDER BY and LIMIT.
func (c *combiner) sorted() {
	all := orders(c.query)
	if len(c.combination.Running) > 0 {
		all = ordersOfRows(c)
	}
	for _, o := range all {
		if sortsTotal(c, o.Expr) {
			continue
		}
		at := len(c.combination.Distinct) + len(c.combination.Order)
		c.combination.Order = append(c.combination.Order, merge.Key{Column: at, Type: c.sort(o.Expr).Type, Desc: o.Descending, NullsFirst: c.nullsFirst(o)})
	}
	c.countable()
}

// orders returns the expressions of ORDER BY, without NULL, which sorts nothing.
func orders(q *sqlparse.Query) []sqlparse.Order {
	return slices.DeleteFunc(slices.Clone(q.OrderBy), func(o sqlparse.Order) bool { return isNull(o.Expr) })
}

// sort adds a hidden column for an expression of the order: a result column, or any expression if
// each row of the result is a row of one SELECT.
func (c *combiner) sort(by sqlparse.Expr) (v catalog.Value) {
	c.enter(c.cores[0])
	if analysis.Shuffles(c.Analysis, sqlparse.Bare(by)) {
		return shuffled(c, by)
	}
	e := c.ordered(by)
	switch at := c.place(e); {
	case at >= 0 && (len(c.cores) > 1 || !isCollated(&c.comparer, e)):
		if v = c.inOrder(e, c.result(at)); !c.SQLite && written(c.cores, at) > 1 {
			c.refuse("the order of " + c.text(e) + " depends on the collation of a connection; order by a number: SELECT 1 AS x … UNION ALL SELECT 2 …")
		}
		c.hideResult(at, v)
	case len(c.core.DistinctOn) == 0 && (c.core.Distinct && !isStarred(c, e) || len(c.combination.Distinct) > 0) || len(c.cores) > 1:
		c.refuse(cmp.Or(c.Unresolved(c.scope, e), "DISTINCT and UNION are ordered by selected columns only; select "+c.text(e)))
	default:
		v = orderOf(&c.comparer, e)
		c.hideCompared(v, e)
	}
	if call, ok := sqlparse.Bare(e).(*sqlparse.Call); ok && sqlfunc.IsAggregate(call) {
		c.refuseMember(call)
	}
	return v
}

// shuffled sorts by a random number. It is selected, and sorted by its name, because another call would return another number.
func shuffled(c *combiner, by sqlparse.Expr) catalog.Value {
	at := c.hide(c.text(by), nil)
	c.combination.edits = append(c.combination.edits, splice.Edit{Span: by.Bytes(), With: hiddenName(at)})
	if c.SQLite {
		return catalog.OfKind(merge.Integer)
	}
	return catalog.OfKind(merge.Float)
}

// place returns the index of the result column that ORDER BY names, by its number, its alias, its
// name, however it is written, or its text, or -1. In another branch of a UNION, columns with the same text may be
// different columns.
func (c *combiner) place(by sqlparse.Expr) int {
	for _, is := range []func(sqlparse.Item) bool{
		func(i sqlparse.Item) bool { return i.Expr == by },
		func(i sqlparse.Item) bool {
			column, isColumn := sqlparse.Bare(i.Expr).(*sqlparse.Column)
			return isColumn && i.Alias.Name == "" && strings.EqualFold(column.Name.Last().Name, analysis.Unqualified(by))
		},
		func(i sqlparse.Item) bool { return !i.Star && isSame(c, i.Expr, by) },
	} {
		if at := slices.IndexFunc(c.core.Items, is); at >= 0 {
			return at
		}
	}
	return -1
}

// result returns how the values of a result column compare, which must be the same in all branches
// of a UNION.
func (c *combiner) result(at int) (first catalog.Value) {
	for i, core := range c.cores {
		c.enter(core)
		if at >= len(core.Items) {
			c.refuse("the SELECTs of a UNION must have equal numbers of columns")
			return first
		}
		e := core.Items[at].Expr
		v, ok := c.fixed(e, at)
		if !ok {
			v = c.selects(e)
		}
		switch {
		case v.Unordered == labelOrder && len(c.cores) > 1: // 'a' and 'A' of two SELECTs may be equal
			c.refuse("texts of " + c.text(core.Items[at].Expr) + " are compared by the collation of a connection in a UNION" + AddKey)
		case v.As == catalog.Number && len(c.cores) > 1:
			c.refuse(c.text(core.Items[at].Expr) + " is compared by its text in a UNION" + AddKey)
		case i == 0:
			first = v
		case !v.Same(first) || !v.United(first):
			c.refuse("the columns of a UNION compare in several ways: " + c.text(core.Items[at].Expr) + AddKey)
		}
	}
	return first
}

// fixed returns how the values of a result column compare that is a literal or an argument. For
// SQLite each value has its own type; the type that PostgreSQL gives an argument is unknown.
func (c *combiner) fixed(e sqlparse.Expr, at int) (catalog.Value, bool) {
	switch {
	case c.SQLite, c.Postgres && isParam(e):
		return catalog.Value{}, false
	case written(c.cores, at) > 0:
		return catalog.OfKind(merge.Bytes), true
	}
	return numeral(e, c.integers)
}

// hideResult adds a hidden copy of a result column in every branch.
func (c *combiner) hideResult(at int, v catalog.Value) {
	for _, core := range c.cores {
		c.enter(core)
		switch {
		case at >= len(core.Items):
		case core.Distinct && len(c.combination.Distinct) == 0 && v.HasPadding(): // equal texts have several weights
			c.refuse("UNION ALL with DISTINCT is not ordered by a text; order by other columns, or write UNION")
		default:
			c.hideCompared(v, core.Items[at].Expr)
		}
	}
}

// hideCompared selects an expression once more, in the form in which it is compared. MySQL and MariaDB may sort a group by what
// differs among its rows, and then it is the value of the same row.
func (c *combiner) hideCompared(v catalog.Value, e sqlparse.Expr) {
	text := v.Selected(c.text(e))
	if len(c.core.GroupBy) > 0 && (grouper{c}).dependsOnGroup(e) {
		text = grouper{c}.key(v, e)
	}
	asks(c, v, c.hide(text, e))
}

// asks records that a database is asked for the order of a hidden column. Each SELECT of a UNION ALL has such a column.
func asks(c *combiner, v catalog.Value, hidden int) {
	one := Asked{hiddenName(hidden), v.Behind}
	if v.As != catalog.Asked || slices.Contains(c.combination.Asked, one) {
		return
	}
	if slices.ContainsFunc(c.combination.Asked, func(a Asked) bool { return a.Column == one.Column }) {
		c.refuse(differentAggregates)
	}
	c.combination.Asked = append(c.combination.Asked, one)
}

// countable records a LIMIT that can be computed beforehand and whose parameters can be removed.
// That is impossible for parameters that are not numbered by position.
func (c *combiner) countable() {
	l := c.query.Limit
	if c.combination.limit = l; l == nil {
		return
	}
	switch {
	case l.Ties:
		c.refuse("WITH TIES is not combined" + AddKey)
	case len(c.query.Locks) > 0 && (len(c.cores) > 1 || !c.scope.Single(c.core.Where)):
		c.refuse("each shard would lock as many rows as LIMIT allows, but most of them would not be returned; leave LIMIT out, or name a row by a unique key" + AddKey)
	}
	for _, e := range []sqlparse.Expr{l.Count, l.Offset} {
		v, ok := proof.Constant(e)
		switch {
		case e == nil:
		case !ok:
			c.refuse("LIMIT and OFFSET must be numbers or parameters")
		case v.Param >= 0 && splice.Named(c.Statement):
			c.refuse("named parameters are not combined with LIMIT; write ? for each")
		}
	}
}
