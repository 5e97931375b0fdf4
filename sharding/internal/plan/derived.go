// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

// carried is a column of a derived table that is a column of a table in its query.
type carried struct {
	from, to column // of the table, and of the derived table
	cte      *names // the CTE of the query, or nil
}

// carry gives a derived table the columns that its query selects, under the listed names if there
// are any. With a star among them, the names of the columns are unknown.
func (b *builder) carry(r *reference, q *sqlparse.Query, listed []sqlparse.Ident, cte *names) {
	s := b.only(q)
	if s == nil {
		return
	}
	items := q.Parts[0].Select.Items
	if len(listed) > 0 && (len(listed) != len(items) || slices.ContainsFunc(items, func(i sqlparse.Item) bool { return i.Star })) {
		return
	}
	r.query, r.known, r.schema.Columns = q, true, map[string]Column{}
	for i, item := range items {
		if item.Star {
			b.carryAll(r, s, item.Of, cte)
			continue
		}
		from, ok := s.column(item.Expr)
		name := item.Alias.Name
		if len(listed) > 0 {
			name = listed[i].Name
		}
		if c, isColumn := sqlparse.Bare(item.Expr).(*sqlparse.Column); name == "" && isColumn {
			name = c.Name.Last().Name
		} else if name == "" {
			name = sqlparse.Bare(item.Expr).Bytes().Of(b.statement.Text)
		}
		b.carryOne(r, strings.ToLower(name), from, ok, cte)
	}
}

// carryAll gives a derived table the columns of a star.
func (b *builder) carryAll(r *reference, s *scope, star sqlparse.Name, cte *names) {
	for _, of := range s.refs {
		if len(star.Parts) > 0 && !strings.EqualFold(of.name, star.Last().Name) {
			continue
		}
		r.known = r.known && of.known
		for name := range of.schema.Columns {
			b.carryOne(r, name, column{of, name}, true, cte)
		}
	}
}

// carryOne gives a derived table one column. If the column is carried, it has the values of another
// one. If two columns have one name, nothing is known of either.
func (k *knowledge) carryOne(r *reference, name string, from column, isCarried bool, cte *names) {
	if _, twice := r.schema.Columns[name]; twice || !isCarried {
		r.schema.Columns[name] = Column{}
		r.leads = slices.DeleteFunc(r.leads, func(l *lead) bool { return l.column == name })
		k.carried = slices.DeleteFunc(k.carried, func(c carried) bool { return c.to == column{r, name} })
		return
	}
	r.schema.Columns[name] = from.of.schema.Columns[from.name]
	// All columns of a row that lead to a shard must lead to the same one. Columns of another table
	// may belong to another row.
	if l := from.of.lead(from.name); l != nil && (r.led == nil || r.led == from.of) {
		r.led = from.of
		as := *l
		as.column = name
		r.leads = append(r.leads, &as)
	}
	k.carried = append(k.carried, carried{from, column{r, name}, cte})
}

// pass applies what is known of columns outside of derived tables, and inside of those derived
// tables whose rows depend only on rows with one value of the column. It applies nothing inside of
// a CTE that is read twice, because its other reader may need more rows.
func (k *knowledge) pass() {
	for _, c := range k.carried {
		k.edges = append(k.edges, edge{c.from, c.to})
		if (c.cte == nil || c.cte.uses == 1) && k.each(c.to.of.query, c.from) {
			k.edges = append(k.edges, edge{c.to, c.from})
		}
	}
}

// selected returns the column that a query selects at an index, if each row of its result depends
// only on rows with that value.
func (k *knowledge) selected(q *sqlparse.Query, at int) (column, bool) {
	s, core := k.only(q), coreOf(q)
	if s == nil || at >= len(core.Items) {
		return column{}, false
	}
	c, ok := s.column(core.Items[at].Expr)
	return c, ok && k.each(q, c)
}

// each reports whether each row of a query's result depends only on rows with one value of a
// selected column: the query has no limit, and its groups and windows are of one value.
func (k *knowledge) each(q *sqlparse.Query, c column) bool {
	s := k.only(q)
	if s == nil || s.ranks || q.Limit != nil {
		return false
	}
	core := q.Parts[0].Select
	of := func(e sqlparse.Expr) bool {
		by, known := s.column(e)
		return known && by == c
	}
	return !slices.ContainsFunc(s.windows, func(w *sqlparse.Call) bool { return !slices.ContainsFunc(w.Window[:w.Partition], of) }) &&
		groupedBy(of, core, q.OrderBy)
}

