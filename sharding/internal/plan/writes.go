// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Writes is a statement that writes to several targets. Either all of them execute their part, or
// none does.
type Writes struct {
	Parts []Part
	Rows  int // of VALUES; 0 for an UPDATE or DELETE
	// Keys are set if RETURNING may skip a row: the key of each row of VALUES as a Text. The last
	// columns of its returned row contain the key, too.
	Keys   []string
	Hidden int // the number of these columns
}

// Part is the part of one target.
type Part struct {
	Target sharding.Target
	Text   string
	Args   []int // indexes of the statement's arguments, in order
	Rows   []int // indexes of the rows of VALUES, in order
}

// divider decides whether several targets can each execute a part of a write.
type divider struct{ *builder }

// divide returns why a write cannot be divided among several targets, nil if it can.
func (b divider) divide() *sharding.RouteError {
	limiting := ""
	if b.statement.Limiting {
		limiting = "a hint in a comment limits each shard; leave it out"
	}
	why := cmp.Or(b.dividesRows(b.statement.Insert), b.dividesChange(b.statement.Change), limiting, b.differs())
	if why == "" {
		return nil
	}
	return b.refusal(b.firstSharded(), sharding.ErrCrossShard, why)
}

// firstSharded returns the name of the first sharded table, for messages.
func (r *reading) firstSharded() string {
	for _, ref := range r.refs {
		if ref.role == sharded {
			return ref.table.Name
		}
	}
	return ""
}

func (b divider) dividesRows(in *sqlparse.Input) string {
	to := b.insert
	switch {
	case in == nil:
		return ""
	case in.Query != nil:
		return "INSERT … SELECT reads and writes one shard" + addKey
	case in.Or == "FAIL" || in.Or == "ROLLBACK":
		return "INSERT OR " + in.Or + " is undone on one shard only; write INSERT"
	case len(b.refs) > 1 || in.With != nil:
		return "a subquery reads one shard; run it first, and pass its value as an argument"
	case len(in.Returning) > 0 && slices.ContainsFunc(in.Conflicts, func(c sqlparse.Conflict) bool { return c.Where != nil }):
		return "only each shard knows which rows the WHERE of ON CONFLICT returns; leave RETURNING out, or insert the rows of each shard separately"
	case to.leavesOut() && to.returned() == nil:
		return "a returned row is matched by a unique key, and all unique keys lack a column; give it a value, or leave RETURNING out"
	}
	if (parameters{b.statement}).named() {
		return "named parameters are not distributed over shards; write ? for each"
	}
	return ""
}

// leavesOut reports whether some rows may be skipped and so not returned.
func (in *insertion) leavesOut() bool { return in.skips() && len(in.input.Returning) > 0 }

// skips reports whether the statement inserts no row beside one with the same key, and changes none.
func (in *insertion) skips() bool {
	return in != nil && (in.input.Ignore || slices.ContainsFunc(in.input.Conflicts, func(c sqlparse.Conflict) bool { return c.Nothing }))
}

// returned returns a unique key by which an inserted row is matched, or nil.
func (in *insertion) returned() *seek {
	for _, key := range in.of.schema.Unique {
		unknown := func(column string) bool { return column == "" || in.place(column) < 0 && column != in.filled }
		if s := in.seekBy(key); !slices.ContainsFunc(key, unknown) {
			return &s
		}
	}
	return nil
}

func (b divider) dividesChange(c *sqlparse.Change) string {
	switch {
	case c == nil:
		return ""
	case c.With != nil:
		return "a WITH is read on one shard" + addKey
	case c.Limit != nil:
		return "LIMIT counts the rows of one shard" + addKey
	case len(c.OrderBy) > 0:
		return "ORDER BY orders the rows of one shard" + addKey
	case c.Or == "FAIL" || c.Or == "ROLLBACK":
		return "UPDATE OR " + c.Or + " is undone on one shard only; write UPDATE"
	}
	for _, s := range sourcesIn(c.From) { // a shard may answer them differently than one table would
		switch {
		case s.Query != nil:
			return "a subquery among the tables is read on one shard" + addKey
		case s.Function != nil:
			return "a table function is read on one shard" + addKey
		}
	}
	d, why := &combiner{comparer: comparer{builder: b.builder}}, "all tables must be joined by the sharding key, so that each shard has the rows that belong together"
	for _, r := range b.refs {
		if r.role != sharded || !r.written {
			continue
		}
		strays := d.strays(r)
		if len(strays) == 0 {
			return ""
		}
		joined := slices.ContainsFunc(sourcesIn(c.From), func(s sqlparse.Source) bool { return s.Table == strays[0].at })
		why = away(r, strays[0], joined, "")
	}
	return why
}

