// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// changer records the changes of an UPDATE or DELETE.
type changer struct {
	*Analysis

	of    *sqlparse.Change
	scope *Scope
	sets  []Setting
}

func (b *Analysis) change(c *sqlparse.Change) {
	s := &Scope{}
	to := changer{Analysis: b, of: c, scope: s}
	seen := b.with(c.With, nil, nil)
	if !c.Multi {
		for i := range c.Targets {
			r := b.reference(&c.Targets[i], nil) // a CTE cannot be written
			r.Written, r.Renamed = true, len(c.Set) == 0
			s.Refs, s.target = append(s.Refs, r), r
		}
	}
	for i := range c.From {
		b.source(&c.From[i], s, seen)
	}
	if c.Multi {
		to.deleted()
	}
	b.where(c.Where, s, seen)
	for _, set := range c.Set {
		b.expression(set.Value, s, seen)
	}
	to.sets = s.settings(c.Set)
	b.Chosen = to.chosen()
	to.nameRows()
	for _, set := range to.sets {
		to.assignment(set)
	}
	to.rekeys()
	to.lookups()
	for _, o := range c.OrderBy {
		b.expression(o.Expr, s, seen)
	}
	b.limit(c.Limit, s, seen)
	b.items(c.Returning, s, seen)
}

// deleted marks the tables that DELETE a, b FROM … deletes from.
func (b changer) deleted() {
	for _, t := range b.of.Targets {
		if r := b.scope.named(t.Name.Last().Name); r != nil {
			r.Written = true
		} else {
			b.RecordRefusal(t.Name.Last().Name, sharding.ErrRawTable, "it is not among the tables in FROM of the DELETE")
		}
	}
}

// Setting is one column to which SET assigns a value.
type Setting struct {
	name   sqlparse.Name
	Column string         // in lower case, without its qualifier
	Of     *Reference     // nil if it is uncertain whose column it is
	To     *proof.Operand // the value, nil if it is unknown
	keeps  bool           // the value is the column's own: id = id, and MySQL's id = LAST_INSERT_ID(id), which also stores it
	renews bool           // the value is that of the new row: id = VALUES(id), id = excluded.id
}

// settings returns the columns to which SET assigns. Of (a, b) = (…), the values are unknown.
func (s *Scope) settings(list []sqlparse.Assignment) (all []Setting) {
	to := s
	if s.target != nil {
		to = &Scope{Refs: []*Reference{s.target}}
	}
	for _, a := range list {
		for _, name := range a.Columns {
			set := Setting{name: name, Column: strings.ToLower(name.Last().Name)}
			if c, ok := to.resolve(name); ok {
				set.Of = c.Of
			}
			if len(a.Columns) == 1 {
				set.take(sqlparse.Bare(a.Value), s)
			}
			all = append(all, set)
		}
	}
	return all
}

// Settings returns the columns of one table to which SET assigns.
func (r *Reference) Settings(list []sqlparse.Assignment) []Setting {
	return (&Scope{Refs: []*Reference{r}}).settings(list)
}

func (set *Setting) take(value sqlparse.Expr, s *Scope) {
	isText := set.Of != nil && set.Of.Schema.Columns[set.Column].HoldsTexts()
	if v, ok := proof.Constant(value); ok && !(isText && respells(value)) {
		set.To = &v
	}
	function := ""
	if call, ok := value.(*sqlparse.Call); ok && len(call.Args) == 1 {
		function, value = call.Function(), sqlparse.Bare(call.Args[0])
	}
	from, isColumn := value.(*sqlparse.Column)
	if !isColumn || !strings.EqualFold(from.Name.Last().Name, set.Column) {
		return
	}
	own, known := s.Column(value)
	set.keeps = known && own.Of == set.Of && (function == "" || function == "last_insert_id")
	set.renews = function == "" || function == "values" // a column of the table itself keeps its value
}

// changes reports whether it may give a column of a table another value than its own.
func (set Setting) changes(of *Reference, column string) bool {
	return strings.EqualFold(set.Column, column) && !set.keeps && (set.Of == nil || set.Of == of)
}

// assignment records the changes of SET. A row whose new key leads to another slot would no longer
// be found.
func (b changer) assignment(set Setting) {
	b.rowid(b.scope.Refs[0], set.Column)
	if set.Of == nil { // it leads to no slot, because the columns that do are known
		b.scope.mayWrite(set.Column)
		return
	}
	set.Of.Written = true
	b.scope.qualified(set.name)
	switch l := set.Of.Lead(set.Column); {
	case l == nil:
	case set.To == nil:
		b.RecordRefusal(l.Table.Name, sharding.ErrKeyChange, "leave "+l.Column+" out, or set it to a value; to move a row, insert a new one and delete the old one")
	default:
		b.Assigned = append(b.Assigned, set)
	}
}

// mayWrite marks the tables that may have a column of this name.
func (s *Scope) mayWrite(name string) {
	for _, r := range s.Refs {
		if has, certain := r.Has(name); has || !certain {
			r.Written = true
		}
	}
}

// Changed is a column with a lookup table in which rows get another value, or lose theirs.
type Changed struct {
	Of     *Reference
	Lookup *sharding.Lookup // nil if the sharding key is set
	To     *proof.Operand   // nil if rows are deleted
	From   *proof.Operand   // the present sharding key of the rows
}

