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
	}
	sets := s.settings(c.Set)
	for _, set := range sets {
		to.assignment(set, s)
	}
	to.rekeys(c, sets, s)
	b.loses(c, sets, s)
	for _, o := range c.OrderBy {
		b.expression(o.Expr, s, seen)
	}
	b.limit(c.Limit, s, seen)
	b.items(c.Returning, s, seen)
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

// setting is one column to which SET assigns a value.
type setting struct {
	name   sqlparse.Name
	column string     // in lower case, without its qualifier
	of     *reference // nil if it is uncertain whose column it is
	to     *operand   // the value, nil if it is unknown
	keeps  bool       // the value is the column's own: id = id, and MySQL's id = LAST_INSERT_ID(id), which also stores it
	renews bool       // the value is that of the new row: id = VALUES(id), id = excluded.id
}

// settings returns the columns to which SET assigns. Of (a, b) = (…), the values are unknown.
func (s *scope) settings(list []sqlparse.Assignment) (all []setting) {
	for _, a := range list {
		for _, name := range a.Columns {
			set := setting{name: name, column: strings.ToLower(last(name))}
			if c, ok := s.assigned(name); ok {
				set.of = c.of
			}
			if len(a.Columns) == 1 {
				set.take(bare(a.Value), s)
			}
			all = append(all, set)
		}
	}
	return all
}

// settings returns the columns of one table to which SET assigns.
func (r *reference) settings(list []sqlparse.Assignment) []setting {
	return (&scope{refs: []*reference{r}}).settings(list)
}

// take records the value that an expression assigns.
func (set *setting) take(value sqlparse.Expr, s *scope) {
	if v, ok := constant(value); ok {
		set.to = &v
	}
	function := ""
	if call, ok := value.(*sqlparse.Call); ok && len(call.Args) == 1 {
		function, value = nameOf(call), bare(call.Args[0])
	}
	from, isColumn := value.(*sqlparse.Column)
	if !isColumn || !strings.EqualFold(last(from.Name), set.column) {
		return
	}
	own, known := s.column(value)
	set.keeps = known && own.of == set.of && (function == "" || function == "last_insert_id")
	set.renews = function == "" || function == "values" // a column of the table itself keeps its value
}

// changes reports whether it may give a column of a table another value than its own.
func (set setting) changes(of *reference, column string) bool {
	return strings.EqualFold(set.column, column) && !set.keeps && (set.of == nil || set.of == of)
}

// assignment records the changes of SET. A row whose new key leads to another slot would no longer
// be found.
func (b changer) assignment(set setting, s *scope) {
	b.rowid(s.refs[0], set.column)
	if set.of == nil { // it leads to no slot, because the columns that do are known
		s.mayWrite(set.column)
		return
	}
	set.of.written = true
	s.qualified(set.name)
	switch l := set.of.lead(set.column); {
	case l == nil:
	case set.to == nil:
		b.recordRefusal(l.table.Name, sharding.ErrKeyChange, "leave "+l.column+" out, or set it to a value; to move a row, insert a new one and delete the old one")
	default:
		b.assigned = append(b.assigned, set)
	}
}

// mayWrite marks the tables that may have a column of this name.
func (s *scope) mayWrite(name string) {
	for _, r := range s.refs {
		if has, certain := r.has(name); has || !certain {
			r.written = true
		}
	}
}

// keyStays refuses to change the slot of a row.
func (p *binding) keyStays() error {
	for _, a := range p.assigned {
		value, l := a.to.value(p.args), a.of.lead(a.column)
		have, next := a.of.slots(p.args), l.slotOf(value)
		cut := a.of.schema.keeps(a.column, value, p.statement.Change.Ignore)
		switch {
		case cut != nil:
			return p.refusal(l.table.Name, cut, cutHint)
		case value == nil:
			return p.refusal(l.table.Name, sharding.ErrKeyChange,
				"a row without "+a.column+" belongs to no shard; delete it instead, as gorm's Association does after Unscoped")
		case !have.one || !next.one || have.only != next.only:
			return p.refusal(l.table.Name, sharding.ErrKeyChange,
				"the row would belong to another shard; insert a new row and delete the old one, or leave "+a.column+" out")
		}
	}
	return nil
}
