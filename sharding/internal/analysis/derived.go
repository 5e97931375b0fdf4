// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// carried is a column of a derived table that is a column of a table in its query.
type carried struct {
	from, to Column // of the table, and of the derived table
	cte      *ctes  // the CTE of the query, or nil
}

// carry gives a derived table the columns that its query selects, under the listed names if there
// are any. With a star among them, the names of the columns are unknown.
func (b *Analysis) carry(r *Reference, q *sqlparse.Query, listed []sqlparse.Ident, cte *ctes) {
	if q != nil {
		takeList(r, q, listed, b.MySQL)
	}
	s := b.Only(q)
	if s == nil || len(r.constants) > 0 {
		return
	}
	items := q.Parts[0].Select.Items
	if len(listed) > 0 && (len(listed) != len(items) || slices.ContainsFunc(items, func(i sqlparse.Item) bool { return i.Star })) {
		return
	}
	r.Query, r.Known, r.Schema.Columns, r.kin = q, true, map[string]catalog.Column{}, map[string]string{}
	for i, item := range items {
		if item.Star {
			b.carryAll(r, s, item.Of, cte)
			continue
		}
		from, ok := s.Column(item.Expr)
		b.carryOne(r, selectedAs(items, i, listed, b.Statement.Text), from, ok, cte)
	}
}

// selectedAs returns the name, in lower case, that a selected expression has in the query around it.
func selectedAs(items []sqlparse.Item, i int, listed []sqlparse.Ident, text string) string {
	e := sqlparse.Bare(items[i].Expr)
	c, isColumn := e.(*sqlparse.Column)
	name := items[i].Alias.Name
	switch {
	case len(listed) > 0:
		name = listed[i].Name
	case name == "" && isColumn:
		name = c.Name.Last().Name
	case name == "":
		name = e.Bytes().Of(text)
	}
	return strings.ToLower(name)
}

// carryAll gives a derived table the columns of a star.
func (b *Analysis) carryAll(r *Reference, s *Scope, star sqlparse.Name, cte *ctes) {
	for _, of := range s.Refs {
		if len(star.Parts) > 0 && !strings.EqualFold(of.Name, star.Last().Name) {
			continue
		}
		r.Known = r.Known && of.Known
		for _, name := range of.Schema.Visible() {
			b.carryOne(r, name, Column{of, name}, true, cte)
		}
	}
}

// carryOne gives a derived table one column. If the column is carried, it has the values of another
// one. If two columns have one name, nothing is known of either.
func (k *Knowledge) carryOne(r *Reference, name string, from Column, isCarried bool, cte *ctes) {
	if _, twice := r.Schema.Columns[name]; twice || !isCarried {
		r.Schema.Columns[name] = catalog.Column{}
		r.leads = slices.DeleteFunc(r.leads, func(l *proof.Lead) bool { return l.Column == name })
		delete(r.kin, name)
		k.carried = slices.DeleteFunc(k.carried, func(c carried) bool { return c.to == Column{r, name} })
		return
	}
	column := from.Of.Schema.Columns[from.Name]
	column.Invisible = false
	r.Schema.Columns[name] = column
	r.leadLike(name, from)
	k.carried = append(k.carried, carried{from, Column{r, name}, cte})
}

// leadLike makes a column of a derived table lead to slots if the column does whose values it has. All columns of a row that lead to
// a shard must lead to the same one. Columns of another table may belong to another row.
func (r *Reference) leadLike(name string, from Column) {
	l, kin := from.Of.Lead(from.Name), from.Of.kin[from.Name]
	if l == nil && kin == "" || r.led != nil && r.led != from.Of {
		return
	}
	r.led = from.Of
	if l != nil {
		as := *l
		as.Column = name
		r.leads = append(r.leads, &as)
	}
	if kin != "" {
		r.kin[name] = kin
	}
}

// pass applies what is known of columns outside of derived tables, and inside of those derived
// tables whose rows depend only on rows with one value of the column. It applies nothing inside of
// a CTE that is read twice, because its other reader may need more rows.
func (k *Knowledge) pass() {
	for _, c := range k.carried {
		k.edges = append(k.edges, edge{c.from, c.to})
		if (c.cte == nil || c.cte.uses == 1) && k.each(c.to.Of.Query, c.from) {
			k.edges = append(k.edges, edge{c.to, c.from})
		}
	}
}

// selected returns the column that a query selects at an index, if each row of its result depends
// only on rows with that value.
func (k *Knowledge) selected(q *sqlparse.Query, at int) (Column, bool) {
	c, ok := k.picked(q, at)
	return c, ok && k.each(q, c)
}

// picked returns the column that a query selects at an index: each row of its result has the value of a row that
// the conditions of the query leave.
func (k *Knowledge) picked(q *sqlparse.Query, at int) (Column, bool) {
	s, core := k.Only(q), CoreOf(q)
	if s == nil || at >= len(core.Items) {
		return Column{}, false
	}
	c, ok := s.Column(core.Items[at].Expr)
	return c, ok && slices.Contains(s.Refs, c.Of) // a column of the query around it has its value in all rows
}

