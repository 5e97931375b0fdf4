package plan

import (
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

	leads []*lead
	led   *reference // of a derived one: of which table its leads are columns
	given []proof    // of rows that are inserted: what they have
	proof proof      // nil: nothing is proved
}

// column is a column of a reference, its name in lower case.
type column struct {
	of   *reference
	name string
}

// label returns the name of the table, for messages.
func (r *reference) label() string { return r.at.Name.Parts[len(r.at.Name.Parts)-1].Name }

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
	if r.known {
		_, has = r.schema.Columns[name]
		return has, true
	}
	if r.lead(name) != nil {
		return true, true
	}
	return false, false
}

// holds returns what a column holds: what the rule needs where nobody has read it.
func (r *reference) holds(name string) Holding {
	if r.known {
		return r.schema.Columns[name].Holds
	}
	if l := r.lead(name); l != nil {
		return l.holds
	}
	return Other
}

// leadsOf returns the columns of a sharded table that lead to slots.
func leadsOf(t *sharding.Table, s Table, known bool) []*lead {
	key := newLead(t, t.Key, t.Rule, s, known)
	key.always = true
	leads := []*lead{key}
	for _, alt := range t.Also {
		l := newLead(t, alt.Column, alt.Rule, s, known)
		l.always = alt.From == 0
		leads = append(leads, l)
	}
	return leads
}

func newLead(t *sharding.Table, name string, rule sharding.Rule, s Table, known bool) *lead {
	l := &lead{table: t, column: strings.ToLower(name), rule: rule}
	d := sharding.Describe(rule)
	switch rule := rule.(type) {
	case sharding.IntervalRule:
		l.order, l.unit = true, rule.Precision()
	default:
		l.order = d.Kind == sharding.KindRanges
	}
	if known {
		l.holds = s.Columns[l.column].Holds
		return l
	}
	switch d.Keys {
	case sharding.KeysIntegers:
		l.holds = Integers
	case sharding.KeysTexts:
		l.holds = Bytes
	case sharding.KeysTimes:
		l.holds = Times
	}
	return l
}

// scope is the tables among which a SELECT, UPDATE or DELETE finds its columns,
// and the scope around it.
type scope struct {
	outer  *scope
	refs   []*reference
	inside []*reference // of a SELECT, those of its subqueries included
	outers []outerJoin  // those inside others before them
	ranks  bool         // there is a window function or a variable in it
}

// resolve returns the column that a name means, or false where that is not
// certain. An unqualified name belongs to the innermost scope that can have it.
func (s *scope) resolve(qualifier, name string) (column, bool) {
	qualifier, name = strings.ToLower(qualifier), strings.ToLower(name)
	for ; s != nil; s = s.outer {
		r, certain := s.find(qualifier, name)
		if r != nil {
			return column{r, name}, certain
		}
		if !certain {
			return column{}, false
		}
	}
	return column{}, false
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