// groupedBy reports whether the rows that a SELECT combines into one have one value of an
// expression: one of GROUP BY, and one of DISTINCT ON, if it combines rows at all.
func groupedBy(of func(sqlparse.Expr) bool, core *sqlparse.Core, order []sqlparse.Order) bool {
	named := func(e sqlparse.Expr) bool { // DISTINCT ON takes a name for an alias first
		return of(e) && !slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return isAlias(i, e) && !of(i.Expr) })
	}
	switch {
	case core.Rollup || len(core.DistinctOn) > 0 && !slices.ContainsFunc(core.DistinctOn, named):
		return false
	case len(core.GroupBy) > 0:
		return slices.ContainsFunc(core.GroupBy, of)
	}
	return !groups(core) && !sortsGroups(order)
}

func sortsGroups(order []sqlparse.Order) bool {
	return slices.ContainsFunc(order, func(o sqlparse.Order) bool { return aggregated(o.Expr) })
}

// groups reports whether a SELECT returns groups.
func groups(core *sqlparse.Core) bool {
	return core.Having != nil || len(core.GroupBy) > 0 || slices.ContainsFunc(core.Items, func(i sqlparse.Item) bool { return aggregated(i.Expr) })
}

// keyed reports whether an expression is a column of which no two shards have one value, and which is never NULL: a sharding
// key, or a primary key that leads to the shard.
func (k *knowledge) keyed(s *scope, e sqlparse.Expr) bool {
	col, ok := s.column(e)
	for ok && col.of.query != nil && col.of.nullable == 0 {
		i := slices.IndexFunc(k.carried, func(c carried) bool { return c.to == col })
		if ok = i >= 0; ok {
			col = k.carried[i].from
		}
	}
	switch {
	case !ok || col.of.role != sharded || col.of.nullable > 0:
		return false
	case strings.EqualFold(col.name, col.of.table.Key):
		return apart(col)
	}
	return col.isPrimaryKey() && (apart(col) || k.uniqueIDs)
}

// countRows makes the shards return the rows of the only derived table of SELECT COUNT(*) FROM (SELECT …) AS t. They are
// counted after they were combined, unless each shard can count its own.
func countRows(c *combiner) {
	core, of := coreOf(c.query), countedQuery(c.query)
	if of == nil || c.only(of) != nil && c.derived(of) {
		return
	}
	item := core.Items[0]
	switch name := item.Alias.Name; {
	case name != "":
		c.of.Counted = name
	case c.postgres:
		c.of.Counted = "count"
	default:
		c.of.Counted = c.text(item.Expr)
	}
	c.of.edits = append(c.of.edits, edit{Span: sqlparse.Span{From: c.query.From, To: of.From}}, edit{Span: sqlparse.Span{From: of.To, To: c.query.To}})
	c.query = of
}

// countedQuery returns the query whose rows another one counts, and does nothing else with them, or nil.
func countedQuery(q *sqlparse.Query) (of *sqlparse.Query) {
	core := coreOf(q)
	if core == nil || len(core.Items) != 1 || len(core.From) != 1 || core.Distinct || core.Where != nil || core.Having != nil || len(core.GroupBy)+len(core.Modifiers)+len(core.Windows)+len(q.OrderBy)+len(q.Locks) > 0 || q.Limit != nil {
		return nil
	}
	call, ok := sqlparse.Bare(core.Items[0].Expr).(*sqlparse.Call)
	if !ok || call.Function() != "count" || call.Over || call.Odd || !call.Star {
		return nil
	}
	switch from, with := core.From[0], q.With; {
	case from.Query != nil && with == nil && !from.Lateral && len(from.Columns) == 0:
		of = from.Query
	case from.Table != nil && with != nil && !with.Recursive && len(with.Tables) == 1 && len(with.Tables[0].Columns) == 0 && len(from.Table.Name.Parts) == 1 && strings.EqualFold(from.Table.Name.Last().Name, with.Tables[0].Name.Name):
		of = with.Tables[0].Query
	}
	if of != nil && of.With == nil && len(of.Locks) == 0 {
		return of
	}
	return nil
}
