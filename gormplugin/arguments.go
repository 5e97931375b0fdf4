package gormplugin

import (
	"database/sql"
	"maps"
	"strings"

	"gorm.io/gorm/clause"
)

// arguments are the values of a raw condition's parameters.
type arguments struct {
	vars  []any
	names map[string]any // of @name parameters
}

// fragment reads a raw condition.
func (r *reader[E]) fragment(e clause.Expr) keyset[E] {
	if e.WithoutParentheses {
		return keyset[E]{all: true}
	}
	return r.node(&r.fragments.of(e.SQL).root, arguments{vars: e.Vars})
}

// named reads a raw condition with @name parameters. gorm looks for names inside
// of literals, too.
func (r *reader[E]) named(e clause.NamedExpr) keyset[E] {
	f := r.fragments.of(e.SQL)
	names, ok := namedValues(e.Vars)
	if f.quoted || strings.Contains(e.SQL, "?") || !ok {
		return keyset[E]{all: true}
	}
	return r.node(&f.root, arguments{names: names})
}

// namedValues returns the values of @name parameters; false for the structs that
// gorm also takes them from.
func namedValues(vars []any) (map[string]any, bool) {
	names := map[string]any{}
	for _, v := range vars {
		switch v := v.(type) {
		case sql.NamedArg:
			names[v.Name] = v.Value
		case map[string]any:
			maps.Copy(names, v)
		default:
			return nil, false
		}
	}
	return names, true
}

// node reads a part of a raw condition.
func (r *reader[E]) node(n *node, a arguments) keyset[E] {
	switch n.kind {
	case conjunction:
		both := r.node(&n.parts[0], a)
		for i := range n.parts[1:] {
			both = both.and(r.node(&n.parts[i+1], a))
		}
		return both
	case disjunction:
		either := r.node(&n.parts[0], a)
		for i := range n.parts[1:] {
			either = either.or(r.node(&n.parts[i+1], a))
		}
		return either
	case equality, membership:
		if place := r.compared(n); place != nil {
			return r.comparison(n, place, a)
		}
	}
	return keyset[E]{all: true}
}

// compared returns what the values of a comparison's column stand for, nil if it
// is no key.
func (r *reader[E]) compared(n *node) func(any) (E, error) {
	if n.column.qualified && !r.isOwn(n.column.table) {
		return nil
	}
	return r.places(n.column.column)
}

func (r *reader[E]) comparison(n *node, place func(any) (E, error), a arguments) keyset[E] {
	if n.kind == equality {
		if v, ok := a.value(n.right[0]); ok {
			return r.key(place, v)
		}
	} else if list, ok := a.list(n); ok {
		return r.keys(place, list)
	}
	return keyset[E]{all: true}
}

// value returns what an operand stands for.
func (a arguments) value(o operand) (any, bool) {
	switch {
	case o.kind == literal:
		return o.number, o.number != nil
	case o.kind == variable && o.variable < len(a.vars):
		return a.vars[o.variable], true
	case o.kind == named:
		v, ok := a.names[o.text]
		return v, ok
	}
	return nil, false
}

// list returns the values of IN's right side.
func (a arguments) list(n *node) ([]any, bool) {
	if !n.inParens {
		v, ok := a.value(n.right[0])
		if _, isBytes := v.([]byte); !ok || isBytes || !isList(v) {
			return nil, false
		}
		return elements(v), true
	}
	var list []any
	for i, o := range n.right {
		v, ok := a.value(o)
		switch {
		case !ok:
			return nil, false
		case i == 0 && n.adjoining && isList(v):
			list = append(list, elements(v)...) // gorm spreads it out
		default:
			list = append(list, v)
		}
	}
	return list, true
}

// variable returns which of the values is the list of a comparison with IN.
func (a arguments) variable(n *node) (int, bool) {
	if n.kind != membership || len(n.right) != 1 || n.right[0].kind != variable {
		return 0, false
	}
	i := n.right[0].variable
	return i, i < len(a.vars) && isList(a.vars[i])
}

// lists calls found with every value that is a list of keys.
func (r *reader[E]) lists(n *node, a arguments, found func(list int, place func(any) (E, error))) {
	for i := range n.parts {
		r.lists(&n.parts[i], a, found)
	}
	if list, ok := a.variable(n); ok {
		if place := r.compared(n); place != nil {
			found(list, place)
		}
	}
}
