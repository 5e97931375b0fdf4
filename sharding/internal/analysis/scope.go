// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Scope is the tables in which a SELECT, UPDATE or DELETE finds its columns, and the outer scope.
type Scope struct {
	outer      *Scope
	Refs       []*Reference
	Inside     []*Reference          // for a SELECT, those of its subqueries included
	outerJoins []outerJoin           // a join precedes the joins that contain it
	merged     map[string]*Reference // the columns of USING, with the table whose value they have
	ranks      bool                  // it contains a variable or an unknown function
	// windows are the window functions over its rows.
	windows    []*sqlparse.Call
	groupBy    []sqlparse.Expr // see grouping; none with WITH ROLLUP, which adds groups of all rows
	Quantified bool            // its expressions contain ALL, ANY or SOME (SELECT …)
	// Operand: it is a subquery in an expression, whose columns no other scope sees.
	Operand bool
	// target is the table whose columns SET names, whatever other tables have. It is nil if SET may
	// name columns of any table, as in MySQL's UPDATE of several tables.
	target *Reference
}

// resolve returns the column that a name denotes, or the zero Column and false if that is uncertain. An unqualified
// name belongs to the innermost scope that can have it.
func (s *Scope) resolve(n sqlparse.Name) (Column, bool) {
	qualifier, name := "", strings.ToLower(n.Last().Name)
	if len(n.Parts) > 1 {
		qualifier = strings.ToLower(n.Parts[len(n.Parts)-2].Name)
	}
	in, r, _ := s.locate(qualifier, name)
	if r == nil {
		return Column{}, false
	}
	return Column{in.owner(r, name), name}, true
}

// locate returns the reference to which a column belongs, and its scope: the innermost one that can have it. Without one it
// reports whether that is certain.
func (s *Scope) locate(qualifier, name string) (in *Scope, r *Reference, certain bool) {
	for ; s != nil; s = s.outer {
		if r, certain := s.find(qualifier, name); r != nil || !certain {
			return s, r, certain
		}
	}
	return nil, nil, true
}

// owner returns the reference that has a column with the qualifier r. If r has no such column, it
// is a reference of the same name outside of the subquery: SQLite, MySQL and MariaDB search there,
// and PostgreSQL refuses the text.
func (s *Scope) owner(r *Reference, name string) *Reference {
	if has, sure := r.Has(name); has || !sure {
		return r
	}
	for ; s != nil; s = s.outer {
		for _, other := range s.Refs {
			if has, _ := other.Has(name); has && other.Name == r.Name {
				return other
			}
		}
	}
	return r
}

// find returns the reference of one scope to which a column belongs. Without one it reports whether
// that is certain.
func (s *Scope) find(qualifier, name string) (found *Reference, certain bool) {
	if qualifier != "" {
		for _, r := range s.Refs {
			if r.Name == qualifier {
				return r, true
			}
		}
		return nil, true
	}
	if r := s.merged[name]; r != nil {
		return r, true
	}
	certain = true
	for _, r := range s.Refs {
		switch has, sure := r.Has(name); {
		case has && found != nil:
			return nil, false // the database refuses the text, or an outer join's USING has joined both
		case has:
			found = r
		case !sure:
			certain = false
		}
	}
	// Two tables of one scope with such a column would be ambiguous, which a database refuses. So
	// the name denotes the table that certainly has the column.
	return found, found != nil || certain
}

// named returns the reference that a name denotes.
func (s *Scope) named(name string) *Reference {
	_, r, _ := s.locate(strings.ToLower(name), "")
	return r
}

// Column returns the column if an expression is one, otherwise the zero Column.
func (s *Scope) Column(e sqlparse.Expr) (Column, bool) {
	c, ok := sqlparse.Bare(e).(*sqlparse.Column)
	if !ok || len(c.Name.Parts) > 2 {
		return Column{}, false
	}
	return s.resolve(c.Name)
}

// qualified records a table's name before a column's name.
// It returns false if no table has the name.
func (s *Scope) qualified(n sqlparse.Name) bool {
	return s.qualifies(n.Parts[:len(n.Parts)-1], strings.ToLower(n.Last().Name))
}

// qualifies records a table's name that occurs elsewhere than in FROM, before the column or "".
func (s *Scope) qualifies(parts []sqlparse.Ident, column string) bool {
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
	r.Columns = append(r.Columns, name)
	return true
}

// lacks reports whether certainly no table has a column with a name, which is not qualified.
func (s *Scope) lacks(n sqlparse.Name) bool {
	name := strings.ToLower(n.Last().Name)
	if len(n.Parts) > 1 || SystemColumns[name] || sqlfunc.ClockNames[name] || s.named(name) != nil {
		return false
	}
	_, r, certain := s.locate("", name)
	return r == nil && certain
}

// Unresolved says that an expression is written like a column, but certainly of no table, or maybe of one of several, and
// what to do. It returns "" for other expressions.
func (b *Analysis) Unresolved(s *Scope, e sqlparse.Expr) string {
	c, ok := sqlparse.Bare(e).(*sqlparse.Column)
	if ok && len(c.Name.Parts) == 1 && s.isAmbiguous(strings.ToLower(c.Name.Last().Name)) {
		return "several tables of the statement have a column " + c.Name.Last().Name + "; write the name of its table before it"
	}
	return misspelt(b, s, e)
}

