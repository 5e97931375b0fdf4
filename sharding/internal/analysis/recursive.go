// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// recursion is a recursive CTE: a SELECT, and by UNION a second one that computes rows from those that are already there. If each row
// of the second one has the same value in a column as the row from which it is computed, then all rows have values of the first one's
// column. The nodes of a tree that belongs to one user are an example.
type recursion struct {
	query       *sqlparse.Query
	first, next *sqlparse.Core
	as          *ctes
	readers     []*Reference // of the CTE, the second SELECT included, of which columns are known
}

// grown is a column of a recursive CTE, and the columns that its SELECTs select for it.
type grown struct {
	name        string
	first, next Column
}

// recursionOf returns nil for a CTE of another form.
func recursionOf(q *sqlparse.Query, as *ctes) *recursion {
	if q == nil || len(q.Parts) != 2 || q.Parts[0].Select == nil || q.Parts[1].Select == nil || q.Parts[1].Op > sqlparse.Union {
		return nil
	}
	return &recursion{query: q, first: q.Parts[0].Select, next: q.Parts[1].Select, as: as}
}

// readBy gives a reference to the CTE those columns that are columns of tables in its first SELECT.
func (g *recursion) readBy(b *Analysis, r *Reference) {
	if g == nil || b.Scopes[g.next] == nil { // the first SELECT reads it, or an earlier CTE
		return
	}
	g.readers = append(g.readers, r)
	r.Schema.Columns, r.kin = map[string]catalog.Column{}, map[string]string{}
	for _, c := range g.columns(b) {
		column := c.first.Of.Schema.Columns[c.first.Name]
		column.Invisible = false
		r.Schema.Columns[c.name] = column
	}
}

// columns returns the columns that are columns of tables in the first SELECT. The next of each is the zero Column if it is
// none in the second SELECT.
func (g *recursion) columns(b *Analysis) (all []grown) {
	first, next := b.Scopes[g.first], b.Scopes[g.next]
	if of, again := g.star(first, g.first), g.star(next, g.next); of != nil && again != nil && of.Table == again.Table && len(g.as.columns) == 0 {
		for _, name := range of.Schema.Visible() {
			all = append(all, grown{name, Column{of, name}, Column{again, name}})
		}
		return all
	}
	items := g.first.Items
	if listed := len(g.as.columns); len(items) != len(g.next.Items) || HasStar(g.first) || HasStar(g.next) || listed > 0 && listed != len(items) {
		return nil
	}
	names := map[string]int{}
	for i := range items {
		name := selectedAs(items, i, g.as.columns, b.Statement.Text)
		names[name]++
		from, ok := first.Column(items[i].Expr)
		again, _ := next.Column(g.next.Items[i].Expr)
		if ok && slices.Contains(first.Refs, from.Of) {
			all = append(all, grown{name, from, again})
		}
	}
	return slices.DeleteFunc(all, func(c grown) bool { return names[c.name] > 1 }) // databases differ in which of them a name denotes
}

// star returns the sharded table all of whose columns a SELECT selects, and nothing else; otherwise nil.
func (g *recursion) star(s *Scope, core *sqlparse.Core) *Reference {
	if len(core.Items) != 1 {
		return nil
	}
	if of := s.Starred(core.Items[0]); len(of) == 1 && of[0] != nil && of[0].Role == Sharded {
		return of[0]
	}
	return nil
}

// pass applies what is known of columns of the first SELECT to the CTE, wherever it is read. It applies what is known of the CTE's
// rows to the first SELECT, and so to both, if only one query reads them, and if rows with one value depend on no others.
func (g *recursion) pass(b *Analysis) {
	s := b.Scopes[g.next]
	at := slices.IndexFunc(g.readers, func(r *Reference) bool { return slices.Contains(s.Refs, r) })
	if at < 0 {
		return
	}
	own := g.readers[at]
	for _, c := range g.columns(b) {
		from := Column{own, c.name}
		isSame := c.next == from || slices.Contains(b.edges, edge{from, c.next}) && slices.Contains(s.Refs, c.next.Of)
		if !isSame || own.Nullable > 0 || c.next.Of.Nullable > 0 || c.first.Of.Nullable > 0 || g.first.Rollup || g.next.Rollup {
			continue
		}
		for _, r := range g.readers {
			b.edges = append(b.edges, edge{c.first, Column{r, c.name}})
			r.leadLike(c.name, c.first)
		}
		if g.as.uses == 2 && len(g.readers) == 2 && g.rowByRow(b) {
			b.edges = append(b.edges, edge{Column{g.readers[1-at], c.name}, c.first})
		}
	}
}

// rowByRow reports whether each row is computed from one row of each table, whatever other rows there are.
func (g *recursion) rowByRow(b *Analysis) bool {
	combines := func(c *sqlparse.Core) bool {
		s := b.Scopes[c]
		return s.ranks || len(s.windows) > 0 || IsGrouped(c) || len(c.DistinctOn) > 0
	}
	return g.query.Limit == nil && !combines(g.first) && !combines(g.next)
}