// changes routes an UPDATE or DELETE to several targets.
func (p *binding) changes(set slots) (*Route, error) {
	first := p.sharded[0].table
	if set.all && !p.hint.All {
		return nil, missing(p)
	}
	if err := cmp.Or(p.divisible(), p.timeless(sharding.ErrCrossShard), p.keyStays()); err != nil {
		return nil, err
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return nil, p.refusal(first.Name, err, "")
	}
	shards, err := p.split(targets, nil)
	if err != nil {
		return nil, err
	}
	w := &Writes{Parts: make([]Part, len(shards))}
	for i, s := range shards {
		w.Parts[i] = Part{Target: s.Target, Text: s.Text, Args: s.Args}
	}
	return &Route{Kind: Several, Pooled: p.stateless, Writes: w}, nil
}

// divisible refuses a write that cannot be divided among several targets.
func (p *binding) divisible() error {
	if p.unmerged != nil {
		return p.unmerged
	}
	return p.together("")
}

// changed is a column with a lookup table in which rows get another value, or lose theirs.
type changed struct {
	of     *reference
	lookup *sharding.Lookup // nil if the sharding key is set
	to     *operand         // nil if rows are deleted
	from   *operand         // the present sharding key of the rows
}

// loses records the changes of an UPDATE or DELETE to columns with lookup tables.
func (r *reading) loses(c *sqlparse.Change, sets []setting, s *scope) {
	for _, of := range s.refs {
		if of.role != sharded || len(of.table.Lookups) == 0 {
			continue
		}
		for _, set := range sets {
			if set.changes(of, of.table.Key) {
				r.moves(c, set, s, of)
			}
		}
		for i := range of.table.Lookups {
			l := &of.table.Lookups[i]
			if len(c.Set) == 0 && of.written {
				r.changed = append(r.changed, changed{of: of, lookup: l})
			}
			for _, set := range sets {
				switch {
				case !set.changes(of, l.Column):
				case set.of == nil || set.to == nil:
					r.recordRefusal(of.table.Name, sharding.ErrLookup, "set "+l.Column+" to a value, so that its owner is known")
				default:
					r.changed = append(r.changed, changed{of: of, lookup: l, to: set.to})
				}
			}
		}
	}
}

// moves records an assignment to the sharding key. A row whose key changes within its slot would
// have an entry with another key than its own.
func (r *reading) moves(c *sqlparse.Change, set setting, s *scope, of *reference) {
	from, _ := listed(c.Where, s, column{of, set.column})
	if set.to == nil || len(from) != 1 {
		r.recordRefusal(of.table.Name, sharding.ErrKeyChange, "leave "+set.column+" out, or set it to the value that the condition names")
		return
	}
	r.changed = append(r.changed, changed{of: of, to: set.to, from: &from[0]})
}

// LookupChanges is the changes of lookup tables for a write.
type LookupChanges struct {
	Table   *sharding.Table
	Changes []LookupChange
	// Frees says that rows may lose values, which other rows may then get.
	Frees bool
	// Upserts says that rows of an INSERT may exist already, and then keep their values.
	Upserts bool
	plan    *Plan
}

// LookupChange is the changes of one lookup table.
type LookupChange struct {
	Lookup *sharding.Lookup
	// Rows are the values and the sharding keys of the rows of an INSERT, without NULLs.
	Rows [][2]any
	// Set is the new value of the rows, if Sets is true; nil is NULL.
	Set  any
	Sets bool
}

// MayChangeLookups reports whether a plan may have to change lookup tables.
func MayChangeLookups(p *Plan) bool {
	return len(p.changed) > 0 || p.insert != nil && len(p.insert.of.table.Lookups) > 0
}

const cutHint = "give a value that fits, because the row would be searched for by this one"

// LookupChangesOf returns the changes of lookup tables for a write on the route that Bind has returned,
// nil if there are none. Its errors are [sharding.RouteError]s.
func LookupChangesOf(p *Plan, args []any, to *Route) (*LookupChanges, error) {
	switch {
	case to.Kind != One && to.Kind != Several || p.origin != nil || !MayChangeLookups(p):
		return nil, nil //nolint:nilnil // see above
	case p.insert != nil:
		return insertedValues(p, args)
	}
	return changedValues(p, args)
}

// changedValues returns the changes of lookup tables for the rows that an UPDATE or DELETE changes, nil
// if there are none.
func changedValues(p *Plan, args []any) (*LookupChanges, error) {
	k := &LookupChanges{Table: p.changed[0].of.table, Frees: true, plan: p}
	for _, c := range p.changed {
		if c.lookup == nil {
			to, _ := c.of.formedKey(c.to.value(args))
			if from, _ := c.of.formedKey(c.from.value(args)); Text([]driver.Value{to}) != Text([]driver.Value{from}) {
				return nil, p.refusal(c.of.table.Name, sharding.ErrKeyChange, "the lookup tables have the row under its old "+c.of.table.Key+"; insert a new row and delete the old one")
			}
			continue
		}
		if c.of != p.changed[0].of {
			return nil, p.refusal(c.of.table.Name, sharding.ErrLookup, "change one table at a time")
		}
		kept := LookupChange{Lookup: c.lookup, Sets: c.to != nil}
		if kept.Sets {
			kept.Set = c.to.value(args)
			if err := c.of.schema.keeps(c.lookup.Column, kept.Set, p.statement.Change.Ignore); err != nil {
				return nil, p.refusal(c.of.table.Name, fmt.Errorf("%w: %w", sharding.ErrLookup, err), cutHint)
			}
		}
		k.Changes = append(k.Changes, kept)
	}
	if len(k.Changes) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	return k, nil
}

