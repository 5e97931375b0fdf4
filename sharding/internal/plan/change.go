// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// changer records the changes of an UPDATE or DELETE.
type changer struct{ *builder }

// change walks over an UPDATE or DELETE.
func (b *builder) change(c *sqlparse.Change) {
	s, to := &scope{}, changer{b}
	seen := b.with(c.With, nil, nil)
	if !c.Multi {
		for i := range c.Targets {
			r := b.reference(&c.Targets[i], nil) // a CTE cannot be written
			r.written, r.renamed = true, len(c.Set) == 0
			s.refs, s.target = append(s.refs, r), r
		}
	}
	for i := range c.From {
		b.source(&c.From[i], s, seen)
	}
	if c.Multi {
		to.deleted(c.Targets, s)
	}
	b.where(c.Where, s, seen)
	to.name(c, s)
	for _, set := range c.Set {
		b.expression(set.Value, s, seen)
		to.assignment(set, s)
	}
	to.rekeys(c, s)
	b.loses(c, s)
	for _, o := range c.OrderBy {
		b.expression(o.Expr, s, seen)
	}
	b.limit(c.Limit, s, seen)
	for i := range c.Returning {
		b.item(&c.Returning[i], s, seen)
	}
}

// deleted marks the tables that DELETE a, b FROM … deletes from.
func (b changer) deleted(targets []sqlparse.Table, s *scope) {
	for _, t := range targets {
		if r := s.named(last(t.Name)); r != nil {
			r.written = true
		} else {
			b.recordRefusal(last(t.Name), sharding.ErrRawTable, "it is not among the tables in FROM of the DELETE")
		}
	}
}

// assignment is a value that a statement assigns to a column which leads to slots.
type assignment struct {
	of    *reference
	lead  *lead
	value operand
}

// assignment records the changes of SET. A row whose new key leads to another slot would no longer
// be found.
func (b changer) assignment(set sqlparse.Assignment, s *scope) {
	for _, name := range set.Columns {
		b.rowid(s.refs[0], last(name))
		c, ok := s.assigned(name)
		if !ok { // it leads to no slot, because the columns that do are known
			s.mayWrite(last(name))
			continue
		}
		c.of.written = true
		s.qualified(name)
		l := c.of.lead(c.name)
		if l == nil {
			continue
		}
		v, constant := constant(set.Value)
		if !constant || len(set.Columns) > 1 {
			b.recordRefusal(l.table.Name, sharding.ErrKeyChange, "leave "+l.column+" out, or set it to a value; to move a row, insert a new one and delete the old one")
			continue
		}
		b.assigned = append(b.assigned, assignment{c.of, l, v})
	}
}

// mayWrite marks the tables that may have a column of this name.
func (s *scope) mayWrite(name string) {
	for _, r := range s.refs {
		if has, certain := r.has(strings.ToLower(name)); has || !certain {
			r.written = true
		}
	}
}

// keyStays refuses to change the slot of a row.
func (p *binding) keyStays() error {
	for _, a := range p.assigned {
		value, column := a.value.value(p.args), strings.ToLower(a.lead.column)
		have, next := a.of.slots(p.args), a.lead.slotOf(value)
		cut := a.of.schema.Columns[a.lead.column].keeps(column, value, p.statement.Change != nil && p.statement.Change.Ignore)
		switch {
		case cut != nil:
			return p.refusal(a.lead.table.Name, cut, cutHint)
		case value == nil:
			return p.refusal(a.lead.table.Name, sharding.ErrKeyChange,
				"a row without "+column+" belongs to no shard; delete it instead, as gorm's Association does after Unscoped")
		case !have.one || !next.one || have.only != next.only:
			return p.refusal(a.lead.table.Name, sharding.ErrKeyChange,
				"the row would belong to another shard; insert a new row and delete the old one, or leave "+column+" out")
		}
	}
	return nil
}
