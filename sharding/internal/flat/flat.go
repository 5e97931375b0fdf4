// SPDX-License-Identifier: Apache-2.0

package flat

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Of returns the flat text of a query, "" if it has none.
func Of(b *analysis.Analysis) string {
	f, ok := newFlattener(b)
	if !ok {
		return ""
	}
	q := b.Statement.Query
	var text strings.Builder
	text.WriteString("SELECT " + strings.Join(f.items(), ", "))
	text.WriteString(f.grouped())
	if having := f.having(); having != "" {
		text.WriteString(" HAVING " + having)
	}
	for i, o := range q.OrderBy {
		text.WriteString([]string{" ORDER BY ", ", "}[min(i, 1)] + f.sorted(o.Expr) + f.Statement.Text[o.Expr.Bytes().To:o.To])
	}
	if q.Limit != nil {
		text.WriteString(" " + q.Limit.Of(f.Statement.Text))
	}
	if f.failed || f.loses() {
		return ""
	}
	return text.String()
}

// flattener writes the text of a flat query. It continues after it has failed, because the text is then not used.
type flattener struct {
	*analysis.Analysis
	outer, inner *sqlparse.Core
	label        string          // of the derived table
	columns      map[string]int  // the named items of the inner query
	used         map[int]bool    // the items of the inner query that the flat one has
	shown        []sqlparse.Expr // the expressions of the inner query that are selected, nil for one that is computed from them
	failed       bool
}

// newFlattener returns false for a query of another form. Parameters in a select list would be repeated, or get another order.
func newFlattener(b *analysis.Analysis) (*flattener, bool) {
	q := b.Statement.Query
	outer, of := analysis.CoreOf(q), analysis.DerivedQuery(q)
	inner := analysis.CoreOf(of)
	switch {
	case inner == nil, outer.Distinct, analysis.IsGrouped(outer), sqlfunc.OfRows(outer.Where), analysis.SortsGroups(q.OrderBy), len(outer.DistinctOn)+len(outer.GroupBy)+len(outer.Modifiers)+len(outer.Windows)+len(q.Locks) > 0:
		return nil, false
	case of.Limit != nil, inner.Distinct, inner.Rollup, len(inner.GroupBy) == 0, analysis.HasStar(inner), len(inner.DistinctOn)+len(inner.Modifiers)+len(inner.Windows) > 0:
		return nil, false
	case b.MySQL && q.With != nil && strings.Contains(strings.ToUpper(b.Statement.Text[q.With.Tables[0].Name.To:of.From]), "MATERIALIZED"): // an error there
		return nil, false
	case b.Statement.Executable, b.Statement.Limiting, strings.TrimSpace(b.Statement.Text[:q.From]) != "":
		return nil, false
	}
	from := outer.From[0]
	f := &flattener{Analysis: b, outer: outer, inner: inner, label: from.Alias.Name, columns: map[string]int{}, used: map[int]bool{}}
	if t := from.Table; t != nil {
		f.label = cmp.Or(t.Alias.Name, t.Name.Last().Name)
	}
	return f, f.names() && (f.label != "" || b.SQLite) && f.sortsAnew(of)
}

// sortsAnew reports whether the order of the inner query has no effect, and no parameter or error.
func (f *flattener) sortsAnew(of *sqlparse.Query) bool {
	return len(of.OrderBy) == 0 || len(f.Statement.Query.OrderBy) > 0 && !slices.ContainsFunc(of.OrderBy, func(o sqlparse.Order) bool {
		_, shown := f.column(o.Expr)
		return !shown
	})
}

// loses reports whether the flat query lacks an expression of the inner one that a database may refuse.
func (f *flattener) loses() bool {
	for at, i := range f.inner.Items {
		if !f.used[at] && !f.isKey(at) && !f.isOfNumber(i.Expr) {
			return true
		}
	}
	return false
}

// isOfNumber reports whether an expression is COUNT(*), or COUNT, SUM, MIN or MAX of a column of numbers, which no database refuses.
func (f *flattener) isOfNumber(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	switch {
	case !ok || !exactAggregates[call.Function()]:
		return false
	case call.Star:
		return call.Function() == "count"
	}
	c, known := f.Scopes[f.inner].Column(call.Args[0])
	return known && len(call.Args) == 1 && c.Of.Schema.Columns[c.Name].Value.IsNumber()
}

// exactAggregates have no more digits than a column in which they are stored.
var exactAggregates = sqlfunc.Words("count sum min max")

// isKey reports whether an item of the inner query is in its GROUP BY.
func (f *flattener) isKey(at int) bool {
	i := f.inner.Items[at]
	return slices.ContainsFunc(f.inner.GroupBy, func(e sqlparse.Expr) bool {
		text := e.Bytes().Of(f.Statement.Text)
		return text == strconv.Itoa(at+1) || text == i.Expr.Bytes().Of(f.Statement.Text) || analysis.IsAlias(i, e)
	})
}

