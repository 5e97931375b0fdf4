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

// plan is a statement compiled for one row type. It is immutable.
type plan struct {
	key               planKey
	stmt              *statement
	single            string          // the text for one row
	fields            []field         // of all parameters
	head, group, tail []field         // parts of fields
	copies            reflect.Type    // an array of the row type; nil unless rows are copied as a whole
	fixed             int             // bytes of one row; -1 if rows differ in size
	keys              []key           // the keys to fill; none unless the statement inserts
	missing           error           // why the statement cannot store a generated key
	table             *sharding.Table // the table of the INSERT; nil unless it is sharded
	numbered          *key            // the one of keys that the database makes, if any
	defaults          *defaulted      // the statement with which PostgreSQL makes that key; nil for other databases, and if there is none
	limits            limits
	texts             *texts // the cache of the Hook; nil if the plan is not cached
}

// planKey holds all that a plan depends on. Plans are cached by it.
type planKey struct {
	query    string
	typ      reflect.Type
	mapper   *reflectx.Mapper
	style    style
	insert   bool // query is the name of a table
	database database
	snapshot *sharding.Snapshot // nil without a router, and if the statement names physical tables
}

// compile makes the plan for a query. k is the plan's key.
func (h *Hook) compile(k planKey, query string) (*plan, error) {
	stmt, err := parse(query, k.database)
	if err != nil {
		return nil, err
	}
	p := &plan{key: k, stmt: stmt, single: stmt.sql(1, k.style), limits: h.limitsOf(k.database)}
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
		h.applyTable(p)
	}
	p.copies = copiesOf(k.typ, p.fields)
	return p, err
}

// applyTable adds to the plan what the router knows of the table of the INSERT.
func (h *Hook) applyTable(p *plan) {
	if p.key.snapshot == nil {
		return
	}
	if t, ok := p.key.snapshot.Lookup(p.stmt.table); ok {
		p.table = t
		h.useSlotKeys(p.keys, p.key.mapper, p.key.typ, t)
		p.leaveNumbered(t)
	}
}

// bind finds the field or map key of each parameter.
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

// fieldOf returns the field or map key that a parameter names.
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

// missing returns an error that names the first key that the statement would not store.
// Without a VALUES group (INSERT … SELECT, INSERT … SET) the key's parameter must occur
// anywhere in the statement.
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

// params returns the number of parameters of the statement for one row.
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
