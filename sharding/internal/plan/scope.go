package plan

import "strings"

// scope is the tables among which a SELECT, UPDATE or DELETE finds its columns,
// and the scope around it.
type scope struct {
	outer *scope
	refs  []*reference
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