func misspelt(b *Analysis, s *Scope, e sqlparse.Expr) string {
	c, ok := sqlparse.Bare(e).(*sqlparse.Column)
	if !ok || b.SQLite && b.Statement.Text[c.From] == '"' { // SQLite's "x" is a text if no column has that name
		return ""
	}
	name := strings.ToLower(c.Name.Last().Name)
	missing := !b.aliases[name] && s.lacks(c.Name)
	if len(c.Name.Parts) > 1 {
		found, _ := s.resolve(c.Name)
		missing = found.Of == nil || found.Of.Known && !found.Of.has(name) && !SystemColumns[name]
	}
	if !missing {
		return ""
	}
	return "no table of the statement is known to have a column " + c.Of(b.Statement.Text) + "; correct the name"
}

// Misspelt says that a column that is compared, selected or aggregated is of no table. It returns "" if none is known to be.
func (b *Analysis) Misspelt() string {
	for _, f := range b.Facts {
		for _, q := range equalities(f.Expr) {
			if why := misspelt(b, f.Scope, q.left); why != "" {
				return why
			}
		}
	}
	for _, f := range b.shown {
		e := f.Expr
		if call, ok := sqlparse.Bare(e).(*sqlparse.Call); ok && sqlfunc.IsAggregate(call) && len(call.Args) == 1 {
			e = call.Args[0]
		}
		if why := misspelt(b, f.Scope, e); why != "" {
			return why
		}
	}
	return ""
}

// isAmbiguous reports whether the innermost tables that have a column are several.
func (s *Scope) isAmbiguous(name string) bool {
	for ; s != nil && s.merged[name] == nil; s = s.outer {
		if of := slices.DeleteFunc(slices.Clone(s.Refs), func(r *Reference) bool { return !r.has(name) }); len(of) > 0 {
			return len(of) > 1
		}
	}
	return false
}

// SystemColumns lists the columns that each table of SQLite or PostgreSQL has. Their values tell rows of one table apart, and
// those of several shards have the same.
var SystemColumns = sqlfunc.Words("rowid _rowid_ oid ctid tableoid xmin xmax cmin cmax")

// isOfOuter reports whether an aggregate in a subquery belongs to an outer query: all of its columns
// are columns of that query.
func (s *Scope) isOfOuter(call *sqlparse.Call) bool {
	if s == nil || s.outer == nil || !sqlfunc.HasAggregate(call) {
		return false
	}
	hasColumns := false
	return !sqlparse.Any(call, func(e sqlparse.Expr) bool {
		c, known := s.Column(e)
		hasColumns = hasColumns || known
		return known && slices.Contains(s.Refs, c.Of)
	}) && hasColumns
}

// MayHave reports whether one of the tables has a column, or may have it.
func (s *Scope) MayHave(name string) bool {
	return slices.ContainsFunc(s.Refs, func(r *Reference) bool {
		has, certain := r.Has(strings.ToLower(name))
		return has || !certain
	})
}

// Starred returns the tables whose columns * or name.* selects.
func (s *Scope) Starred(i sqlparse.Item) []*Reference {
	switch {
	case !i.Star:
		return nil
	case len(i.Of.Parts) == 0:
		return s.Refs
	}
	r, _ := s.find(strings.ToLower(i.Of.Last().Name), "")
	return []*Reference{r}
}

// Single reports whether a condition names one row of the only table by a unique key.
func (s *Scope) Single(where sqlparse.Expr) bool {
	return len(s.Refs) == 1 && catalog.HasKey(s.Refs[0].Schema.Unique, func(name string) bool {
		values, _ := valuesBy(where, s, Column{s.Refs[0], name})
		return len(values) == 1
	})
}

// valuesBy returns the values one of which a column has by a condition, and that condition.
func valuesBy(where sqlparse.Expr, s *Scope, c Column) ([]proof.Operand, sqlparse.Expr) {
	for _, e := range sqlparse.Conjuncts(where) {
		for _, q := range equalities(e) {
			values, ok := proof.Constants(q.right)
			if found, _ := s.Column(q.left); ok && found == c {
				return values, e
			}
		}
	}
	return nil, nil
}

// Rejects reports whether a condition is never true of a row in which the columns of these
// references are NULL.
func (s *Scope) Rejects(e sqlparse.Expr, absent []*Reference) bool {
	null := func(e sqlparse.Expr) bool {
		c, _ := s.Column(e)
		return slices.Contains(absent, c.Of)
	}
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
	switch {
	case !ok:
	case o.Op >= sqlparse.Equal && o.Op <= sqlparse.GreaterEqual:
		left, right := o.Operands[0], o.Operands[1]
		return null(left) && !isAll(right) || null(right) && !isAll(left)
	case o.Op == sqlparse.In, o.Op == sqlparse.Between, o.Op == sqlparse.Like:
		return !o.Not && null(o.Operands[0])
	case o.Op == sqlparse.IsNull:
		return o.Not && null(o.Operands[0])
	case o.Op == sqlparse.Or:
		return !slices.ContainsFunc(o.Operands, func(e sqlparse.Expr) bool { return !s.Rejects(e, absent) })
	}
	return false
}

// isAll reports whether an operand is ALL (query), to which every comparison is true if the query
// returns no rows.
func isAll(e sqlparse.Expr) bool {
	call, ok := sqlparse.Bare(e).(*sqlparse.Call)
	return ok && call.Function() == "all"
}