// names records the names of the inner query's columns. It returns false if two may have one name, or if the outer query may not
// repeat one: a constant is the number of a column in GROUP BY and ORDER BY.
func (f *flattener) names() bool {
	seen := map[string]bool{}
	for at, i := range f.inner.Items {
		name := analysis.ItemName(i)
		unique := strings.ToLower(cmp.Or(name, i.Span.Of(f.Statement.Text)))
		if seen[unique] || f.Postgres && name != strings.ToLower(name) || sqlfunc.HasWindow(i.Expr) || !isPlain(i.Expr) || isConstant(i.Expr) {
			return false
		}
		seen[unique] = true
		if name != "" {
			f.columns[name] = at
		}
	}
	return true
}

// isConstant reports whether an expression is the same for all rows.
func isConstant(e sqlparse.Expr) bool {
	return !sqlfunc.HasAggregate(e) && !sqlparse.Any(e, sqlparse.Is[*sqlparse.Column])
}

// isPlain reports whether an expression has no parameters, and all of its names are columns of its query.
func isPlain(e sqlparse.Expr) bool { return !analysis.Parametrized(e) && namesColumns(e) }

// namesColumns reports whether all names in an expression are columns of its query.
func namesColumns(e sqlparse.Expr) bool {
	return !sqlparse.Any(e, func(e sqlparse.Expr) bool {
		call, isCall := e.(*sqlparse.Call)
		return sqlparse.Is[*sqlparse.Subquery](e) || isCall && call.Odd || sqlparse.As(e, sqlparse.Opaque) != nil
	})
}

// items returns the selected columns.
func (f *flattener) items() (all []string) {
	for n, i := range f.outer.Items {
		at, isColumn := f.column(i.Expr)
		switch {
		case i.Star:
			f.failed = f.failed || !f.isItsStar(i) || f.MySQL && n > 0 && len(i.Of.Parts) == 0 // an error there
			for at, of := range f.inner.Items {
				f.used[at] = true
				all, f.shown = append(all, of.Span.Of(f.Statement.Text)), append(f.shown, of.Expr)
			}
			continue
		case isColumn:
			all, f.shown = append(all, f.selected(at, i.Alias)), append(f.shown, f.inner.Items[at].Expr)
			continue
		case i.Alias.Name == "" || !isPlain(i.Expr) || f.isTaken(i.Alias.Name) || f.MySQL && f.embeds(i.Expr):
			f.failed = true
		}
		all, f.shown = append(all, f.replaced(i.Expr, i.Span)), append(f.shown, nil)
	}
	return all
}

// isItsStar reports whether a star is that of the derived table.
func (f *flattener) isItsStar(i sqlparse.Item) bool {
	return len(i.Of.Parts) == 0 || len(i.Of.Parts) == 1 && i.Of.Last().Name == f.label
}

// embeds reports whether an expression of the outer query would have an expression of GROUP BY as its part. MySQL recognises only
// whole ones, selected or in OVER (…).
func (f *flattener) embeds(e sqlparse.Expr) bool {
	if at, ok := f.column(e); ok {
		of := f.inner.Items[at].Expr
		return !sqlparse.Is[*sqlparse.Column](of) && !sqlfunc.HasAggregate(of)
	}
	call, _ := e.(*sqlparse.Call)
	return slices.ContainsFunc(sqlparse.Operands(e), func(of sqlparse.Expr) bool {
		_, isWhole := f.column(of)
		return f.embeds(of) && (!isWhole || call == nil || !slices.Contains(call.Window, of))
	})
}

// isKeyed reports whether a group may be on one shard, which then applies HAVING. MySQL does not recognise an expression of GROUP BY there.
func (f *flattener) isKeyed() bool {
	keyed := func(e sqlparse.Expr) bool { return f.Keyed(f.Scopes[f.inner], e) }
	return slices.ContainsFunc(f.inner.GroupBy, keyed) || slices.ContainsFunc(f.inner.Items, func(i sqlparse.Item) bool { return keyed(i.Expr) })
}

// selected returns a selected column of the derived table, which may have an alias.
func (f *flattener) selected(at int, alias sqlparse.Ident) string {
	of := f.inner.Items[at]
	f.used[at] = true
	if alias.Name == "" || alias.Name == analysis.ItemName(of) {
		return of.Span.Of(f.Statement.Text)
	}
	if f.isTaken(alias.Name) {
		f.failed = true
	}
	return of.Expr.Bytes().Of(f.Statement.Text) + " AS " + alias.Of(f.Statement.Text)
}

// isTaken reports whether an alias would hide something in the flat query: a column of a table, which may be grouped by, or of the
// derived table.
func (f *flattener) isTaken(alias string) bool {
	return f.Scopes[f.inner].MayHave(alias) || slices.ContainsFunc(f.inner.Items, func(i sqlparse.Item) bool { return strings.EqualFold(analysis.ItemName(i), alias) })
}

// column returns the item of the inner query whose column an expression of the outer one is. A name in other letters may be
// none, or be another name of the column that is returned.
func (f *flattener) column(e sqlparse.Expr) (at int, ok bool) {
	c, ok := e.(*sqlparse.Column)
	if !ok || len(c.Name.Parts) > 2 || len(c.Name.Parts) == 2 && c.Name.Parts[0].Name != f.label {
		return 0, false
	}
	at, ok = f.columns[c.Name.Last().Name]
	return at, ok
}

