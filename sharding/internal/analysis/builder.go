// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Reading is the part of a statement's content on which its plan depends.
type Reading struct {
	Statement *sqlparse.Statement
	Snapshot  *sharding.Snapshot
	Options   Options
	Refs      []*Reference // all except derived ones
	Insert    *Insertion   // the INSERT into a sharded table, or nil
	Assigned  []Setting    // the columns that lead to slots
	Rekeyed   []Rekeyed
	NamedRows *NamedRows           // the rows of an UPDATE or DELETE
	Changed   []Changed            // the changed columns that have lookup tables
	Refused   *sharding.RouteError // the first reason why no plan can be made
	Locks     bool                 // some query in it locks rows
	Unsought  bool                 // unique columns are unknown by which its rows would be searched for
	CTEs      []string             // the names of all CTEs
	Foreign   bool                 // a column is of no table in the statement
}

// Analysis walks over a statement and collects the references to tables and the conditions on their
// columns.
type Analysis struct {
	Reading
	Knowledge
	Variance
	SQLite     bool
	MySQL      bool
	Limited    bool            // something in it has a LIMIT
	Limits     []Limit         // of its subqueries
	Chosen     string          // the table of an UPDATE of which a row is chosen among several that match; see chosen
	Twice      bool            // a CTE in it is read twice
	ShardedCTE bool            // one of its CTEs reads a sharded table
	aliases    map[string]bool // of the columns of its SELECTs
	shown      []Fact          // what its SELECTs list, which is no condition
	recursions []*recursion
}

// Knowledge is what a statement's conditions say about the values of columns, those of its derived
// tables included.
type Knowledge struct {
	Facts     []Fact
	edges     []edge
	picks     []edge // between primary keys of one table: a row is that which a subquery picks
	carried   []carried
	Scopes    map[*sqlparse.Core]*Scope
	uniqueIDs bool // see WithUniqueIDs
	typed     bool // only values of like types are compared: on PostgreSQL
}

// Options are the inputs of a plan besides the statement.
type Options struct {
	Schema catalog.Schema
	// Home is the name of the router's database that is also the home database, "" if none is.
	Home string
	// Filled: the plan is one of the planner's Plan.Filled.
	Filled bool
	// Alone: the home database is the only one, so that no table has copies.
	Alone bool
	// Mode says whether a write may span databases.
	Mode sharding.TxMode
	// Merge is the arithmetic with which results of several shards are combined.
	Merge merge.Dialect
	// Reads is the dialect as which the text is parsed.
	Reads sqlparse.Dialect
	// Quote quotes a name in the dialect.
	Quote func(name string) string
}

// Walk returns what a statement names and says, without proofs.
func Walk(st *sqlparse.Statement, s *sharding.Snapshot, options Options) *Analysis {
	engine := options.Merge.Engine
	b := &Analysis{
		aliases: map[string]bool{},
		Reading: Reading{Statement: st, Snapshot: s, Options: options}, Knowledge: Knowledge{Scopes: map[*sqlparse.Core]*Scope{}, typed: engine == merge.PostgreSQL},
		Variance: Variance{text: st.Text, Rules: options.Reads.Rules(), engine: engine, Postgres: engine == merge.PostgreSQL}, MySQL: engine == merge.MySQL, SQLite: engine == merge.SQLite,
	}
	switch st.Verb {
	case sqlparse.Select:
		b.query(st.Query, nil, nil)
	case sqlparse.Insert, sqlparse.Replace:
		b.input(st.Insert)
	case sqlparse.Update, sqlparse.Delete:
		b.change(st.Change)
	default:
		b.unread(unreadHint(st))
	}
	return b
}

// Limit is a query with a LIMIT or DISTINCT ON, and the references in it.
type Limit struct {
	Query *sqlparse.Query
	Refs  []*Reference
}

// Fact is a condition that the rows of some references satisfy if they contribute to the result.
type Fact struct {
	Expr  sqlparse.Expr
	Scope *Scope
	holds []*Reference
}

