// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Flat returns the text of a query of groups that has the same rows as one that reads groups from a derived table, or
// from the only CTE: its WHERE becomes HAVING, and a column of the derived table becomes the expression that is selected
// there. It returns "" for any other query.
func Flat(b *analysis.Analysis) string {
	f, ok := newFlattener(b)
	if !ok {
		return ""
	}
	q := b.Statement.Query
	var text strings.Builder
	text.WriteString("SELECT " + strings.Join(f.items(), ", "))
	text.WriteString(strings.TrimRight(f.grouped(), " ")) // a line ends a comment
	if having := f.having(); having != "" {
		text.WriteString(" HAVING " + having)
	}
	for i, o := range q.OrderBy {
		text.WriteString([]string{" ORDER BY ", ", "}[min(i, 1)] + f.sorted(o.Expr) + f.Statement.Text[o.Expr.Bytes().To:o.To])
	}
	if q.Limit != nil {
		text.WriteString(" " + q.Limit.Of(f.Statement.Text))
	}
	if f.failed {
		return ""
	}
	return text.String()
}

// flattener writes the text of a flat query. It continues after it has failed, because the text is then not used.
type flattener struct {
	*analysis.Analysis
	outer, inner *sqlparse.Core
	label        string          // of the derived table, in lower case
	columns      map[string]int  // the items of the inner query, by their names in lower case
	shown        []sqlparse.Expr // the expressions of the inner query that are selected, nil for one that is computed from them
	failed       bool
}

// newFlattener returns false for a query of another form. Parameters in a select list would be repeated, or get another order.
func newFlattener(b *analysis.Analysis) (*flattener, bool) {
	q := b.Statement.Query
	outer, of := analysis.CoreOf(q), derivedQuery(q)
	inner := analysis.CoreOf(of)
	switch {
	case inner == nil, outer.Distinct, analysis.IsGrouped(outer), len(outer.DistinctOn)+len(outer.GroupBy)+len(outer.Modifiers)+len(outer.Windows)+len(q.Locks) > 0:
		return nil, false
	case of.Limit != nil, inner.Distinct, inner.Rollup, len(inner.GroupBy) == 0, analysis.HasStar(inner), len(inner.DistinctOn)+len(inner.Modifiers)+len(inner.Windows) > 0:
		return nil, false
	case b.Statement.Executable, b.Statement.Limiting, strings.TrimSpace(b.Statement.Text[:q.From]) != "":
		return nil, false
	}
	f := &flattener{Analysis: b, outer: outer, inner: inner, columns: map[string]int{}}
	from := outer.From[0]
	switch {
	case from.Table == nil:
		f.label = strings.ToLower(from.Alias.Name)
	case from.Table.Alias.Name != "":
		f.label = strings.ToLower(from.Table.Alias.Name)
	default:
		f.label = strings.ToLower(from.Table.Name.Last().Name)
	}
	for at, i := range inner.Items {
		name := strings.ToLower(nameOf(i))
		if _, twice := f.columns[name]; twice && name != "" || b.Postgres && name != nameOf(i) || windowed(i.Expr) || !isPlain(i.Expr) {
			return nil, false
		}
		f.columns[name] = at
	}
	return f, true
}

// nameOf returns the name of a selected column, "" for an expression without an alias.
func nameOf(i sqlparse.Item) string {
	if column, ok := i.Expr.(*sqlparse.Column); ok && i.Alias.Name == "" {
		return column.Name.Last().Name
	}
	return i.Alias.Name
}

// isPlain reports whether an expression has no parameters, and all of its names are columns of its query.
func isPlain(e sqlparse.Expr) bool { return !analysis.Parametrized(e) && namesColumns(e) }

// namesColumns reports whether all names in an expression are columns of its query.
func namesColumns(e sqlparse.Expr) bool {
	return !sqlparse.Any(e, func(e sqlparse.Expr) bool {
		call, isCall := e.(*sqlparse.Call)
		_, isQuery := e.(*sqlparse.Subquery)
		return isQuery || isCall && call.Odd || sqlparse.As(e, sqlparse.Opaque) != nil
	})
}

// items returns the selected columns.
func (f *flattener) items() (all []string) {
	for _, i := range f.outer.Items {
		at, isColumn := f.column(i.Expr)
		switch {
		case i.Star:
			f.failed = f.failed || len(i.Of.Parts) > 0 && !f.isLabel(i.Of.Parts)
			for _, of := range f.inner.Items {
				all, f.shown = append(all, of.Span.Of(f.Statement.Text)), append(f.shown, of.Expr)
			}
			continue
		case isColumn:
			all, f.shown = append(all, f.selected(at, i.Alias)), append(f.shown, f.inner.Items[at].Expr)
			continue
		case i.Alias.Name == "" || !isPlain(i.Expr) || f.isTaken(i.Alias.Name):
			f.failed = true
		}
		all, f.shown = append(all, f.replaced(i.Expr, i.Span)), append(f.shown, nil)
	}
	return all
}