// lookups records the changes of an UPDATE or DELETE to columns with lookup tables.
func (b changer) lookups() {
	for _, of := range b.scope.Refs {
		if of.Role != Sharded || len(of.Table.Lookups) == 0 {
			continue
		}
		for _, set := range b.sets {
			if set.changes(of, of.Table.Key) {
				b.moved(set, of)
			}
		}
		for i := range of.Table.Lookups {
			l := &of.Table.Lookups[i]
			if len(b.of.Set) == 0 && of.Written {
				b.Changed = append(b.Changed, Changed{Of: of, Lookup: l})
			}
			for _, set := range b.sets {
				switch {
				case !set.changes(of, l.Column):
				case set.Of == nil || set.To == nil:
					b.RecordRefusal(of.Table.Name, sharding.ErrLookup, "set "+l.Column+" to a value, so that its owner is known")
				default:
					b.Changed = append(b.Changed, Changed{Of: of, Lookup: l, To: set.To})
				}
			}
		}
	}
}

// moved records an assignment to the sharding key. A row whose key changes within its slot would
// have an entry with another key than its own.
func (b changer) moved(set Setting, of *Reference) {
	from, _ := b.values(of, set.Column)
	if set.To == nil || len(from) != 1 {
		b.RecordRefusal(of.Table.Name, sharding.ErrKeyChange, "leave "+set.Column+" out, or set it to the value that the condition names")
		return
	}
	b.Changed = append(b.Changed, Changed{Of: of, To: set.To, From: &from[0]})
}

// Rekeyed is an UPDATE of a unique key that does not lead to the shard.
type Rekeyed struct {
	Of      *Reference
	Columns []string
	Values  []proof.Operand // the new values; nil if they are unknown
	Primary bool
}

// rekeys records the unique keys that an UPDATE changes: it sets some of their columns to values,
// and its condition gives the others.
func (b changer) rekeys() {
	for _, r := range b.scope.Refs {
		for i, key := range r.Schema.Unique {
			if r.Role == Sharded && !r.isOnOneShard(key) && !r.isKept(key) && !b.staysWithParents(r, key) {
				b.rekey(Rekeyed{Of: r, Columns: key, Primary: i == 0})
			}
		}
	}
}

// staysWithParents reports whether a unique key has a column that refers to parents and that the UPDATE does not set: other
// rows with its value are on the row's shard.
func (b changer) staysWithParents(r *Reference, key []string) bool {
	return slices.ContainsFunc(key, func(name string) bool { return Column{r, name}.hasParent() && b.setting(r, name) == nil })
}

// setting returns the first assignment that may change a column, or nil.
func (b changer) setting(of *Reference, column string) *Setting {
	for i := range b.sets {
		if b.sets[i].changes(of, column) {
			return &b.sets[i]
		}
	}
	return nil
}

// values returns the values one of which a column has by WHERE, and that condition.
func (b changer) values(of *Reference, column string) ([]proof.Operand, sqlparse.Expr) {
	return valuesBy(b.of.Where, b.scope, Column{of, column})
}

func (b changer) rekey(r Rekeyed) {
	changes := false
	for _, name := range r.Columns {
		values, _ := b.values(r.Of, name)
		if set := b.setting(r.Of, name); set != nil {
			changes, values = true, nil
			if set.To != nil {
				values = []proof.Operand{*set.To}
			}
		}
		if len(values) == 1 {
			r.Values = append(r.Values, values[0])
		}
	}
	if len(r.Values) < len(r.Columns) {
		r.Values = nil
	}
	if changes {
		b.Rekeyed = append(b.Rekeyed, r)
	}
}

// NamedRows is the rows that an UPDATE or DELETE names by their unique key and by the sharding key.
type NamedRows struct {
	Of      *Reference
	Columns []string
	Values  [][]proof.Operand // of each column; several only for IN
	Keys    []proof.Operand
	Paired  bool // each row is listed with its own sharding key
}

// nameRows records the rows that a condition names.
func (b changer) nameRows() {
	if b.of.Multi {
		return
	}
	of := b.scope.Refs[0]
	if of.Role != Sharded || len(of.Schema.Unique) == 0 {
		return
	}
	n := &NamedRows{Of: of, Columns: of.Schema.Unique[0]}
	key := strings.ToLower(of.Table.Key)
	keys, keysIn := b.values(of, key)
	if n.Keys = keys; len(keys) == 0 || slices.Contains(n.Columns, key) { // another key names another row
		return
	}
	var rows sqlparse.Expr // the condition that lists the rows
	for _, name := range n.Columns {
		values, in := b.values(of, name)
		if len(values) == 0 || len(values) > 1 && rows != nil && rows != in {
			return
		}
		if len(values) > 1 {
			rows = in
		}
		n.Values = append(n.Values, values)
	}
	n.Paired = rows == keysIn
	b.NamedRows = n
}

// Target returns the target of a row whose key leads to its shard, or nil.
func (n *NamedRows) Target(key []driver.Value) *sharding.Target {
	s := n.Of.SlotBy(n.Columns, key)
	if at, err := n.Of.Table.On(s.Only); s.One && err == nil {
		return &at
	}
	return nil
}
