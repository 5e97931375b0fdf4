// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Insertion is an INSERT of rows into a sharded table, with the positions in a row of the columns
// that lead to slots.
type Insertion struct {
	Of    *Reference
	Input *sqlparse.Input
	Key   int // position of the sharding key
	leads []insertedLead
	Seeks []Seek
	// Zeros: the database numbers a row with 0 like one with NULL.
	Zeros bool
	// Filled is the column in lower case that an adapter fills where a row leaves it to the database,
	// or "": see the planner's Plan.Filled. filledAt is its position.
	Filled   string
	filledAt int
	fillsKey bool // it is the sharding key
	// Selected are the expressions of the rows of INSERT … SELECT, nil if they are not known.
	Selected *sqlparse.Row
	// apart: the columns of an INSERT … SELECT that lead to slots have not all the slot of one selected row.
	apart bool
	// UniqueUnknown: it is refused only because the unique keys are not known; a row with their values may be on another shard.
	UniqueUnknown bool
}

// insertedLead is the position in a row of a column that leads to slots.
type insertedLead struct {
	lead     *proof.Lead
	at       int
	column   *catalog.Column
	numbered bool        // the database numbers it if a row has no value for it, and no adapter does
	own      proof.Proof // of the values that INSERT … SELECT gives it, or nil
}

// Place returns the position of a column in a row, -1 if the INSERT does not name it.
func (in *Insertion) Place(column string) int {
	return slices.IndexFunc(in.Input.Columns, func(c sqlparse.Ident) bool { return strings.EqualFold(c.Name, column) })
}

// inserter records an INSERT into a sharded table.
type inserter struct {
	*Analysis
	*Insertion
}

// refuse records a refusal of the INSERT.
func (b inserter) refuse(err error, hint string) { b.RecordRefusal(b.Of.Table.Name, err, hint) }

func (b *Analysis) input(in *sqlparse.Input) {
	seen := b.with(in.With, nil, nil)
	r := b.reference(&in.Table, nil) // a CTE cannot be written
	r.Written, r.Renamed = true, true
	s := &Scope{Refs: []*Reference{r}}
	b.query(in.Query, nil, seen)
	for i := range in.Rows {
		if !in.Rows[i].Shares() {
			b.expressions(in.Rows[i].Values, nil, seen)
		}
	}
	for _, c := range in.Conflicts {
		b.conflict(c, s, seen)
	}
	b.items(in.Returning, s, seen)
	if r.Role == Sharded {
		b.Insert = &Insertion{Of: r, Input: in, Key: -1, Zeros: b.MySQL}
		if b.Options.Filled {
			b.Insert.Filled = strings.ToLower(r.Table.Unnumbered())
			b.Insert.filledAt = b.Insert.Place(b.Insert.Filled)
			b.Insert.fillsKey = strings.EqualFold(b.Insert.Filled, r.Table.Key)
		}
		inserter{b, b.Insert}.rows()
	}
}

func (b *Analysis) conflict(c sqlparse.Conflict, s *Scope, seen *ctes) {
	b.expression(c.Partial, s, seen)
	for _, name := range target(c) {
		b.rowid(s.Refs[0], name)
	}
	for _, set := range c.Set {
		b.expression(set.Value, s, seen)
	}
	for _, set := range s.settings(c.Set) {
		b.rowid(s.Refs[0], set.Column)
		// The existing row is found by a search, or it is on the new row's shard, because the two
		// have the same slot.
		if l := s.Refs[0].Lead(set.Column); l != nil && !set.keeps && !set.renews {
			b.RecordRefusal(l.Table.Name, sharding.ErrKeyChange, "leave "+l.Column+" out of the conflict's SET")
		}
		s.qualified(set.name)
	}
	b.expression(c.Where, s, seen)
}

// Overriding is why a row is refused whose values PostgreSQL does not store.
const Overriding = "by OVERRIDING USER VALUE the database numbers rows itself in place of given values; leave it out, or write OVERRIDING SYSTEM VALUE, by which the values are stored"