// selected returns a selected column of the derived table, which may have an alias.
func (f *flattener) selected(at int, alias sqlparse.Ident) string {
	of := f.inner.Items[at]
	if alias.Name == "" || strings.EqualFold(alias.Name, nameOf(of)) {
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
	_, taken := f.columns[strings.ToLower(alias)]
	return taken || f.mayBeColumn(alias)
}

func (f *flattener) mayBeColumn(name string) bool {
	return slices.ContainsFunc(f.Scopes[f.inner].Refs, func(r *analysis.Reference) bool {
		has, certain := r.Has(strings.ToLower(name))
		return has || !certain
	})
}

// column returns the item of the inner query whose column an expression of the outer one is.
func (f *flattener) column(e sqlparse.Expr) (at int, ok bool) {
	c, ok := e.(*sqlparse.Column)
	if !ok || len(c.Name.Parts) > 1 && !f.isLabel(c.Name.Parts[:len(c.Name.Parts)-1]) {
		return 0, false
	}
	at, ok = f.columns[strings.ToLower(c.Name.Last().Name)]
	return at, ok && c.Name.Last().Name != ""
}

// isLabel reports whether a qualifier is the name of the derived table.
func (f *flattener) isLabel(qualifier []sqlparse.Ident) bool {
	return len(qualifier) == 1 && strings.ToLower(qualifier[0].Name) == f.label
}

// replaced returns a part of the outer query with an expression in which columns of the derived table are replaced.
func (f *flattener) replaced(e sqlparse.Expr, part sqlparse.Span) string {
	var edits []splice.Edit
	sqlparse.Any(e, func(e sqlparse.Expr) bool {
		if _, isColumn := e.(*sqlparse.Column); isColumn {
			edits = append(edits, splice.Edit{Span: e.Bytes(), With: f.computed(e)})
		}
		return false
	})
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
	return f.exact(f.inner.Items[at].Expr)
}

// exact is operand for an expression that has no more digits than the column.
func (f *flattener) exact(e sqlparse.Expr) string {
	if call, ok := e.(*sqlparse.Call); sqlfunc.HasAggregate(e) && (!ok || !slices.Contains([]string{"count", "sum", "min", "max"}, call.Function())) {
		f.failed = true
	}
	return f.operand(e)
}

// operand returns the text of an expression in parentheses, if it needs them.
func (f *flattener) operand(e sqlparse.Expr) string {
	text := e.Bytes().Of(f.Statement.Text)
	if _, ok := e.(*sqlparse.Operation); ok {
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
			at, err := strconv.Atoi(l.Value)
			if err != nil || at < 1 || at > len(f.inner.Items) {
				f.failed = true
				continue
			}
			with = f.operand(f.inner.Items[at-1].Expr)
		}
		if with != "" {
			edits = append(edits, splice.Edit{Span: e.Bytes(), With: with})
		}
	}
	return splice.Replaced(f.Statement.Text, sqlparse.Span{From: f.inner.ItemsEnd, To: end}, edits)
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
	case f.mayBeColumn(analysis.Unqualified(e)):
		f.failed = true
	}
	return f.operand(of)
}

// having returns the conditions of HAVING and of WHERE.
func (f *flattener) having() string {
	var all []string
	if e := f.inner.Having; e != nil {
		var edits []splice.Edit
		sqlparse.Any(e, func(e sqlparse.Expr) bool {
			if with := f.aliased(e); with != "" {
				edits = append(edits, splice.Edit{Span: e.Bytes(), With: with})
			}
			return false
		})
		all = append(all, splice.Replaced(f.Statement.Text, e.Bytes(), edits))
	}
	if e := f.outer.Where; e != nil {
		f.failed = f.failed || !namesColumns(e)
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
		n, err := strconv.Atoi(l.Value)
		if err != nil || n < 1 || n > len(f.shown) {
			f.failed = true
		} else if of := f.shown[n-1]; of != nil {
			f.exact(of)
		}
		return l.Of(f.Statement.Text)
	}
	at := slices.IndexFunc(f.outer.Items, func(i sqlparse.Item) bool { return !i.Star && analysis.IsAlias(i, e) })
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
