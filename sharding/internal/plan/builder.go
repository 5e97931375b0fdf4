package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// builder walks over a statement and collects the references to tables, and what
// conditions say of their columns.
type builder struct {
	snapshot *sharding.Snapshot
	schema   Schema
	refs     []*reference
	facts    []fact
	edges    []edge
	carried  []carried
	assigned []assignment
	rekeyed  []rekeyed
	named    *named // the rows of an UPDATE or DELETE
	scopes   map[*sqlparse.Core]*scope
	text     string
	sqlite   bool
	limited  bool     // something in it has a LIMIT
	limits   []limit  // of its subqueries
	locks    bool     // some query in it locks rows
	clocks   []int    // parameters for which functions of SQLite may read the clock
	twice    bool     // a CTE in it is read twice
	ranks    int      // how many window functions and variables there are in it
	ctes     []string // the names of all CTEs
	restless string   // why several databases may make different values of it
	oddity   *oddity  // the first thing that no plan can be made for
}

func newBuilder(st *sqlparse.Statement, s *sharding.Snapshot, schema Schema) *builder {
	return &builder{snapshot: s, schema: schema, text: st.Text, scopes: map[*sqlparse.Core]*scope{}}
}

// walk walks over a statement and returns what an INSERT inserts, if it is one.
func (b *builder) walk(st *sqlparse.Statement) *insertion {
	switch st.Verb {
	case sqlparse.Select:
		b.query(st.Query, nil, nil)
	case sqlparse.Insert, sqlparse.Replace:
		return b.input(st)
	case sqlparse.Update, sqlparse.Delete:
		b.change(st.Change)
	default:
		b.unread(st, unreadHint(st))
	}
	return nil
}