func (b inserter) rows() {
	in := b.Input
	for _, c := range in.Columns {
		b.rowid(b.Of, c.Name)
	}
	switch {
	case b.addsKey() && !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool { return len(row.Values) > 0 }):
		// an adapter gives it the only value
	case in.Overridden:
		b.refuse(sharding.ErrMissingKey, Overriding)
	case in.Default:
		b.refuse(sharding.ErrMissingKey, "insert VALUES; the values of DEFAULT VALUES are not known beforehand")
	case len(in.Columns) == 0:
		b.refuse(sharding.ErrMissingKey, "name the columns")
	}
	for i, c := range in.Columns {
		l := b.Of.Lead(strings.ToLower(c.Name))
		if l == nil {
			continue
		}
		if l.Column == strings.ToLower(b.Of.Table.Key) {
			b.Key = i
		}
		kind := b.Of.Schema.Columns[l.Column]
		b.leads = append(b.leads, insertedLead{lead: l, at: i, column: &kind, numbered: kind.Numbered && l.Column != b.Filled})
	}
	if b.Key < 0 && !b.addsKey() {
		b.refuse(sharding.ErrMissingKey, "add the column "+b.Of.Table.Key)
	}
	for _, l := range b.Of.leads {
		if b.Place(l.Column) >= 0 || l.Column == b.Filled || l.Column == strings.ToLower(b.Of.Table.Key) {
			continue
		}
		switch of := b.Of.Schema.Columns[l.Column]; {
		case of.Numbered:
			b.refuse(Numbering(l), NumbersLeadNowhere)
		case l.Always && l.Lookup == nil && of.Fills():
			b.refuse(sharding.ErrMisplaced, "name the column "+l.Column+", because its default may lead to another shard")
		}
	}
	b.lookups()
	b.conflicting()
	if in.Query != nil {
		b.fromQuery()
	}
}

// fromQuery records INSERT … SELECT: a condition on the selected key leads to the slot of the rows.
// Other selected columns that lead to a slot must have the same slot.
func (b inserter) fromQuery() {
	if len(b.Seeks) > 0 {
		b.refuse(sharding.ErrCrossShard, "a row with the same "+strings.Join(b.Seeks[0].Columns, ", ")+" may be on another shard, which depends on the selected values; insert VALUES")
	}
	// The expressions that each of the rows is, if they are those of one SELECT.
	if core := CoreOf(b.Input.Query); b.Only(b.Input.Query) != nil && len(core.Items) == len(b.Input.Columns) {
		b.Selected = &sqlparse.Row{}
		for _, i := range core.Items {
			b.Selected.Values = append(b.Selected.Values, i.Expr)
		}
	}
	for _, l := range b.leads {
		to := Column{b.Of, l.lead.Column}
		c, selected := b.selected(b.Input.Query, l.at)
		v, isConstant := b.constant(l.at)
		switch {
		case selected:
			b.equal(c, to)
		case isConstant && l.at == b.Key:
			to.Of.given = append(to.Of.given, &proof.Equals{Lead: l.lead, Values: proof.Values{List: []proof.Operand{v}}})
		case isConstant && l.lead.Lookup == nil: // see CheckSelected
		default:
			b.refuse(sharding.ErrMissingKey, "select a column that leads to the shard, or a value, for "+l.lead.Column+", or insert VALUES")
		}
	}
}

// rowid refuses a write to SQLite's primary key under another name than its own.
func (b *Analysis) rowid(r *Reference, name string) {
	name = strings.ToLower(name)
	if name != "rowid" && name != "oid" && name != "_rowid_" || r.Role != Sharded || !b.SQLite {
		return
	}
	if _, own := r.Schema.Columns[name]; !own {
		b.RecordRefusal(r.Table.Name, sharding.ErrCrossShard, "name the primary key instead of "+name+", by which rows on other shards cannot be searched for")
	}
}

