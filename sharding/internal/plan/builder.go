// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// reading is the part of a statement's content on which its plan depends.
type reading struct {
	statement *sqlparse.Statement
	snapshot  *sharding.Snapshot
	options   Options
	refs      []*reference // all except derived ones
	insert    *insertion   // the INSERT into a sharded table, or nil
	assigned  []setting    // the columns that lead to slots
	rekeyed   []rekeyed
	named     *named               // the rows of an UPDATE or DELETE
	changed   []changed            // the changed columns that have lookup tables
	refused   *sharding.RouteError // the first reason why no plan can be made
	clocks    []int                // parameters for which functions of SQLite may read the clock
	locks     bool                 // some query in it locks rows
	ctes      []string             // the names of all CTEs
	foreign   bool                 // a column is of no table in the statement
}

// refusal returns an error that names the refused operation and says what to do instead. The operation is a query
// if the statement writes only other tables.
func (r *reading) refusal(table string, err error, hint string) *sharding.RouteError {
	op := operation(r.statement)
	if r.onlyReads(table) {
		op = operations[sqlparse.Select]
	}
	return &sharding.RouteError{Op: op, Table: table, Err: err, Hint: hint}
}

// onlyReads reports whether a statement reads a table, and writes only others.
func (r *reading) onlyReads(table string) (reads bool) {
	for _, of := range r.refs {
		if of.role != derived && strings.EqualFold(of.label(), table) {
			if of.written {
				return false
			}
			reads = true
		}
	}
	return reads && slices.ContainsFunc(r.refs, func(of *reference) bool { return of.written })
}

// builder walks over a statement and collects the references to tables and the conditions on their
// columns.
type builder struct {
	reading
	knowledge
	variance
	sqlite  bool
	mysql   bool
	limited bool            // something in it has a LIMIT
	untyped bool            // its results are not combined, because the type of a column is unknown
	limits  []limit         // of its subqueries
	twice   bool            // a CTE in it is read twice
	aliases map[string]bool // of the columns of its SELECTs
}

// knowledge is what a statement's conditions say about the values of columns, those of its derived
// tables included.
type knowledge struct {
	facts   []fact
	edges   []edge
	carried []carried
	scopes  map[*sqlparse.Core]*scope
	// uniqueIDs: it is assumed that no two shards have rows with one value of a primary key; see combine.
	uniqueIDs bool
}

func newBuilder(st *sqlparse.Statement, s *sharding.Snapshot, options Options) *builder {
	engine := options.Merge.Engine
	return &builder{
		aliases: map[string]bool{},
		reading: reading{statement: st, snapshot: s, options: options}, knowledge: knowledge{scopes: map[*sqlparse.Core]*scope{}},
		variance: variance{text: st.Text, rules: options.Reads.Rules(), engine: engine, postgres: engine == merge.PostgreSQL}, mysql: engine == merge.MySQL, sqlite: engine == merge.SQLite,
	}
}

func (b *builder) walk() {
	switch st := b.statement; st.Verb {
	case sqlparse.Select:
		b.query(st.Query, nil, nil)
	case sqlparse.Insert, sqlparse.Replace:
		b.input(st.Insert)
	case sqlparse.Update, sqlparse.Delete:
		b.change(st.Change)
	default:
		b.unread(unreadHint(st))
	}
}

