package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// plan is a statement compiled for one row type, ready to be sent. It is
// immutable.
type plan struct {
	stmt              *statement
	style             style
	single            string // the text for one row
	head, group, tail []field
	keys              []key // to be filled; none unless the statement inserts
	missing           error // why the statement cannot store a generated key
	place             *placement
	max               int // parameters per statement
}

// planKey is what a plan depends on.
type planKey struct {
	query  string
	insert bool // query is a table's name
	typ    reflect.Type
	family family
	style  style
}

// compile makes the plan of a query for rows of type t.
func (h *Hook) compile(k planKey) (*plan, error) {
	stmt, err := parse(k.query, k.family)
	if err != nil {
		return nil, err
	}
	p := &plan{stmt: stmt, style: k.style, single: stmt.sql(1, k.style), max: h.limit(k.family)}
	// Where placeholders are numbered, "?" is an operator.
	if p.params() > 0 && (stmt.dollar || stmt.question && k.style == "") {
		return nil, fmt.Errorf("%w: it mixes :name with ? or $1; name every parameter", ErrStatement)
	}
	if p.place, err = h.placementOf(k, stmt); err != nil {
		return nil, err
	}
	if err := h.bind(p, k.typ); err != nil {
		return nil, err
	}
	if stmt.insert {
		p.keys, err = h.keysOf(k.typ)
		p.missing = stmt.missing(p.keys)
	}
	return p, err
}

// bind resolves the statement's parameters.
func (h *Hook) bind(p *plan, t reflect.Type) error {
	for _, part := range []struct {
		text   text
		fields *[]field
	}{{p.stmt.head, &p.head}, {p.stmt.group, &p.group}, {p.stmt.tail, &p.tail}} {
		for _, param := range part.text.params {
			f, err := h.fieldOf(t, param)
			if err != nil {
				return err
			}
			*part.fields = append(*part.fields, f)
		}
	}
	return nil
}

// fieldOf finds the field or map key that a parameter names.
func (h *Hook) fieldOf(t reflect.Type, param string) (field, error) {
	if t.Kind() == reflect.Map {
		return field{name: param, mapKey: reflect.ValueOf(param).Convert(t.Key())}, nil
	}
	fi := h.mapper.TypeMap(t).Names[param]
	if fi == nil {
		return field{}, fmt.Errorf("%w :%s: %s has no field of that name", ErrParameter, param, t)
	}
	return field{name: param, index: fi.Index}, nil
}

// missing says which key the statement would not store. Without a VALUES group
// (INSERT … SELECT, INSERT … SET) the key's parameter must occur somewhere.
func (s *statement) missing(keys []key) error {
	for _, k := range keys {
		stored := slices.Contains(s.head.params, k.column)
		for i, v := range s.values {
			named := s.columns == nil || i < len(s.columns) && strings.EqualFold(s.columns[i], k.column)
			stored = stored || named && slices.Contains(v.params, k.column)
		}
		if !stored {
			return fmt.Errorf("%s: %w: column %s, parameter :%[3]s", k.field.name, ErrKeyColumnMissing, k.column)
		}
	}
	return nil
}

// params is the number of parameters of the statement for one row.
func (p *plan) params() int {
	return len(p.stmt.head.params) + len(p.stmt.group.params) + len(p.stmt.tail.params)
}

// perStatement is how many rows fit into one statement.
func (p *plan) perStatement(n int) int {
	if len(p.group) == 0 {
		return n
	}
	return max(1, (p.max-len(p.head)-len(p.tail))/len(p.group))
}

// text returns the statement for n rows.
func (p *plan) text(n int) string {
	if n == 1 {
		return p.single
	}
	return p.stmt.sql(n, p.style)
}

// maxPlans bounds the plans a Hook keeps, for programs that make their SQL text
// anew for each call.
const maxPlans = 1024

// plans caches compiled plans. It is safe for concurrent use.
type plans struct {
	mu sync.RWMutex
	m  map[planKey]*plan // guarded by mu
}

func (c *plans) get(k planKey) *plan {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[k]
}

// put keeps p and, when the cache is full, drops any other plan: a program
// that fills it has no plan worth keeping more than the next.
func (c *plans) put(k planKey, p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= maxPlans {
		for old := range c.m {
			delete(c.m, old)
			break
		}
	}
	c.m[k] = p
}
