// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// role is what a table is to the router.
type role uint8

const (
	home      role = iota // a table of the home database alone
	broadcast             // the same rows in every database
	sharded
	derived // a subquery, a CTE or a function: what is in it has references of its own
)

// reference is one place in a statement that names a table.
type reference struct {
	role    role
	table   *sharding.Table // of a sharded one
	name    string          // by which columns name it, in lower case
	schema  Table           // the zero Table where nobody has read the columns
	known   bool            // somebody has
	at      *sqlparse.Table // nil for a derived one
	written bool
	// nullable is how many outer joins make rows without one of it.
	nullable int
	query    *sqlparse.Query // of a derived one whose columns are known
	// renamed: it stands where no alias can be given, so what qualifies columns with
	// the table's name has to be renamed with it.
	renamed bool
	columns []sqlparse.Ident // that qualify columns with it

	leads    []*lead
	indirect []*lead    // columns whose values lead to slots by way of a lookup table
	led      *reference // of a derived one: of which table its leads are columns
	given    []proof    // of rows that are inserted: what they have
	proof    proof      // nil: nothing is proved
}

// column is a column of a reference, its name in lower case.
type column struct {
	of   *reference
	name string
}

// elsewhere reports whether the table's name stands behind that of a database, or of another
// schema than the one in which the shards' tables lie.
func (r *reference) elsewhere() bool {
	parts := r.at.Name.Parts
	here := len(parts) == 2 && r.schema.Namespace != "" && strings.EqualFold(parts[0].Name, r.schema.Namespace)
	return len(parts) > 1 && !here
}

// label returns the name of the table, for messages.
func (r *reference) label() string { return last(r.at.Name) }

// lead returns the lead that a column is, or nil.
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

func (c column) holds() Holding { return c.of.schema.Columns[c.name].Holds }

// takeLeads gives a sharded table its columns that lead to slots. Where nobody has read
// them, they hold what the rule needs.
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

// isKept reports whether a unique key is one column of which a lookup table keeps each
// value to one owner.
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
	l.holds = r.schema.Columns[l.column].Holds
	r.leads = append(r.leads, l)
}

// scope is the tables among which a SELECT, UPDATE or DELETE finds its columns,
// and the scope around it.
type scope struct {
	outer  *scope
	refs   []*reference
	inside []*reference // of a SELECT, those of its subqueries included
	outers []outerJoin  // those inside others before them
	ranks  bool         // there is a variable or an unknown function in it
	// windows are the window functions over its rows.
	windows    []*sqlparse.Call
	quantified bool // there is ALL, ANY or SOME (SELECT …) in its expressions
	// target is the table of which SET names columns, whatever other tables have: nil where
	// it may name those of any, as MySQL's UPDATE of several tables does.
	target *reference
}

// assigned returns the column that SET gives a value, or false where that is not certain.
func (s *scope) assigned(n sqlparse.Name) (column, bool) {
	if s.target != nil {
		s = &scope{refs: []*reference{s.target}}
	}
	return s.resolve(n)
}

// resolve returns the column that a name means, or false where that is not
// certain. An unqualified name belongs to the innermost scope that can have it.
func (s *scope) resolve(n sqlparse.Name) (column, bool) {
	qualifier, name := "", strings.ToLower(last(n))
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

// owner returns the reference that has a column, which the qualifier r stands before: where r
// has no such column, one of the same name outside of the subquery. SQLite, MySQL and MariaDB
// look there; PostgreSQL refuses the text.
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

// find returns the reference of one scope that a column belongs to. Without one it
// reports whether that is certain.
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
			return nil, false // the database refuses it, or USING has joined both
		case has:
			found = r
		case !sure:
			certain = false
		}
	}
	// Two tables of one scope with such a column would be ambiguous, which a
	// database refuses. So what surely has it is what is meant.
	return found, found != nil || certain
}