// Tables returns the tables on whose columns the plan of a statement depends, in lower case. It
// omits aliases and CTEs, and returns none for a text that was not parsed and is therefore never
// split.
func Tables(st *sqlparse.Statement, s *sharding.Snapshot) []string {
	if st.Executable {
		return nil
	}
	b := newBuilder(st, s, Options{})
	b.walk()
	var names []string
	for _, r := range b.refs {
		if name := strings.ToLower(r.label()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// recordRefusal records the first reason why no plan can be made.
func (r *reading) recordRefusal(table string, err error, hint string) {
	if r.refused == nil {
		r.refused = r.refusal(table, err, hint)
	}
}

// limit is a query with a LIMIT, and the references in it.
type limit struct {
	query *sqlparse.Query
	refs  []*reference
}

// fact is a condition that the rows of some references satisfy if they contribute to the result.
type fact struct {
	expr  sqlparse.Expr
	scope *scope
	holds []*reference
}

// edge says that everything known about the values of one column is also true of another.
type edge struct{ from, to column }

// names are the names of the CTEs that a query can see.
type names struct {
	outer   *names
	name    string
	query   *sqlparse.Query  // nil if its columns are unknown
	columns []sqlparse.Ident // the listed names of its columns
	uses    int
}

func (n *names) find(name string) *names {
	for n != nil && n.name != name {
		n = n.outer
	}
	return n
}

// with walks over CTEs and returns the names that the following query sees.
func (b *builder) with(w *sqlparse.With, outer *scope, seen *names) *names {
	if w == nil {
		return seen
	}
	for _, cte := range w.Tables {
		b.ctes = append(b.ctes, strings.ToLower(cte.Name.Name))
		// Which CTEs see which others, and themselves, depends on the dialect.
		if name := cte.Name.Name; len(w.Tables) > 1 && b.routed(name) {
			b.recordRefusal(name, sharding.ErrRawTable, "a CTE has its name; rename the CTE")
		}
	}
	if w.Recursive { // each CTE sees itself and all others
		for _, cte := range w.Tables {
			seen = &names{outer: seen, name: strings.ToLower(cte.Name.Name)}
		}
	}
	for _, cte := range w.Tables {
		b.query(cte.Query, outer, seen)
		if !w.Recursive {
			seen = &names{outer: seen, name: strings.ToLower(cte.Name.Name)}
			seen.query, seen.columns = cte.Query, cte.Columns
		}
	}
	return seen
}

// routed reports whether the router knows a table of this name.
func (r *reading) routed(name string) bool {
	_, ok := r.snapshot.Lookup(name)
	return ok || r.snapshot.IsBroadcast(name)
}

// complete refuses a statement that names a table of the router without a reference to it, because
// such a table cannot be routed.
func (r *reading) complete() {
	for _, name := range r.statement.Names {
		if r.routed(name) && !slices.Contains(r.ctes, name) && !r.refersTo(name) {
			r.recordRefusal(name, sharding.ErrRawTable, "it is named in a place that cannot be routed; rewrite the statement")
		}
	}
}

func (r *reading) refersTo(name string) bool {
	return slices.ContainsFunc(r.refs, func(ref *reference) bool { return strings.EqualFold(ref.label(), name) })
}

func (b *builder) query(q *sqlparse.Query, outer *scope, seen *names) {
	if q == nil {
		return
	}
	first := len(b.refs)
	seen = b.with(q.With, outer, seen)
	inner := outer
	for _, p := range q.Parts {
		switch {
		case p.Select != nil:
			inner = b.core(p.Select, outer, seen)
		case p.Nested != nil:
			b.query(p.Nested, outer, seen)
		case p.Table != nil:
			r := b.reference(p.Table, seen)
			r.renamed = true // an alias is not allowed there
		default:
			for _, row := range p.Values {
				b.expressions(row.Values, outer, seen)
			}
		}
	}
	for _, o := range q.OrderBy {
		b.expression(o.Expr, inner, seen)
	}
	if b.limit(q.Limit, outer, seen); q.Limit != nil {
		b.limits = append(b.limits, limit{q, b.refs[first:len(b.refs):len(b.refs)]})
	}
	b.locks = b.locks || len(q.Locks) > 0
	for _, l := range q.Locks {
		for _, name := range l.Of {
			inner.qualifier(name.Parts)
		}
	}
}

func (b *builder) limit(l *sqlparse.Limit, s *scope, seen *names) {
	if l != nil {
		b.limited = true
		b.expression(l.Count, s, seen)
		b.expression(l.Offset, s, seen)
	}
}

func (b *builder) core(c *sqlparse.Core, outer *scope, seen *names) *scope {
	s, first, ranks := &scope{outer: outer}, len(b.refs), b.ranks
	b.scopes[c] = s
	for _, item := range c.Items {
		b.aliases[strings.ToLower(item.Alias.Name)] = true
	}
	if !c.Rollup {
		s.groupBy = c.GroupBy
	}
	for i := range c.From {
		b.source(&c.From[i], s, seen)
	}
	b.where(c.Where, s, seen)
	b.items(c.Items, s, seen)
	b.expressions(c.DistinctOn, s, seen)
	b.expressions(c.GroupBy, s, seen)
	b.expression(c.Having, s, seen)
	for _, w := range c.Windows {
		b.expression(w, s, seen)
	}
	s.inside, s.ranks = b.refs[first:len(b.refs):len(b.refs)], b.ranks > ranks
	return s
}

// coreOf returns the SELECT of a query that is a single SELECT, otherwise nil.
func coreOf(q *sqlparse.Query) *sqlparse.Core {
	if q == nil || len(q.Parts) > 1 {
		return nil
	}
	return q.Parts[0].Select
}

// only returns the scope of a query that is a single SELECT, otherwise nil.
func (k *knowledge) only(q *sqlparse.Query) *scope { return k.scopes[coreOf(q)] }

// where records a condition that every row of the result satisfies. A row of NULLs that an outer
// join adds satisfies none of the conditions that prove anything, so the condition holds for all
// references of the scope.
func (b *builder) where(e sqlparse.Expr, s *scope, seen *names) {
	b.condition(e, s, s.refs, seen)
	b.tighten(e, s, 0)
}

// items walks over a select list, or over RETURNING.
func (b *builder) items(list []sqlparse.Item, s *scope, seen *names) {
	for _, i := range list {
		before := len(b.instants)
		b.expression(i.Expr, s, seen)
		b.labels = b.labels || i.Alias.Name == "" && len(b.instants) > before
		s.qualifier(i.Of.Parts)
	}
}

// qualifier records a table's name that occurs elsewhere than in FROM.
func (s *scope) qualifier(parts []sqlparse.Ident) { s.qualifies(parts, "") }

// qualified records a table's name before a column's name.
// It returns false if no table has the name.
func (s *scope) qualified(n sqlparse.Name) bool {
	return s.qualifies(n.Parts[:len(n.Parts)-1], strings.ToLower(n.Last().Name))
}

func (s *scope) qualifies(parts []sqlparse.Ident, column string) bool {
	if len(parts) == 0 {
		return true
	}
	name := parts[len(parts)-1]
	r := s.named(name.Name)
	if r == nil {
		return false
	}
	if column != "" {
		r = s.owner(r, column)
	}
	r.columns = append(r.columns, name)
	return true
}

// named returns the reference that a name denotes.
func (s *scope) named(name string) *reference {
	for ; s != nil; s = s.outer {
		if r, _ := s.find(strings.ToLower(name), ""); r != nil {
			return r
		}
	}
	return nil
}

// source adds the references of one element of FROM to a scope and returns them.
func (b *builder) source(src *sqlparse.Source, s *scope, seen *names) []*reference {
	switch {
	case src.Join != nil:
		return b.join(src.Join, s, seen)
	case src.Table != nil:
		r := b.reference(src.Table, seen)
		s.refs = append(s.refs, r)
		return []*reference{r}
	case src.Query != nil:
		outer := s.outer
		if src.Lateral {
			outer = &scope{outer: s.outer, refs: s.refs[:len(s.refs):len(s.refs)]}
		}
		b.query(src.Query, outer, seen)
	case src.Function != nil:
		b.expression(src.Function, s, seen)
	}
	r := &reference{role: derived, name: strings.ToLower(src.Alias.Name)}
	b.carry(r, src.Query, src.Columns, nil)
	s.refs = append(s.refs, r)
	return []*reference{r}
}

func (b *builder) join(j *sqlparse.Join, s *scope, seen *names) []*reference {
	before := len(s.outers)
	left := b.source(j.Left, s, seen)
	right := b.source(j.Right, s, seen)
	both := slices.Concat(left, right)
	switch j.Kind {
	case sqlparse.InnerJoin, sqlparse.CrossJoin:
		b.condition(j.On, s, both, seen)
		b.using(j, left, right)
		b.using(j, right, left)
		b.tighten(j.On, s, before)
	case sqlparse.LeftJoin:
		b.outer(outerJoin{j, left, right}, s, seen)
	case sqlparse.RightJoin:
		b.outer(outerJoin{j, right, left}, s, seen)
	default: // a full join returns every row, whatever ON says
		absent(both)
		b.condition(j.On, s, nil, seen)
	}
	return both
}

// outer records a LEFT or RIGHT JOIN. Its ON says something about the optional side only.
func (b *builder) outer(o outerJoin, s *scope, seen *names) {
	absent(o.absent)
	s.outers = append(s.outers, o)
	b.condition(o.join.On, s, o.absent, seen)
	b.using(o.join, o.present, o.absent)
}

// absent marks references for which an outer join may add rows of NULLs.
func absent(refs []*reference) {
	for _, r := range refs {
		r.nullable++
	}
}

// using records that columns of one name are equal on both sides, so what is known of one side is
// known of the other.
func (k *knowledge) using(j *sqlparse.Join, from, to []*reference) {
	for _, c := range j.Using {
		name := sqlparse.Name{Parts: []sqlparse.Ident{c}}
		left, first := (&scope{refs: from}).resolve(name)
		right, second := (&scope{refs: to}).resolve(name)
		if first && second {
			k.equal(left, right)
		}
	}
}

// condition records a condition for the references for which it holds.
func (b *builder) condition(e sqlparse.Expr, s *scope, holds []*reference, seen *names) {
	b.expression(e, s, seen)
	b.satisfied(e, s, holds)
}

func (k *knowledge) satisfied(e sqlparse.Expr, s *scope, holds []*reference) {
	for _, c := range conjuncts(e) {
		k.facts = append(k.facts, fact{c, s, holds})
		k.equations(c, s, holds)
		k.exclusion(c, s)
		for _, one := range alternatives(c) { // x IN (SELECT y …) is true only with a row that has the value of x
			k.equations(one, s, nil)
			k.exclusion(one, s)
		}
	}
}

// exclusion records that x NOT IN (SELECT y …) depends only on rows with the value of x. A NULL on either side would depend on
// all rows, so x and y must be sharding keys, which are never NULL.
func (k *knowledge) exclusion(e sqlparse.Expr, s *scope) {
	o := sqlparse.As(e, sqlparse.In)
	if o == nil || !o.Not || len(o.Operands) != 2 {
		return
	}
	sub, isQuery := o.Operands[1].(*sqlparse.Subquery)
	left, ok := s.column(o.Operands[0])
	if !isQuery || !ok || !left.isKey() {
		return
	}
	if right, known := k.selected(sub.Query, 0); known && right.isKey() {
		k.equal(left, right)
	}
}

// alternatives returns the conditions under OR, each of which may make e true together with others.
func alternatives(e sqlparse.Expr) (list []sqlparse.Expr) {
	either := sqlparse.As(e, sqlparse.Or)
	if either == nil || either.Not {
		return nil
	}
	for _, operand := range either.Operands {
		for _, c := range conjuncts(operand) {
			list = append(append(list, c), alternatives(c)...)
		}
	}
	return list
}

// equations records which columns a condition makes equal, for the references for which it holds.
func (k *knowledge) equations(e sqlparse.Expr, s *scope, holds []*reference) {
	for _, q := range equalities(e) {
		if len(q.right) != 1 {
			continue
		}
		left, ok := s.column(q.left)
		right, known := s.column(q.right[0])
		if sub, isQuery := q.right[0].(*sqlparse.Subquery); isQuery && q.in {
			if right, known = k.selected(sub.Query, q.at); ok && known {
				k.equal(left, right)
			}
		}
		if ok && known && slices.Contains(holds, left.of) {
			k.equal(right, left)
		}
	}
	if o := sqlparse.As(e, sqlparse.Exists); o != nil && !o.Not {
		k.exists(o.Operands[0].(*sqlparse.Subquery).Query, holds) //nolint:forcetypeassert // the parser allows nothing else there
	}
}

// exists records which columns of a query's rows equal those of the row that EXISTS finds: what is known of the found row
// is true of them. An aggregate without GROUP BY makes a row also if none is found.
func (k *knowledge) exists(q *sqlparse.Query, holds []*reference) {
	s, core := k.only(q), coreOf(q)
	if s == nil || groups(core) {
		return
	}
	for _, c := range conjuncts(core.Where) {
		for _, e := range equalities(c) {
			if len(e.right) != 1 {
				continue
			}
			outside, ok := s.column(e.left)
			found, known := s.column(e.right[0])
			if ok && known && slices.Contains(holds, outside.of) && slices.Contains(s.refs, found.of) {
				k.equal(found, outside)
			}
		}
	}
}

// equal adds an edge if the database considers two values equal only if the rules do. That does not
// hold for a text and a number.
func (k *knowledge) equal(from, to column) {
	if kind := from.holds(); kind == to.holds() && (kind == Integers || kind == Bytes || kind == UUIDs) {
		k.edges = append(k.edges, edge{from, to})
	}
}

// conjuncts returns the conditions that all hold if e does.
func conjuncts(e sqlparse.Expr) (list []sqlparse.Expr) {
	e = sqlparse.Bare(e)
	op := sqlparse.As(e, sqlparse.And)
	switch {
	case e == nil:
		return nil
	case op == nil:
		return []sqlparse.Expr{e}
	}
	for _, operand := range op.Operands {
		list = append(list, conjuncts(operand)...)
	}
	return list
}

// equality is x = y, x IN (y, …), or one element of a comparison of tuples: x has one of some
// values.
type equality struct {
	left  sqlparse.Expr
	right []sqlparse.Expr
	in    bool // by IN
	at    int  // index in the tuple
}

// equalities returns the columns that, by a condition, have one of some values. For = it returns
// both sides.
func equalities(e sqlparse.Expr) (all []equality) {
	o, ok := e.(*sqlparse.Operation)
	if !ok || o.Not || o.Op != sqlparse.Equal && o.Op != sqlparse.In {
		return nil
	}
	all = pairs(sqlparse.Bare(o.Operands[0]), o.Operands[1:], o.Op == sqlparse.In)
	if o.Op == sqlparse.Equal {
		all = append(all, pairs(sqlparse.Bare(o.Operands[1]), o.Operands[:1], false)...)
	}
	return all
}

func pairs(left sqlparse.Expr, right []sqlparse.Expr, in bool) (all []equality) {
	tuple := sqlparse.As(left, sqlparse.Tuple)
	if tuple == nil {
		return []equality{{left: left, right: right, in: in}}
	}
	for at, item := range tuple.Operands {
		q := equality{left: item, in: in, at: at}
		for _, row := range right {
			if _, isQuery := row.(*sqlparse.Subquery); isQuery && in {
				q.right = append(q.right, row)
			}
			if row := sqlparse.As(sqlparse.Bare(row), sqlparse.Tuple); row != nil && len(row.Operands) == len(tuple.Operands) {
				q.right = append(q.right, row.Operands[at])
			}
		}
		if len(q.right) == len(right) {
			all = append(all, q)
		}
	}
	return all
}

// column returns the column if an expression is one.
func (s *scope) column(e sqlparse.Expr) (column, bool) {
	c, ok := sqlparse.Bare(e).(*sqlparse.Column)
	if !ok || len(c.Name.Parts) > 2 {
		return column{}, false
	}
	return s.resolve(c.Name)
}

// reference returns the reference for a table that a statement names.
func (b *builder) reference(t *sqlparse.Table, seen *names) *reference {
	name := strings.ToLower(t.Name.Last().Name)
	r := &reference{name: name, at: t}
	if t.Alias.Name != "" {
		r.name = strings.ToLower(t.Alias.Name)
	}
	if cte := seen.find(name); cte != nil && len(t.Name.Parts) == 1 {
		r.role, r.at = derived, nil
		cte.uses++
		b.twice = b.twice || cte.uses > 1
		b.carry(r, cte.query, cte.columns, cte)
		return r
	}
	r.schema, r.known = b.options.Schema[name]
	b.refs = append(b.refs, r)
	if table, ok := b.snapshot.Lookup(name); ok {
		r.role, r.table = sharded, table
		r.takeLeads()
		if r.elsewhere() {
			b.recordRefusal(table.Name, sharding.ErrCrossShard, "write the table's name without a database or schema")
		}
	} else if b.snapshot.IsBroadcast(name) {
		r.role = broadcast
	}
	return r
}