// ctes are the names of the CTEs that a query can see.
type ctes struct {
	outer   *ctes
	name    string
	query   *sqlparse.Query  // nil if its columns are unknown
	columns []sqlparse.Ident // the listed names of its columns
	uses    int
	// recursion is set if it may read itself, in a form of which something is known.
	recursion *recursion
}

func (n *ctes) find(name string) *ctes {
	for n != nil && n.name != name {
		n = n.outer
	}
	return n
}

// with walks over CTEs and returns the names that the following query sees.
func (b *Analysis) with(w *sqlparse.With, outer *Scope, seen *ctes) *ctes {
	if w == nil {
		return seen
	}
	for _, cte := range w.Tables {
		b.CTEs = append(b.CTEs, strings.ToLower(cte.Name.Name))
		// Which CTEs see which others, and themselves, depends on the dialect.
		if name := cte.Name.Name; len(w.Tables) > 1 && b.routed(name) {
			b.RecordRefusal(name, sharding.ErrRawTable, "a CTE has its name; rename the CTE")
		}
	}
	all := make([]*ctes, len(w.Tables))
	see := func(i int) {
		all[i] = &ctes{outer: seen, name: strings.ToLower(w.Tables[i].Name.Name), columns: w.Tables[i].Columns}
		seen = all[i]
	}
	if w.Recursive { // each CTE sees itself and all others
		for i := range w.Tables {
			see(i)
			all[i].recursion = recursionOf(w.Tables[i].Query, all[i])
		}
	}
	first := len(b.Refs)
	for i := range w.Tables {
		cte := &w.Tables[i]
		b.query(cte.Query, outer, seen)
		takeReturned(b, cte)
		if !w.Recursive {
			see(i)
		}
		if n := all[i]; n.uses == 0 {
			n.query, n.recursion = cte.Query, nil
		} else if n.recursion != nil {
			b.recursions = append(b.recursions, n.recursion)
		}
	}
	b.ShardedCTE = b.ShardedCTE || slices.ContainsFunc(b.Refs[first:], func(r *Reference) bool { return r.Role == Sharded })
	return seen
}

func (b *Analysis) query(q *sqlparse.Query, outer *Scope, seen *ctes) {
	if q == nil {
		return
	}
	first := len(b.Refs)
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
			r.Renamed = true // an alias is not allowed there
		default:
			for _, row := range p.Values {
				b.expressions(row.Values, outer, seen)
			}
		}
	}
	for _, o := range q.OrderBy {
		b.expression(o.Expr, inner, seen)
	}
	leads := func(p *sqlparse.Part) bool { return p.Select != nil && len(p.Select.DistinctOn) > 0 }
	if b.limit(q.Limit, outer, seen); q.Limit != nil || slices.ContainsFunc(q.Parts, leads) {
		b.Limits = append(b.Limits, Limit{q, b.Refs[first:len(b.Refs):len(b.Refs)]})
	}
	b.Locks = b.Locks || len(q.Locks) > 0
	for _, l := range q.Locks {
		for _, name := range l.Of {
			inner.qualifies(name.Parts, "")
		}
		takeLock(l, b.Refs[first:], b.Statement.Text)
	}
}

// takeLock records which of the tables of a query a clause locks.
func takeLock(l sqlparse.Lock, refs []*Reference, text string) {
	for _, r := range refs {
		if len(l.Of) == 0 || slices.ContainsFunc(l.Of, func(n sqlparse.Name) bool { return strings.EqualFold(n.Last().Name, r.Name) }) {
			r.Lock = strings.TrimSpace(l.Mode.Of(text) + " " + l.Wait.Of(text))
		}
	}
}

func (b *Analysis) limit(l *sqlparse.Limit, s *Scope, seen *ctes) {
	if l != nil {
		b.Limited = true
		b.expression(l.Count, s, seen)
		b.expression(l.Offset, s, seen)
	}
}