// conflicting records what an INSERT does if a row exists already.
func (b inserter) conflicting() {
	for _, c := range b.Input.Conflicts {
		if name := c.Constraint.Name; name != "" && sharesDatabase(b.Of.Table) {
			b.refuse(sharding.ErrRawTable, "name the columns of "+name+" instead: ON CONFLICT (…); each of the tables in a database has another name for it")
		}
		b.depends(target(c))
		for _, set := range b.Of.Settings(c.Set) {
			b.resets(set)
		}
	}
	if b.Input.Ignore || b.Statement.Verb == sqlparse.Replace { // whatever key ON CONFLICT names
		b.depends(nil)
	}
	for i := range b.Seeks {
		s := &b.Seeks[i]
		s.Always = s.Always && !slices.Equal(s.Columns, b.Of.Schema.Unique[0])
	}
}

// sharesDatabase reports whether a database has several physical tables of a table: the names of their unique constraints differ.
func sharesDatabase(t *sharding.Table) bool {
	used := map[string]bool{}
	return slices.ContainsFunc(t.Map.Targets(), func(at sharding.Target) bool {
		twice := used[at.DB]
		used[at.DB] = true
		return twice
	})
}

// target returns the columns of ON CONFLICT (a, b), nil for any key.
func target(c sqlparse.Conflict) []string {
	var columns []string
	for _, e := range c.Target {
		column, ok := sqlparse.Bare(e).(*sqlparse.Column)
		if !ok {
			return nil
		}
		columns = append(columns, strings.ToLower(column.Name.Last().Name))
	}
	return columns
}

