// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// role is the kind of a table for the router.
type role uint8

const (
	home      role = iota // a table that only the home database has
	broadcast             // the same rows in every database
	sharded
	derived // a subquery, a CTE or a function; its inner tables have their own references
)

// reference is one place in a statement that names a table.
type reference struct {
	role    role
	table   *sharding.Table // for a sharded table
	name    string          // the qualifier of its columns, in lower case
	schema  Table           // the zero Table if the columns were not read
	known   bool            // the columns were read
	at      *sqlparse.Table // nil for a derived table
	written bool
	// nullable is the number of outer joins that add rows without a row of it.
	nullable int
	query    *sqlparse.Query // the query of a derived table whose columns are known
	// renamed: no alias is allowed in its place, so qualifiers with the table's name are renamed
	// with it.
	renamed bool
	columns []sqlparse.Ident // the qualifiers of its columns

	leads    []*lead
	indirect []*lead    // columns whose values lead to slots through a lookup table
	led      *reference // for a derived table: the table whose columns its leads are
	given    []proof    // proofs of inserted rows
	proof    proof      // nil if nothing is proved
}

// column is a column of a reference, its name in lower case.
type column struct {
	of   *reference
	name string
}

// elsewhere reports whether the table's name is qualified with a database, or with another schema
// than that of the shards' tables.
func (r *reference) elsewhere() bool {
	parts := r.at.Name.Parts
	here := len(parts) == 2 && r.schema.Namespace != "" && strings.EqualFold(parts[0].Name, r.schema.Namespace)
	return len(parts) > 1 && !here
}

// label returns the name of the table, for messages.
func (r *reference) label() string { return r.at.Name.Last().Name }

// formedKey returns a sharding key in the form in which its column returns it, false if that is unknown.
func (r *reference) formedKey(key any) (form any, known bool) {
	if l := r.lead(strings.ToLower(r.table.Key)); l != nil {
		return l.formed(key)
	}
	return key, true
}

// lead returns the lead of a column, or nil.
func (r *reference) lead(name string) *lead {
	for _, l := range r.leads {
		if l.column == name {
			return l
		}
	}
	return nil
}

// has reports whether the reference has a column, and whether that is certain.
func (r *reference) has(name string) (has, certain bool) {
	_, has = r.schema.Columns[name]
	return has, has || r.known
}

// isKey reports whether the column is the sharding key, and its value in a row of the result is that of a row of the table.
func (c column) isKey() bool {
	return c.of.role == sharded && c.of.nullable == 0 && strings.EqualFold(c.name, c.of.table.Key)
}

// isPrimaryKey reports whether the column is a primary key by itself.
func (c column) isPrimaryKey() bool {
	t := c.of.schema
	return t.Primary && len(t.Unique[0]) == 1 && t.Unique[0][0] == c.name
}

func (c column) holds() Holding { return c.of.schema.Columns[c.name].Holds }

// takeLeads sets the columns of a sharded table that lead to slots. If the columns were not read,
// it assumes that they hold what the rule needs.
func (r *reference) takeLeads() {
	if !r.known {
		r.schema.Columns = map[string]Column{}
	}
	t := r.table
	r.takeLead(t.Key, t.Rule, true)
	for _, alt := range t.Also {
		r.takeLead(alt.Column, alt.Rule, alt.From == 0)
	}
	for i := range t.Lookups {
		l := &lead{table: t, column: strings.ToLower(t.Lookups[i].Column), lookup: &t.Lookups[i]}
		if !r.known {
			r.schema.Columns[l.column] = Column{}
		}
		if !l.lookup.Building {
			r.indirect = append(r.indirect, l)
		}
	}
}

// isKept reports whether a unique key is one column whose values a lookup table keeps unique.
func (r *reference) isKept(key []string) bool {
	return len(key) == 1 && slices.ContainsFunc(r.indirect, func(l *lead) bool { return l.lookup.Unique && l.column == key[0] })
}

func (r *reference) takeLead(name string, rule sharding.Rule, always bool) {
	l := &lead{table: r.table, column: strings.ToLower(name), rule: rule, always: always}
	d := sharding.Describe(rule)
	l.order = d.Kind == sharding.KindRanges
	if rule, ok := rule.(sharding.IntervalRule); ok {
		l.order, l.unit = true, rule.Precision()
	}
	if !r.known {
		needs := map[sharding.Keys]Holding{sharding.KeysIntegers: Integers, sharding.KeysTexts: Bytes, sharding.KeysTimes: Times}
		r.schema.Columns[l.column] = Column{Holds: needs[d.Keys]}
	}
	c := r.schema.Columns[l.column]
	l.holds, l.form, l.apart = c.Holds, c.Form, c.Apart
	r.leads = append(r.leads, l)
}

// scope is the tables in which a SELECT, UPDATE or DELETE finds its columns, and the outer scope.
type scope struct {
	outer  *scope
	refs   []*reference
	inside []*reference // for a SELECT, those of its subqueries included
	outers []outerJoin  // a join precedes the joins that contain it
	ranks  bool         // it contains a variable or an unknown function
	// windows are the window functions over its rows.
	windows    []*sqlparse.Call
	groupBy    []sqlparse.Expr // without WITH ROLLUP, which adds groups of all rows
	quantified bool            // its expressions contain ALL, ANY or SOME (SELECT …)
	// target is the table whose columns SET names, whatever other tables have. It is nil if SET may
	// name columns of any table, as in MySQL's UPDATE of several tables.
	target *reference
}

// assigned returns the column that SET assigns, or false if that is uncertain.
func (s *scope) assigned(n sqlparse.Name) (column, bool) {
	if s.target != nil {
		s = &scope{refs: []*reference{s.target}}
	}
	return s.resolve(n)
}

// resolve returns the column that a name denotes, or false if that is uncertain. An unqualified
// name belongs to the innermost scope that can have it.
func (s *scope) resolve(n sqlparse.Name) (column, bool) {
	qualifier, name := "", strings.ToLower(n.Last().Name)
	if len(n.Parts) > 1 {
		qualifier = strings.ToLower(n.Parts[len(n.Parts)-2].Name)
	}
	for ; s != nil; s = s.outer {
		r, certain := s.find(qualifier, name)
		if r != nil {
			return column{s.owner(r, name), name}, certain
		}
		if !certain {
			return column{}, false
		}
	}
	return column{}, false
}

// owner returns the reference that has a column with the qualifier r. If r has no such column, it
// is a reference of the same name outside of the subquery: SQLite, MySQL and MariaDB search there,
// and PostgreSQL refuses the text.
func (s *scope) owner(r *reference, name string) *reference {
	if has, sure := r.has(name); has || !sure {
		return r
	}
	for ; s != nil; s = s.outer {
		for _, other := range s.refs {
			if has, _ := other.has(name); has && other.name == r.name {
				return other
			}
		}
	}
	return r
}

// find returns the reference of one scope to which a column belongs. Without one it reports whether
// that is certain.
func (s *scope) find(qualifier, name string) (found *reference, certain bool) {
	if qualifier != "" {
		for _, r := range s.refs {
			if r.name == qualifier {
				return r, true
			}
		}
		return nil, true
	}
	certain = true
	for _, r := range s.refs {
		switch has, sure := r.has(name); {
		case has && found != nil:
			return nil, false // the database refuses the text, or USING has joined both
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