func (b *Analysis) core(c *sqlparse.Core, outer *Scope, seen *ctes) *Scope {
	s, first, ranks := &Scope{outer: outer}, len(b.Refs), b.Ranks
	b.Scopes[c] = s
	for _, item := range c.Items {
		b.aliases[strings.ToLower(item.Alias.Name)] = true
		b.shown = append(b.shown, Fact{Expr: item.Expr, Scope: s})
	}
	for i := range c.From {
		b.source(&c.From[i], s, seen)
	}
	if !c.Rollup {
		s.groupBy = s.grouping(c)
	}
	b.where(c.Where, s, seen)
	b.items(c.Items, s, seen)
	b.expressions(c.DistinctOn, s, seen)
	b.expressions(c.GroupBy, s, seen)
	b.expression(c.Having, s, seen)
	b.expressions(c.Windows, s, seen)
	s.Inside, s.ranks = b.Refs[first:len(b.Refs):len(b.Refs)], b.Ranks > ranks
	return s
}

// CoreOf returns the SELECT of a query that is a single SELECT, otherwise nil.
func CoreOf(q *sqlparse.Query) *sqlparse.Core {
	if q == nil || len(q.Parts) > 1 {
		return nil
	}
	return q.Parts[0].Select
}

// Only returns the scope of a query that is a single SELECT, otherwise nil.
func (k *Knowledge) Only(q *sqlparse.Query) *Scope { return k.Scopes[CoreOf(q)] }

// where records a condition that every row of the result satisfies. A row of NULLs that an outer
// join adds satisfies none of the conditions that prove anything, so the condition holds for all
// references of the scope.
func (b *Analysis) where(e sqlparse.Expr, s *Scope, seen *ctes) {
	b.condition(e, s, s.Refs, seen)
	b.tighten(e, s, 0)
}

// items walks over a select list, or over RETURNING.
func (b *Analysis) items(list []sqlparse.Item, s *Scope, seen *ctes) {
	for _, i := range list {
		before := len(b.instants)
		if call, ok := i.Expr.(*sqlparse.Call); ok && IsUnnest(call) && len(s.Refs) == 0 { // its rows are those of a list
			b.expressions(call.Args, s, seen)
		} else {
			b.expression(i.Expr, s, seen)
		}
		b.labels = b.labels || i.Alias.Name == "" && len(b.instants) > before
		s.qualifies(i.Of.Parts, "")
	}
}

// source adds the references of one element of FROM to a scope and returns them.
func (b *Analysis) source(src *sqlparse.Source, s *Scope, seen *ctes) []*Reference {
	switch {
	case src.Join != nil:
		return b.join(src.Join, s, seen)
	case src.Table != nil:
		r := b.reference(src.Table, seen)
		s.Refs = append(s.Refs, r)
		return []*Reference{r}
	case src.Query != nil:
		outer := s.outer
		if src.Lateral {
			outer = &Scope{outer: s.outer, Refs: s.Refs[:len(s.Refs):len(s.Refs)]}
		}
		b.query(src.Query, outer, seen)
	case src.Function != nil && sqlfunc.RowSources[src.Function.Function()]:
		b.expressions(src.Function.Args, s, seen)
	case src.Function != nil:
		b.expression(src.Function, s, seen)
	}
	r := &Reference{Role: Derived, Name: strings.ToLower(src.Alias.Name)}
	takeElements(r, src)
	b.carry(r, src.Query, src.Columns, nil)
	s.Refs = append(s.Refs, r)
	return []*Reference{r}
}