// Tables returns the tables whose columns the plan of a statement depends on, in lower
// case: no aliases, no CTEs, and none of a text that is not read and so never split.
func Tables(st *sqlparse.Statement, s *sharding.Snapshot) []string {
	if st.Executable {
		return nil
	}
	b := newBuilder(st, s, nil)
	b.walk(st)
	var names []string
	for _, r := range b.refs {
		if name := strings.ToLower(r.label()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// oddity is a reason why a statement has no plan.
type oddity struct {
	table string
	err   error
	hint  string
}

// limit is a query with a LIMIT, and the references in it.
type limit struct {
	query *sqlparse.Query
	refs  []*reference
}

// fact is a condition that the rows of some references satisfy as far as they
// have a part in the result.
type fact struct {
	expr  sqlparse.Expr
	scope *scope
	holds []*reference
}

// edge says that what is known of the values of one column is known of those of
// another.
type edge struct{ from, to column }

// names are the names of the CTEs that a query can see.
type names struct {
	outer *names
	name  string
	query *sqlparse.Query // nil where its columns are not known
	uses  int
}

func (n *names) find(name string) *names {
	for n != nil && n.name != name {
		n = n.outer
	}
	return n
}

// with walks over CTEs and returns the names that what follows sees.
func (b *builder) with(w *sqlparse.With, outer *scope, seen *names) *names {
	if w == nil {
		return seen
	}
	for _, cte := range w.Tables {
		b.ctes = append(b.ctes, strings.ToLower(cte.Name.Name))
		// Which CTEs see which others, and themselves, depends on the dialect.
		if name := cte.Name.Name; len(w.Tables) > 1 && b.routed(name) {
			b.odd(name, sharding.ErrRawTable, "a CTE bears its name; give the CTE another one")
		}
	}
	if w.Recursive { // then each sees itself, and all others
		for _, cte := range w.Tables {
			seen = &names{outer: seen, name: strings.ToLower(cte.Name.Name)}
		}
	}
	for _, cte := range w.Tables {
		b.query(cte.Query, outer, seen)
		if !w.Recursive {
			seen = &names{outer: seen, name: strings.ToLower(cte.Name.Name)}
			if len(cte.Columns) == 0 {
				seen.query = cte.Query
			}
		}
	}
	return seen
}

// routed reports whether the router knows a table of this name.
func (b *builder) routed(name string) bool {
	_, ok := b.snapshot.Lookup(name)
	return ok || b.snapshot.IsBroadcast(name)
}

// complete refuses a statement that names a table of the router where no reference
// was found: what nobody has looked at cannot be routed.
func (b *builder) complete(st *sqlparse.Statement) {
	for _, name := range st.Names {
		found := slices.Contains(b.ctes, name) || slices.ContainsFunc(b.refs, func(r *reference) bool { return strings.EqualFold(r.label(), name) })
		if !found && b.routed(name) {
			b.odd(name, sharding.ErrRawTable, "it stands where tables are not looked for; write the statement otherwise")
		}
	}
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
			r.renamed = true // no alias can stand there
		default:
			for _, row := range p.Values {
				b.expressions(row, outer, seen)
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
		b.qualifiers(l.Of, inner)
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
	for i := range c.From {
		b.source(&c.From[i], s, seen)
	}
	b.where(c.Where, s, seen)
	for i := range c.Items {
		b.item(&c.Items[i], s, seen)
	}
	b.expressions(c.DistinctOn, s, seen)
	b.expressions(c.GroupBy, s, seen)
	b.expression(c.Having, s, seen)
	for _, w := range c.Windows {
		b.expression(w, s, seen)
	}
	s.inside, s.ranks = b.refs[first:len(b.refs):len(b.refs)], b.ranks > ranks
	return s
}

// only returns the scope of a query that is one SELECT, else nil.
func (b *builder) only(q *sqlparse.Query) *scope {
	if q == nil || len(q.Parts) > 1 || q.Parts[0].Select == nil {
		return nil
	}
	return b.scopes[q.Parts[0].Select]
}

// where takes in a condition that every row of the result satisfies. A row of an
// outer join that was made of NULLs satisfies none of the conditions that prove
// anything, so it holds for all references of the scope.
func (b *builder) where(e sqlparse.Expr, s *scope, seen *names) {
	b.condition(e, s, s.refs, seen)
	b.tighten(e, s, 0)
}

func (b *builder) item(i *sqlparse.Item, s *scope, seen *names) {
	b.expression(i.Expr, s, seen)
	if i.Star && len(i.Of.Parts) > 0 {
		b.qualifiers([]sqlparse.Name{i.Of}, s)
	}
}

// qualifiers notes names of tables that stand elsewhere than in FROM.
func (b *builder) qualifiers(list []sqlparse.Name, s *scope) {
	for _, n := range list {
		if len(n.Parts) == 0 {
			continue
		}
		last := n.Parts[len(n.Parts)-1]
		if r := s.named(last.Name); r != nil {
			r.columns = append(r.columns, last)
		}
	}
}

// named returns the reference that a name means.
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
	if len(src.Columns) == 0 {
		b.carry(r, src.Query, nil)
	}
	s.refs = append(s.refs, r)
	return []*reference{r}
}

func (b *builder) join(j *sqlparse.Join, s *scope, seen *names) []*reference {
	before := len(s.outers)
	left := b.source(j.Left, s, seen)
	right := b.source(j.Right, s, seen)
	both := slices.Concat(left, right)
	if j.Kind == sqlparse.RightJoin || j.Kind == sqlparse.FullJoin {
		absent(left)
	}
	if j.Kind == sqlparse.LeftJoin || j.Kind == sqlparse.FullJoin {
		absent(right)
	}
	switch j.Kind {
	case sqlparse.LeftJoin:
		s.outers = append(s.outers, outerJoin{j, left, right})
	case sqlparse.RightJoin:
		s.outers = append(s.outers, outerJoin{j, right, left})
	}
	switch j.Kind {
	case sqlparse.InnerJoin, sqlparse.CrossJoin:
		b.condition(j.On, s, both, seen)
		b.using(j, left, right, true)
		b.tighten(j.On, s, before)
	case sqlparse.LeftJoin:
		b.condition(j.On, s, right, seen)
		b.using(j, left, right, false)
	case sqlparse.RightJoin:
		b.condition(j.On, s, left, seen)
		b.using(j, right, left, false)
	default: // of a full join every row is there, whatever ON says
		b.condition(j.On, s, nil, seen)
	}
	return both
}

// absent marks references of which an outer join makes rows of NULLs.
func absent(refs []*reference) {
	for _, r := range refs {
		r.nullable++
	}
}

// using takes in that columns of one name are equal on both sides. What is known
// of the first side is known of the other, and if both the other way round.
func (b *builder) using(j *sqlparse.Join, from, to []*reference, both bool) {
	for _, c := range j.Using {
		left, first := (&scope{refs: from}).resolve("", c.Name)
		right, second := (&scope{refs: to}).resolve("", c.Name)
		if first && second {
			b.equal(left, right)
			if both {
				b.equal(right, left)
			}
		}
	}
}

// condition takes in what a condition says of the references for which it holds.
func (b *builder) condition(e sqlparse.Expr, s *scope, holds []*reference, seen *names) {
	if e == nil {
		return
	}
	b.expression(e, s, seen)
	for _, c := range conjuncts(e) {
		b.facts = append(b.facts, fact{c, s, holds})
		b.equation(c, s, holds)
	}
}

// equation takes in that two columns are equal, for the ones that it holds for.
func (b *builder) equation(e sqlparse.Expr, s *scope, holds []*reference) {
	var left, right column
	var first, second bool
	if o := sqlparse.As(e, sqlparse.Equal); o != nil {
		left, first = s.column(o.Operands[0])
		right, second = s.column(o.Operands[1])
	}
	if o := sqlparse.As(e, sqlparse.In); o != nil && !o.Not && len(o.Operands) == 2 {
		left, first = s.column(o.Operands[0])
		if q, ok := o.Operands[1].(*sqlparse.Subquery); ok {
			if right, second = b.selected(q.Query, 0); second {
				holds = slices.Concat(holds, []*reference{right.of})
			}
		}
	}
	if !first || !second {
		return
	}
	if slices.Contains(holds, right.of) {
		b.equal(left, right)
	}
	if slices.Contains(holds, left.of) {
		b.equal(right, left)
	}
}

// equal adds an edge where the database takes two values for equal only if the
// rules do. A text that equals a number is not one of those.
func (b *builder) equal(from, to column) {
	kind := from.of.holds(from.name)
	if kind == to.of.holds(to.name) && (kind == Integers || kind == Bytes) {
		b.edges = append(b.edges, edge{from, to})
	}
}

// conjuncts returns the conditions that all hold where e does.
func conjuncts(e sqlparse.Expr) []sqlparse.Expr {
	e = bare(e)
	op := sqlparse.As(e, sqlparse.And)
	if op == nil {
		return []sqlparse.Expr{e}
	}
	var list []sqlparse.Expr
	for _, operand := range op.Operands {
		list = append(list, conjuncts(operand)...)
	}
	return list
}

// column returns the column that an expression is as a whole.
func (s *scope) column(e sqlparse.Expr) (column, bool) {
	c, ok := bare(e).(*sqlparse.Column)
	if !ok || len(c.Name.Parts) > 2 {
		return column{}, false
	}
	qualifier := ""
	if len(c.Name.Parts) == 2 {
		qualifier = c.Name.Parts[0].Name
	}
	return s.resolve(qualifier, c.Name.Parts[len(c.Name.Parts)-1].Name)
}

// reference returns what a table is that a statement names.
func (b *builder) reference(t *sqlparse.Table, seen *names) *reference {
	last := t.Name.Parts[len(t.Name.Parts)-1]
	r := &reference{name: strings.ToLower(last.Name), at: t}
	if t.Alias.Name != "" {
		r.name = strings.ToLower(t.Alias.Name)
	}
	if cte := seen.find(strings.ToLower(last.Name)); cte != nil && len(t.Name.Parts) == 1 {
		r.role, r.at = derived, nil
		cte.uses++
		b.twice = b.twice || cte.uses > 1
		b.carry(r, cte.query, cte)
		return r
	}
	r.schema, r.known = b.schema.table(last.Name)
	b.refs = append(b.refs, r)
	switch table, ok := b.snapshot.Lookup(last.Name); {
	case ok:
		r.role, r.table = sharded, table
		r.leads = leadsOf(table, r.schema, r.known)
		if len(t.Name.Parts) > 1 {
			b.odd(table.Name, sharding.ErrCrossShard, "write the table's name without a database")
		}
	case b.snapshot.IsBroadcast(last.Name):
		r.role = broadcast
	}
	return r
}

func (b *builder) odd(table string, err error, hint string) {
	if b.oddity == nil {
		b.oddity = &oddity{table, err, hint}
	}
}
