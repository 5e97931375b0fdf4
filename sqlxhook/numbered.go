package sqlxhook

import (
	"reflect"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// leaveNumbered leaves the column to the database that it numbers, which is sent NULL
// for it: the source of a migration does, as long as it serves t.
func (p *plan) leaveNumbered(t *sharding.Table) {
	o := t.Origin()
	if o == nil || o.Numbered == "" {
		return
	}
	for i := range p.keys {
		k := &p.keys[i]
		if !strings.EqualFold(o.Numbered, k.column) {
			continue
		}
		k.numbered, p.numbered = true, k
		for f := range p.fields {
			if p.fields[f].name == k.column {
				p.fields[f].numbered = &k.typ
			}
		}
	}
}

// singly cuts a batch into statements of one row when the database numbers its
// rows: what it gave to each of several is told by no database for certain.
func (p *plan) singly(r *rows) ([]int, error) {
	if p.numbered == nil {
		return nil, nil
	}
	empty, err := p.numbered.empty(r)
	if err != nil || len(empty) == 0 || r.n == 1 {
		return nil, err
	}
	cuts := make([]int, r.n)
	for i := range cuts {
		cuts[i] = i + 1
	}
	return cuts, nil
}

// number stores the key in a row that the database gave to it. Where it may be
// that of another row, as in an upsert, or does not fit, the field stays empty.
func (c *call) number(row int, res Result) {
	k := c.plan.numbered
	if k == nil || !k.integer || c.rows.n == 0 || res.RowsAffected != 1 || !c.plan.stmt.endsWithValues() {
		return
	}
	v, err := k.field.of(c.rows.at(row))
	if err != nil || !k.typ.IsEmpty(v) || !v.CanSet() {
		return
	}
	id, err := res.last.LastInsertId()
	if err != nil || id <= 0 {
		return
	}
	was := filled{key: k, rows: []int{row}, was: []reflect.Value{held(v)}}
	if k.typ.Set(v, id) == nil {
		c.filling.add(was)
	}
}

// endsWithValues reports whether nothing follows the only VALUES group.
func (s *statement) endsWithValues() bool {
	return s.groups == 1 && len(s.tail.params) == 0 && strings.Trim(strings.Join(s.tail.parts, ""), "; \t\r\n") == ""
}