// each reports whether each row of a query's result depends only on rows with one value of a
// selected column: the query, a single SELECT, has no limit, and its groups and windows are of one value.
func (k *Knowledge) each(q *sqlparse.Query, c Column) bool {
	s := k.Only(q)
	if s.ranks || q.Limit != nil {
		return false
	}
	core := q.Parts[0].Select
	of := func(e sqlparse.Expr) bool {
		by, _ := s.Column(e)
		return by == c
	}
	return !slices.ContainsFunc(s.windows, func(w *sqlparse.Call) bool { return !slices.ContainsFunc(w.Window[:w.Partition], of) }) &&
		s.GroupedBy(of, core, q.OrderBy)
}

// grouping returns the expressions by which a SELECT of the scope groups: selected ones in place of their numbers and of their aliases. A
// name is an alias only if certainly no table has such a column, because databases look for a column first.
func (s *Scope) grouping(core *sqlparse.Core) []sqlparse.Expr {
	all := slices.Clone(core.GroupBy)
	for i, e := range all {
		c, isName := sqlparse.Bare(e).(*sqlparse.Column)
		switch of, isNumber := Numbered(core, e); {
		case isNumber:
			all[i] = of
		case isName && s.lacks(c.Name):
			isIt := func(i sqlparse.Item) bool { return IsAlias(i, c) }
			if at := slices.IndexFunc(core.Items, isIt); at >= 0 && !slices.ContainsFunc(core.Items[at+1:], isIt) {
				all[i] = core.Items[at].Expr
			}
		}
	}
	return all
}

// GroupsBy reports whether a SELECT groups by an expression that matches; with WITH ROLLUP it groups by none.
func (s *Scope) GroupsBy(matches func(sqlparse.Expr) bool) bool {
	return slices.ContainsFunc(s.groupBy, matches)
}

// Numbered returns the selected expression whose number in the select list a literal of ORDER BY or GROUP BY is.
func Numbered(core *sqlparse.Core, e sqlparse.Expr) (of sqlparse.Expr, ok bool) {
	l, ok := sqlparse.Bare(e).(*sqlparse.Literal)
	if !ok || l.Kind != sqlparse.Integer || HasStar(core) {
		return nil, false
	}
	n, err := strconv.Atoi(l.Value)
	if err != nil || n < 1 || n > len(core.Items) {
		return nil, false
	}
	return core.Items[n-1].Expr, true
}

// GroupedBy reports whether the rows that a SELECT combines into one have one value of an
// expression: one of GROUP BY, and one of DISTINCT ON, if it combines rows at all.
func (s *Scope) GroupedBy(of func(sqlparse.Expr) bool, core *sqlparse.Core, order []sqlparse.Order) bool {
	named := func(e sqlparse.Expr) bool { // DISTINCT ON takes a name for an alias first
		return of(e) && !slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return IsAlias(i, e) && !of(i.Expr) })
	}
	switch {
	case core.Rollup || len(core.DistinctOn) > 0 && !slices.ContainsFunc(core.DistinctOn, named):
		return false
	case len(core.GroupBy) > 0:
		return s.GroupsBy(of)
	}
	return !IsGrouped(core) && !SortsGroups(order)
}

// SortsGroups reports whether an ORDER BY has an aggregate.
func SortsGroups(order []sqlparse.Order) bool {
	return slices.ContainsFunc(order, func(o sqlparse.Order) bool { return sqlfunc.HasAggregate(o.Expr) })
}

// IsGrouped reports whether a SELECT returns groups.
func IsGrouped(core *sqlparse.Core) bool {
	return core.Having != nil || len(core.GroupBy) > 0 || slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return sqlfunc.HasAggregate(i.Expr) })
}

// WithUniqueIDs returns the analysis under the assumption that no two shards have rows with one value of a primary key.
func (b *Analysis) WithUniqueIDs() *Analysis {
	assuming := *b
	assuming.uniqueIDs = true
	return &assuming
}

// Keyed reports whether an expression is a column of which no two shards have one value, and which is never NULL: a sharding
// key, or a primary key that leads to the shard.
func (k *Knowledge) Keyed(s *Scope, e sqlparse.Expr) bool {
	col, ok := s.Column(e)
	for ok && col.Of.Query != nil && col.Of.Nullable == 0 {
		i := slices.IndexFunc(k.carried, func(c carried) bool { return c.to == col })
		if ok = i >= 0; ok {
			col = k.carried[i].from
		}
	}
	switch {
	case !ok || col.Of.Role != Sharded || col.Of.Nullable > 0:
		return false
	case strings.EqualFold(col.Name, col.Of.Table.Key):
		return col.IsOnOneShard()
	}
	return col.isPrimaryKey() && (col.IsOnOneShard() || k.uniqueIDs)
}

// DerivedQuery returns the query whose rows another one reads, and no other rows: that of its only derived table, or of its
// only CTE. It returns nil if there is none.
func DerivedQuery(q *sqlparse.Query) (of *sqlparse.Query) {
	core := CoreOf(q)
	if core == nil || len(core.From) != 1 {
		return nil
	}
	switch from, with := core.From[0], q.With; {
	case from.Query != nil && with == nil && !from.Lateral && len(from.Columns) == 0:
		of = from.Query
	case from.Table != nil && with != nil && !with.Recursive && len(with.Tables) == 1 && len(with.Tables[0].Columns) == 0 && len(from.Table.Name.Parts) == 1 && from.Table.Name.Last().Name == with.Tables[0].Name.Name:
		of = with.Tables[0].Query
	}
	if of != nil && of.With == nil && len(of.Locks) == 0 {
		return of
	}
	return nil
}