// resets records that an existing row gets a new value in a column of a unique key. The value may
// be that of the new row: a row with it is searched for if the key is the primary key. For other
// keys a second row with the value may exist on another shard, as after an INSERT.
func (b inserter) resets(set Setting) {
	r := b.Of
	if set.keeps {
		return
	}
	if r.Lead(set.Column) != nil {
		for i := range b.Seeks { // the existing row must have the slot of the new one
			b.Seeks[i].Always = len(r.Schema.Unique) > 0
		}
	}
	for i, key := range r.Schema.Unique {
		switch {
		case !slices.Contains(key, set.Column) || r.isOnOneShard(key):
		case !set.renews:
			b.refuse(sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; leave "+set.Column+" out of the conflict's SET")
		case i == 0:
			b.depends(key)
		}
	}
}

// depends records unique keys by which an insertion depends on rows that another shard may have;
// nil means all.
func (b inserter) depends(columns []string) {
	keys := [][]string{columns}
	if columns == nil {
		if keys = b.Of.Schema.Unique; !b.Of.Known {
			hint := "the unique keys of the table are not known, so the row may be on another shard"
			if !b.MySQL {
				hint += "; name the columns: ON CONFLICT (…)"
			}
			b.UniqueUnknown = b.Refused == nil
			b.refuse(sharding.ErrCrossShard, hint)
			return
		}
	}
	for _, key := range keys {
		known := slices.ContainsFunc(b.Seeks, func(s Seek) bool { return slices.Equal(s.Columns, key) })
		if !known && !b.Of.isOnOneShard(key) {
			b.seek(key, columns != nil)
		}
	}
}

// Seek is a unique key on which an INSERT depends, and that does not always lead to the shard.
type Seek struct {
	Columns []string
	at      []int // the positions of the columns in a row, -1 for a column that is not named
	// Always: rows with new ids are searched for, too, because the statement names the key or
	// changes a sharding key, and the key is not the primary key.
	Always bool
	Why    string // why rows cannot be searched for by it, or ""
}

// seek records a unique key by which rows must be searched for.
func (b inserter) seek(key []string, named bool) {
	s := b.seekOf(key)
	s.Always = named && len(b.Of.Schema.Unique) > 0
	for i, column := range key {
		switch {
		case column == "":
			s.Why = "a unique key has an expression, by which rows on other shards cannot be searched for; name the columns of another key: ON CONFLICT (…)"
		case s.at[i] < 0 && (len(key) == 1 || column == b.Filled):
			return // the database numbers the row, or gives it NULL; or an adapter gives it a new id
		case s.at[i] < 0:
			s.Why = "a row with the same " + strings.Join(key, ", ") + " may be on another shard; give " + column + " a value, so that the row can be searched for"
		}
	}
	b.Seeks = append(b.Seeks, s)
}

// lookups refuses a statement that would set a column with a lookup table to an unknown value.
func (b inserter) lookups() {
	for _, l := range b.Of.Table.Lookups {
		unknown := func(set Setting) bool { return set.changes(b.Of, l.Column) && !set.renews }
		keyed := func(set Setting) bool { return set.changes(b.Of, b.Of.Table.Key) }
		named := func(set Setting) bool { return strings.EqualFold(set.Column, l.Column) }
		switch {
		case b.Input.Query != nil:
			b.refuse(sharding.ErrLookup, "insert VALUES; the selected values of "+l.Column+" are not known beforehand")
		case len(b.Input.Columns) > 0 && b.Place(l.Column) < 0 && !b.Of.Schema.Columns[strings.ToLower(l.Column)].Empty:
			b.refuse(sharding.ErrLookup, "name the column "+l.Column+"; a value that the database gives it is not known beforehand")
		}
		for _, c := range b.Input.Conflicts {
			switch sets := b.Of.Settings(c.Set); {
			case slices.ContainsFunc(sets, unknown):
				b.refuse(sharding.ErrLookup, "set "+l.Column+" to the value of the new row, or leave it out of the conflict's SET")
			case !l.Unique && slices.ContainsFunc(sets, keyed) && !slices.ContainsFunc(sets, named):
				b.refuse(sharding.ErrLookup, "set "+l.Column+", too, if a conflict sets "+b.Of.Table.Key)
			}
		}
	}
}

func (in *Insertion) seekOf(key []string) Seek {
	s := Seek{Columns: key}
	for _, column := range key {
		s.at = append(s.at, in.Place(column))
	}
	return s
}

// KeyOf returns the key of a row by which it is searched for, and an error if a part of it is unknown.
func (in *Insertion) KeyOf(s *Seek, row *sqlparse.Row, args []any) (key []driver.Value, err error) {
	key = make([]driver.Value, len(s.at))
	for i, at := range s.at {
		ok := false
		if key[i] = (proof.Unbound{}); at >= 0 {
			key[i], ok = in.stored(row, at, s.Columns[i], args)
		}
		if !ok && err == nil {
			err = fmt.Errorf("%w: %s, so a row with it may be on another shard", sharding.ErrCrossShard, whyUnknown(row, at, s.Columns[i]))
		}
	}
	return key, err
}

// takeReturned records what a data-modifying CTE says about the rows that it returns, beyond the conditions of its Query: rows of an
// INSERT have the inserted values in the columns that lead to slots. A conversion, a trigger or DO UPDATE may give other columns
// another value.
func takeReturned(b *Analysis, cte *sqlparse.CTE) {
	if cte.Write == nil {
		return
	}
	s := b.Only(cte.Query)
	r := s.Refs[0]
	r.Returned = true
	in := cte.Write.Insert
	if in == nil {
		return
	}
	for i, c := range in.Columns {
		if r.Lead(strings.ToLower(c.Name)) != nil {
			b.satisfied(inserted(in, i), s, s.Refs)
		}
	}
}

// inserted returns the condition that a column has one of the values of an INSERT.
func inserted(in *sqlparse.Input, at int) sqlparse.Expr {
	is := &sqlparse.Operation{Span: in.Span, Op: sqlparse.In, Operands: []sqlparse.Expr{&sqlparse.Column{Name: sqlparse.Name{Parts: in.Columns[at : at+1]}}}}
	for _, row := range in.Rows {
		if at >= len(row.Values) {
			return nil
		}
		v := row.Values[at]
		if p, ok := v.(*sqlparse.Param); ok {
			own := *p
			own.Index += row.FirstParam
			v = &own
		}
		is.Operands = append(is.Operands, v)
	}
	if len(is.Operands) == 1 {
		return nil
	}
	return is
}