// replaced returns a part of the outer query with an expression in which columns of the derived table are replaced.
func (f *flattener) replaced(e sqlparse.Expr, part sqlparse.Span) string {
	var edits []splice.Edit
	for e := range sqlparse.All(e) {
		if sqlparse.Is[*sqlparse.Column](e) {
			edits = append(edits, splice.Edit{Span: e.Bytes(), With: f.computed(e)})
		}
	}
	return splice.Replaced(f.Statement.Text, part, edits)
}

// computed returns the expression of a column of the derived table with which the outer query computes, groups or sorts. An
// average is another value there: MySQL and MariaDB round it to the digits of the column.
func (f *flattener) computed(e sqlparse.Expr) string {
	at, ok := f.column(e)
	if !ok {
		f.failed = true
		return ""
	}
	f.used[at] = true
	return f.exact(f.inner.Items[at].Expr)
}

// exact is operand for an expression that has no more digits than the column.
func (f *flattener) exact(e sqlparse.Expr) string {
	if call, ok := e.(*sqlparse.Call); sqlfunc.HasAggregate(e) && (!ok || !exactAggregates[call.Function()]) {
		f.failed = true
	}
	return f.operand(e)
}

// operand returns the text of an expression in parentheses, if it needs them.
func (f *flattener) operand(e sqlparse.Expr) string {
	text := e.Bytes().Of(f.Statement.Text)
	if sqlparse.Is[*sqlparse.Operation](e) {
		return "(" + text + ")"
	}
	return text
}

// grouped returns FROM, WHERE and GROUP BY of the inner query.
func (f *flattener) grouped() string {
	end := f.inner.To
	if f.inner.Having != nil {
		end = f.inner.HavingAt
	}
	var edits []splice.Edit
	for _, e := range f.inner.GroupBy {
		with := f.aliased(e)
		if l, ok := e.(*sqlparse.Literal); ok { // the number of a column
			at, _ := strconv.Atoi(l.Value)
			if at < 1 || at > len(f.inner.Items) {
				f.failed = true
				continue
			}
			with = f.operand(f.inner.Items[at-1].Expr)
		}
		if with != "" {
			edits = append(edits, splice.Edit{Span: e.Bytes(), With: with})
		}
	}
	return splice.Replaced(f.Statement.Text, sqlparse.Span{From: f.inner.ItemsEnd, To: end}, edits) // a comment may need its line break
}

// aliased returns the expression whose alias in the inner query a name is, "" for a column.
func (f *flattener) aliased(e sqlparse.Expr) string {
	at := slices.IndexFunc(f.inner.Items, func(i sqlparse.Item) bool { return analysis.IsAlias(i, e) })
	if at < 0 {
		return ""
	}
	of := f.inner.Items[at].Expr
	switch {
	case strings.EqualFold(analysis.Unqualified(of), analysis.Unqualified(e)):
		return ""
	case f.Scopes[f.inner].MayHave(analysis.Unqualified(e)):
		f.failed = true
	}
	return f.operand(of)
}

// having returns the conditions of HAVING and of WHERE.
func (f *flattener) having() string {
	var all []string
	if e := f.inner.Having; e != nil {
		var edits []splice.Edit
		for e := range sqlparse.All(e) {
			if with := f.aliased(e); with != "" {
				f.failed = f.failed || f.Postgres // HAVING has no aliases there
				edits = append(edits, splice.Edit{Span: e.Bytes(), With: with})
			}
		}
		all = append(all, splice.Replaced(f.Statement.Text, e.Bytes(), edits))
	}
	if e := f.outer.Where; e != nil {
		f.failed = f.failed || !namesColumns(e) || f.MySQL && f.embeds(e) && f.isKeyed()
		all = append(all, f.replaced(e, e.Bytes()))
	}
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return "(" + strings.Join(all, ") AND (") + ")"
}

// sorted returns an expression of ORDER BY.
func (f *flattener) sorted(e sqlparse.Expr) string {
	if l, isLiteral := e.(*sqlparse.Literal); isLiteral {
		n, _ := strconv.Atoi(l.Value)
		if n < 1 || n > len(f.shown) {
			f.failed = true
		} else if of := f.shown[n-1]; of != nil {
			f.exact(of)
		}
		return l.Of(f.Statement.Text)
	}
	named := func(i sqlparse.Item) bool { return analysis.IsAlias(i, e) }
	at := slices.IndexFunc(f.outer.Items, named)
	f.failed = f.failed || slices.ContainsFunc(f.outer.Items[at+1:], named) // ambiguous
	if at < 0 {
		f.failed = f.failed || !isPlain(e)
		return f.replaced(e, e.Bytes())
	}
	of := f.outer.Items[at].Expr
	if _, isColumn := f.column(of); isColumn {
		return f.computed(of)
	}
	return e.Bytes().Of(f.Statement.Text)
}