// insertedValues returns the changes of lookup tables for the rows of an INSERT.
func insertedValues(p *Plan, args []any) (*LookupChanges, error) {
	in := p.insert
	k := &LookupChanges{Table: in.of.table, Frees: p.statement.Verb == sqlparse.Replace || len(in.input.Conflicts) > 0, Upserts: in.input.Ignore || len(in.input.Conflicts) > 0, plan: p}
	for i := range in.of.table.Lookups {
		kept := LookupChange{Lookup: &in.of.table.Lookups[i]}
		at := in.place(kept.Lookup.Column)
		for n := range in.input.Rows {
			row := &in.input.Rows[n]
			value, known := in.lookedUp(row, at, kept.Lookup.Column, args)
			key, placed := valueOf(row, in.key, args)
			if !known || !placed {
				return nil, p.refusal(in.of.table.Name, fmt.Errorf("%w: %s of row %d is neither a value nor a parameter", sharding.ErrLookup, kept.Lookup.Column, n), "give it a value")
			}
			if err := in.of.schema.keeps(kept.Lookup.Column, value, in.input.Ignore); err != nil {
				return nil, p.refusal(in.of.table.Name, fmt.Errorf("%w: %w", sharding.ErrLookup, err), cutHint)
			}
			if in.of.schema.Columns[strings.ToLower(kept.Lookup.Column)].Numbered && leaves(row, at, args, in.zeros) {
				return nil, p.refusal(in.of.table.Name, fmt.Errorf("%w: the database would number %s", sharding.ErrLookup, kept.Lookup.Column), "have a generator of package keygen make it")
			}
			if v, err := plain(value); err != nil || v != nil {
				key, _ = in.of.formedKey(key)
				kept.Rows = append(kept.Rows, [2]any{value, key})
			}
		}
		k.Changes = append(k.Changes, kept)
	}
	return k, nil
}

// lookedUp returns the value of a column that leads to a lookup table: NULL if the row has none, and the column no default.
func (in *insertion) lookedUp(row *sqlparse.Row, at int, column string, args []any) (value any, known bool) {
	if (at < 0 || isDefault(row.Values[at])) && in.of.schema.Columns[strings.ToLower(column)].Empty {
		return nil, true
	}
	return valueOf(row, at, args)
}

// Before returns the query for the present values of the rows of a target that an UPDATE or DELETE
// changes: the sharding key, and the column of each of Changes, of no more than most rows. args selects
// arguments of the statement. ok is false if the statement has parts that a query may read
// differently; the values are then not read.
func (k *LookupChanges) Before(at sharding.Target, most int) (text string, args []int, ok bool) {
	p := k.plan
	c := p.statement.Change
	if c == nil || c.Multi || c.With != nil || c.Limit != nil || len(p.refs) != 1 {
		return "", nil, false
	}
	of, quote := p.refs[0], p.options.Quote
	var out strings.Builder
	out.WriteString("SELECT " + quote(k.Table.Key))
	for _, kept := range k.Changes {
		out.WriteString(", " + quote(kept.Lookup.Column))
	}
	name := of.at.Name.Span
	if of.at.Alias.Name != "" {
		name = of.at.Alias.Span
	}
	out.WriteString(" FROM " + quote(at.Table) + " AS " + name.Of(p.statement.Text))
	if c.Where != nil {
		text, args = parameters{p.statement}.alone(c.Where.Bytes())
		out.WriteString(" WHERE " + text)
	}
	out.WriteString(" LIMIT " + strconv.Itoa(most))
	if p.options.Merge.Engine != merge.SQLite {
		out.WriteString(" FOR UPDATE")
	}
	return out.String(), args, true
}

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
		if r := s.named(t.Name.Last().Name); r != nil {
			r.written = true
		} else {
			b.recordRefusal(t.Name.Last().Name, sharding.ErrRawTable, "it is not among the tables in FROM of the DELETE")
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
			set := setting{name: name, column: strings.ToLower(name.Last().Name)}
			if c, ok := s.assigned(name); ok {
				set.of = c.of
			}
			if len(a.Columns) == 1 {
				set.take(sqlparse.Bare(a.Value), s)
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
		function, value = call.Function(), sqlparse.Bare(call.Args[0])
	}
	from, isColumn := value.(*sqlparse.Column)
	if !isColumn || !strings.EqualFold(from.Name.Last().Name, set.column) {
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
