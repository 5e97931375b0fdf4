// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sharding"
)

// plan is a statement compiled for one row type, ready to be sent. It is
// immutable.
type plan struct {
	key               planKey
	stmt              *statement
	single            string          // the text for one row
	fields            []field         // of all parameters
	head, group, tail []field         // parts of fields
	copies            reflect.Type    // array of the rows' type, nil unless rows are copied whole
	fixed             int             // bytes of one row, -1 if they differ
	keys              []key           // to be filled; none unless the statement inserts
	missing           error           // why the statement cannot store a generated key
	table             *sharding.Table // that is inserted into, nil unless it is sharded
	numbered          *key            // of keys, the one that the database fills, if any
	defaults          *defaulted      // how it is left to PostgreSQL; nil where the statement cannot
	family            family
	limits            limits
	texts             *texts // of the hook; nil when the plan itself is not cached
}

// planKey is what a plan depends on.
type planKey struct {
	query    string
	typ      reflect.Type
	mapper   *reflectx.Mapper
	style    style
	insert   bool // query is a table's name
	family   family
	snapshot *sharding.Snapshot // nil without a router, and when names are physical names
}

// compile makes the plan of a query that k is the key of, or whose table it is.
func (h *Hook) compile(k planKey, query string) (*plan, error) {
	stmt, err := parse(query, k.family)
	if err != nil {
		return nil, err
	}
	p := &plan{key: k, stmt: stmt, single: stmt.sql(1, k.style), family: k.family, limits: h.limitsOf(k.family)}
	// Where placeholders are numbered, "?" is an operator.
	if p.params() > 0 && (stmt.dollar || stmt.question && k.style == "") {
		return nil, fmt.Errorf("%w: it mixes :name with ? or $1; name every parameter", ErrStatement)
	}
	if err := p.bind(); err != nil {
		return nil, err
	}
	if stmt.insert {
		p.keys, err = h.keysOf(k.mapper, k.typ)
		p.missing = stmt.missing(p.keys)
		h.place(p)
	}
	p.copies = copiesOf(k.typ, p.fields)
	return p, err
}

// place takes in what the router knows of the table that p inserts into.
func (h *Hook) place(p *plan) {
	if p.key.snapshot == nil {
		return
	}
	if t, ok := p.key.snapshot.Lookup(p.stmt.table); ok {
		p.table = t
		h.carry(p.keys, p.key.mapper, p.key.typ, t)
		p.leaveNumbered(t)
	}
}

// bind resolves the statement's parameters.
func (p *plan) bind() error {
	p.fields = make([]field, 0, p.params())
	for _, t := range [...]*text{&p.stmt.head, &p.stmt.group, &p.stmt.tail} {
		for _, param := range t.params {
			f, err := fieldOf(p.key.mapper, p.key.typ, param)
			if err != nil {
				return err
			}
			p.fields = append(p.fields, f)
		}
	}
	head, tail := len(p.stmt.head.params), len(p.fields)-len(p.stmt.tail.params)
	p.head, p.group, p.tail = p.fields[:head], p.fields[head:tail], p.fields[tail:]
	p.fixed = p.fixedRow()
	return nil
}

// fieldOf finds the field or map key that a parameter names.
func fieldOf(m *reflectx.Mapper, t reflect.Type, param string) (field, error) {
	if t.Kind() == reflect.Map {
		return field{name: param, own: -1, mapKey: reflect.ValueOf(param).Convert(t.Key())}, nil
	}
	fi := m.TypeMap(t).Names[param]
	if fi == nil {
		return field{}, fmt.Errorf("%w :%s: %s has no field of that name", ErrParameter, param, t)
	}
	return structField(param, t, fi.Index), nil
}

// missing says which key the statement would not store. Without a VALUES group
// (INSERT … SELECT, INSERT … SET) the key's parameter must occur somewhere.
func (s *statement) missing(keys []key) error {
	for _, k := range keys {
		stored := slices.Contains(s.head.params, k.column)
		for i, v := range s.values {
			named := s.columns == nil || i < len(s.columns) && strings.EqualFold(s.columns[i], k.column)
			stored = stored || named && slices.Contains(v, k.column)
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

// text returns the statement for n rows.
func (p *plan) text(n int) string {
	switch {
	case n == 1:
		return p.single
	case p.texts == nil:
		return p.stmt.sql(n, p.key.style)
	}
	return p.texts.of(p, n)
}