func (b *Analysis) join(j *sqlparse.Join, s *Scope, seen *ctes) []*Reference {
	before := len(s.outerJoins)
	left := b.source(j.Left, s, seen)
	right := b.source(j.Right, s, seen)
	both := slices.Concat(left, right)
	s.merge(j, left)
	switch j.Kind {
	case sqlparse.InnerJoin, sqlparse.CrossJoin:
		b.condition(j.On, s, both, seen)
		b.using(j, s, left, right)
		b.using(j, s, right, left)
		b.tighten(j.On, s, before)
	case sqlparse.LeftJoin:
		b.outerJoin(outerJoin{j, left, right}, s, seen)
	case sqlparse.RightJoin:
		b.outerJoin(outerJoin{j, right, left}, s, seen)
	default: // a full join returns every row, whatever ON says
		absent(both)
		b.condition(j.On, s, nil, seen)
	}
	return both
}

// outerJoin records a LEFT or RIGHT JOIN. Its ON says something about the optional side only.
func (b *Analysis) outerJoin(o outerJoin, s *Scope, seen *ctes) {
	absent(o.absent)
	s.outerJoins = append(s.outerJoins, o)
	b.condition(o.join.On, s, o.absent, seen)
	b.using(o.join, s, o.present, o.absent)
}

// absent marks references for which an outer join may add rows of NULLs.
func absent(refs []*Reference) {
	for _, r := range refs {
		r.Nullable++
	}
}

// merge records the columns of USING: without a qualifier they have the value of the left side, unless a right or a full join
// adds rows without one.
func (s *Scope) merge(j *sqlparse.Join, left []*Reference) {
	for _, c := range j.Using {
		name := strings.ToLower(c.Name)
		r := s.among(left, name)
		switch {
		case j.Kind == sqlparse.RightJoin, j.Kind == sqlparse.FullJoin, r == nil:
			delete(s.merged, name)
		case s.merged == nil:
			s.merged = map[string]*Reference{name: r}
		default:
			s.merged[name] = r
		}
	}
}

// among returns the one of some references to which a column of USING belongs, or nil.
func (s *Scope) among(refs []*Reference, name string) *Reference {
	if r := s.merged[name]; slices.Contains(refs, r) {
		return r
	}
	r, _ := (&Scope{Refs: refs}).find("", name)
	return r
}

// using records that columns of one name are equal on both sides, so what is known of one side is
// known of the other.
func (k *Knowledge) using(j *sqlparse.Join, s *Scope, from, to []*Reference) {
	for _, c := range j.Using {
		name := strings.ToLower(c.Name)
		left, right := s.among(from, name), s.among(to, name)
		if left != nil && right != nil {
			k.equal(Column{left, name}, Column{right, name})
		}
	}
}

func (b *Analysis) condition(e sqlparse.Expr, s *Scope, holds []*Reference, seen *ctes) {
	b.expression(e, s, seen)
	b.satisfied(e, s, holds)
}

func (b *Analysis) reference(t *sqlparse.Table, seen *ctes) *Reference {
	name := strings.ToLower(t.Name.Last().Name)
	r := &Reference{Name: name, At: t}
	if t.Alias.Name != "" {
		r.Name = strings.ToLower(t.Alias.Name)
	}
	if cte := seen.find(name); cte != nil && len(t.Name.Parts) == 1 {
		r.Role, r.At = Derived, nil
		cte.uses++
		b.Twice = b.Twice || cte.uses > 1
		b.carry(r, cte.query, cte.columns, cte)
		cte.recursion.readBy(b, r)
		return r
	}
	r.Schema, r.Known = b.Options.Schema[name]
	b.Refs = append(b.Refs, r)
	if table, ok := b.Snapshot.Lookup(name); ok {
		r.Role, r.Table = Sharded, table
		r.takeLeads()
		if of := r.Schema.Ambiguous; of != "" {
			b.RecordRefusal(table.Name, sharding.ErrKeyType, "it has two columns whose names differ only in case, "+of+" and another; rename one of them")
		}
		if r.elsewhere() {
			b.RecordRefusal(table.Name, sharding.ErrCrossShard, "write the table's name without a database or schema")
		}
	} else if b.Snapshot.IsBroadcast(name) {
		r.Role = Broadcast
	}
	return r
}
