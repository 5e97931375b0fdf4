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
)

// insertion is an INSERT of rows into a sharded table, with the positions in a row of the columns
// that lead to slots.
type insertion struct {
	of    *reference
	input *sqlparse.Input
	key   int // position of the sharding key
	leads []place
	seeks []seek
	// zeros: the database numbers a row with 0 like one with NULL.
	zeros bool
	// filled is the column in lower case that an adapter fills where a row leaves it to the database,
	// or "": see [Plan.Filled]. filledAt is its position.
	filled   string
	filledAt int
	fillsKey bool // it is the sharding key
}

// place is the position of a column that leads to slots.
type place struct {
	lead     *lead
	at       int
	column   *Column
	numbered bool // the database numbers it if a row has no value for it, and no adapter does
}

// place returns the position of a column in a row, -1 if the INSERT does not name it.
func (in *insertion) place(column string) int {
	return slices.IndexFunc(in.input.Columns, func(c sqlparse.Ident) bool { return strings.EqualFold(c.Name, column) })
}

// valueOf returns a value of a row, false for an expression that the database computes.
func valueOf(row *sqlparse.Row, at int, args []any) (any, bool) {
	v, ok := constant(row.Values[at])
	if !ok {
		return unbound{}, false
	}
	if v.param >= 0 {
		v.param += row.FirstParam
	}
	return v.value(args), true
}

// inserter records an INSERT into a sharded table.
type inserter struct{ *builder }

// input walks over an INSERT or REPLACE.
func (b *builder) input(in *sqlparse.Input) {
	seen := b.with(in.With, nil, nil)
	r := b.reference(&in.Table, nil) // a CTE cannot be written
	r.written, r.renamed = true, true
	s := &scope{refs: []*reference{r}}
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
	if r.role == sharded {
		b.insert = &insertion{of: r, input: in, key: -1, zeros: b.mysql}
		if b.options.Filled {
			b.insert.filled = strings.ToLower(r.table.Unnumbered())
			b.insert.filledAt = b.insert.place(b.insert.filled)
			b.insert.fillsKey = b.insert.filled != "" && strings.EqualFold(b.insert.filled, r.table.Key)
		}
		inserter{b}.rows(r)
	}
}

func (b *builder) conflict(c sqlparse.Conflict, s *scope, seen *names) {
	b.expression(c.Partial, s, seen)
	for _, name := range target(c) {
		b.rowid(s.refs[0], name)
	}
	for _, set := range c.Set {
		b.expression(set.Value, s, seen)
	}
	for _, set := range s.settings(c.Set) {
		b.rowid(s.refs[0], set.column)
		// The existing row is found by a search, or it is on the new row's shard, because the two
		// have the same slot.
		if l := s.refs[0].lead(set.column); l != nil && !set.keeps && !set.renews {
			b.recordRefusal(l.table.Name, sharding.ErrKeyChange, "leave "+l.column+" out of the conflict's SET")
		}
		s.qualified(set.name)
	}
	b.expression(c.Where, s, seen)
}

func (b inserter) rows(r *reference) {
	in := b.insert.input
	for _, c := range in.Columns {
		b.rowid(r, c.Name)
	}
	switch {
	case b.insert.addsKey() && !slices.ContainsFunc(in.Rows, func(row sqlparse.Row) bool { return len(row.Values) > 0 }):
		// an adapter gives it the only value
	case in.Default:
		b.recordRefusal(r.table.Name, sharding.ErrMissingKey, "insert VALUES; the values of DEFAULT VALUES are not known beforehand")
	case len(in.Columns) == 0:
		b.recordRefusal(r.table.Name, sharding.ErrMissingKey, "name the columns")
	}
	for i, c := range in.Columns {
		l := r.lead(strings.ToLower(c.Name))
		if l == nil {
			continue
		}
		if l.column == strings.ToLower(r.table.Key) {
			b.insert.key = i
		}
		kind := r.schema.Columns[l.column]
		b.insert.leads = append(b.insert.leads, place{l, i, &kind, kind.Numbered && l.column != b.insert.filled})
	}
	if b.insert.key < 0 && !b.insert.addsKey() {
		b.recordRefusal(r.table.Name, sharding.ErrMissingKey, "add the column "+r.table.Key)
	}
	for _, l := range r.leads {
		if b.insert.place(l.column) >= 0 || l.column == b.insert.filled || l.column == strings.ToLower(r.table.Key) {
			continue
		}
		switch of := r.schema.Columns[l.column]; {
		case of.Numbered:
			b.recordRefusal(r.table.Name, numbers(l), numbersLeadNowhere)
		case l.always && l.lookup == nil && of.fills():
			b.recordRefusal(r.table.Name, sharding.ErrMisplaced, "name the column "+l.column+", because its default may lead to another shard")
		}
	}
	b.lookups(r)
	b.conflicting()
	if in.Query != nil {
		b.fromQuery(in)
	}
}

// fromQuery records INSERT … SELECT: a condition on the selected key leads to the slot of the rows.
// Other selected columns that lead to a slot must have the same slot.
func (b inserter) fromQuery(in *sqlparse.Input) {
	if len(b.insert.seeks) > 0 {
		b.recordRefusal(b.insert.of.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(b.insert.seeks[0].columns, ", ")+" may be on another shard, which depends on the selected values; insert VALUES")
	}
	for _, l := range b.insert.leads {
		to := column{b.insert.of, l.lead.column}
		switch c, selected := b.selected(in.Query, l.at); {
		case selected:
			b.equal(c, to)
		case l.at != b.insert.key || b.only(in.Query) == nil || len(in.Query.Parts[0].Select.Items) <= l.at:
			b.recordRefusal(to.of.table.Name, sharding.ErrMissingKey, "select a column that leads to the shard for "+l.lead.column)
		default:
			if v, ok := constant(in.Query.Parts[0].Select.Items[l.at].Expr); ok {
				to.of.given = append(to.of.given, &equals{l.lead, []operand{v}})
			} else {
				b.recordRefusal(to.of.table.Name, sharding.ErrMissingKey, l.lead.column+" is neither a column nor a value")
			}
		}
	}
}

// checkSubqueries refuses an INSERT with subqueries whose rows are not on the target of the inserted rows.
func (p *binding) checkSubqueries(target sharding.Target) error {
	for _, r := range p.sharded {
		if r == p.insert.of {
			continue
		}
		if is, err := p.isOn(r, target); !is {
			return p.refusal(r.table.Name, cmp.Or(err, sharding.ErrCrossShard), "its rows may not be on the shard of the inserted rows; read them first")
		}
	}
	return nil
}

// slot returns the slot of a row. All columns that lead to a slot must lead to the same one.
func (in *insertion) slot(row *sqlparse.Row, args []any) (sharding.Slot, error) {
	key, slot, err := in.keySlot(row, args)
	if err != nil {
		return 0, err
	}
	for i := range in.leads {
		l := &in.leads[i]
		v, ok := key, true
		if l.at != in.key {
			v, ok = valueOf(row, l.at, args)
		}
		if err := l.column.keeps(l.lead.column, v, in.input.Ignore); err != nil {
			return 0, err
		}
		if l.at == in.key || l.lead.column == in.filled && in.leavesFilled(row, args) {
			continue
		}
		if !ok {
			return 0, fmt.Errorf("%w: %s is neither a value nor a parameter", sharding.ErrMisplaced, l.lead.column)
		}
		if s := l.lead.slotOf(v); s.one && s.only != slot {
			return 0, fmt.Errorf("%w: %s %v leads to slot %d, %s to slot %d", sharding.ErrMisplaced, l.lead.column, v, s.only, in.formOf(key, row, args), slot)
		}
	}
	return slot, nil
}

// formOf names the sharding key in an error, with its form if that is not the one that was given: an id that gormplugin,
// sqlxhook or [sharding.Router.NextID] has made carries the slot of the given one.
func (in *insertion) formOf(key any, row *sqlparse.Row, args []any) string {
	name := in.of.table.Key
	if given, _ := valueOf(row, in.key, args); Text([]driver.Value{given}) != Text([]driver.Value{key}) {
		return fmt.Sprintf("%s, which its column returns as %v,", name, key)
	}
	return name
}

// keySlot returns the sharding key of a row in the form in which its column returns it, and the slot to which it leads.
func (in *insertion) keySlot(row *sqlparse.Row, args []any) (key any, slot sharding.Slot, err error) {
	if len(row.Values) != len(in.input.Columns) {
		return nil, 0, fmt.Errorf("%w: the row has %d values for %d columns", sharding.ErrMissingKey, len(row.Values), len(in.input.Columns))
	}
	key, ok := valueOf(row, in.key, args)
	if !ok {
		return nil, 0, fmt.Errorf("%w: %s is neither a value nor a parameter", sharding.ErrMissingKey, in.of.table.Key)
	}
	if key, ok = in.of.formedKey(key); !ok {
		column := in.of.table.Key
		return nil, 0, fmt.Errorf("%w: the database may read a Go %T as another value of %s, which is %s", sharding.ErrKeyType, key, column, in.of.schema.Columns[strings.ToLower(column)].Type)
	}
	slot, err = in.of.table.Slot(key)
	return key, slot, err
}

// rowid refuses a write to SQLite's primary key under another name than its own.
func (b *builder) rowid(r *reference, name string) {
	name = strings.ToLower(name)
	if name != "rowid" && name != "oid" && name != "_rowid_" || r.role != sharded || !b.sqlite {
		return
	}
	if _, own := r.schema.Columns[name]; !own {
		b.recordRefusal(r.table.Name, sharding.ErrCrossShard, "name the primary key instead of "+name+", by which rows on other shards cannot be searched for")
	}
}

// rows routes the rows of an INSERT: it sends the whole text if all belong to one target, otherwise
// a text with its rows to each target.
func (p *binding) rows(hinted sharding.Target, byHint bool) (*Route, error) {
	in := p.insert
	var first, at sharding.Target
	var parts []Part                       // set from the second target on
	last, unplaced := sharding.Slot(-1), 0 // the slot of at
	for i := range in.input.Rows {
		if in.isUnplaced(&in.input.Rows[i], p.args) {
			unplaced++
			continue
		}
		slot, err := p.row(&in.input.Rows[i])
		if err != nil {
			return nil, err
		}
		if slot != last {
			if at, err = in.of.table.On(slot); err != nil {
				return nil, p.refusal(in.of.table.Name, err, "")
			}
			last = slot
		}
		if i == unplaced {
			first = at
		}
		switch {
		case parts != nil:
			parts = placed(parts, at, i)
		case at != first:
			parts = placed([]Part{{Target: first, Rows: upTo(i)}}, at, i)
		}
	}
	if in.filled != "" && unplaced == len(in.input.Rows) { // none has a known target
		everywhere := in.of.table.Map.Targets()
		return &Route{Kind: One, Pooled: true, Target: everywhere[0], Unplaced: &Unplaced{max(unplaced, 1), true, everywhere}}, nil
	}
	if byHint && (parts != nil || hinted != first) {
		return nil, p.refusal(in.of.table.Name, sharding.ErrMisplaced, "the context chooses "+hinted.String()+"; leave the hint out")
	}
	to, err := p.placedRows(first, parts)
	if err == nil && unplaced > 0 {
		partly := *to
		partly.Unplaced = &Unplaced{unplaced, false, in.of.table.Map.Targets()}
		return &partly, nil
	}
	return to, err
}

// row returns the slot of a row of an INSERT.
func (p *binding) row(row *sqlparse.Row) (sharding.Slot, error) {
	in := p.insert
	if l := in.empty(row, p.args); l != nil {
		return 0, p.refusal(in.of.table.Name, numbers(l), numbersLeadNowhere)
	}
	slot, err := in.slot(row, p.args)
	if err != nil {
		return 0, p.refusal(in.of.table.Name, err, "give each row a value of "+in.of.table.Key+" that leads to its shard")
	}
	return slot, nil
}

// placedRows routes rows by their targets: all rows of the INSERT to the first, or its parts.
func (p *binding) placedRows(first sharding.Target, parts []Part) (*Route, error) {
	if parts != nil {
		return p.divided(parts)
	}
	if err := p.checkSubqueries(first); err != nil {
		return nil, err
	}
	return p.one(first)
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// placed adds a row to the part of its target.
func placed(parts []Part, at sharding.Target, row int) []Part {
	for i := range parts {
		if parts[i].Target == at {
			parts[i].Rows = append(parts[i].Rows, row)
			return parts
		}
	}
	return append(parts, Part{Target: at, Rows: []int{row}})
}

// divided returns, for each target, a text with its rows, and their arguments.
func (p *binding) divided(parts []Part) (*Route, error) {
	if err := p.divisible(); err != nil {
		return nil, err
	}
	rows := p.insert.input.Rows
	w := &Writes{Parts: parts, Rows: len(rows)}
	recognised, err := p.recognised(w)
	if err != nil {
		return nil, err
	}
	all := sqlparse.Span{From: rows[0].From, To: rows[len(rows)-1].To}
	params := parameters{p.statement}
	argsOf := p.insert.arguments(params, all)
	for i := range parts {
		part := &parts[i]
		var with renumbering
		part.Args, with = argsOf(part.Rows)
		part.Text, err = p.edited(part.Target, with, edit{Span: all, with: p.insert.some(part.Rows, params, with)}, recognised)
		if err != nil {
			return nil, err
		}
		part.Args = p.sent(part.Args)
	}
	return &Route{Kind: Several, Pooled: p.stateless, Writes: w}, nil
}

// recognised adds a unique key to the returned columns if some rows may be skipped.
func (p *binding) recognised(w *Writes) (e edit, err error) {
	if !p.insert.leavesOut() || p.insert.filled != "" {
		return e, nil
	}
	s := p.insert.returned()
	e = inserted(p.insert.input.To, "")
	for _, column := range s.columns {
		e.with += ", " + p.options.Quote(column)
	}
	w.Keys, w.Hidden = make([]string, w.Rows), len(s.columns)
	for i := range w.Keys {
		key, err := s.key(&p.insert.input.Rows[i], p.args)
		if err == nil && slices.Contains(key, nil) {
			err = fmt.Errorf("%w: row %d has NULL in %s, so it could not be matched", sharding.ErrCrossShard, i, strings.Join(s.columns, ", "))
		}
		if err != nil {
			return e, p.refusal(p.insert.of.table.Name, err, "leave RETURNING out")
		}
		w.Keys[i] = Text(key)
	}
	return e, nil
}

// arguments returns a function that selects the arguments of some rows, and of the text before and
// after the rows. all is the part of the text with the rows.
func (in *insertion) arguments(params parameters, all sqlparse.Span) func(rows []int) ([]int, renumbering) {
	rows := in.input.Rows
	first, _ := slices.BinarySearchFunc(params.of.Params, all.From, func(q *sqlparse.Param, at int) int { return q.From - at })
	before, rest := params.of.Params[:first], params.of.Params[first:]
	own := make([][]*sqlparse.Param, len(rows))
	for i, row := range rows {
		if row.FirstParam != 0 { // it has the expressions of the row before it
			own[i] = own[i-1]
			continue
		}
		n := 0
		for n < len(rest) && rest[n].To <= row.To {
			n++
		}
		own[i], rest = rest[:n], rest[n:]
	}
	return func(some []int) ([]int, renumbering) {
		args := appendArgs(nil, before, 0)
		for _, row := range some {
			args = appendArgs(args, own[row], rows[row].FirstParam)
		}
		return params.renumbered(appendArgs(args, rest, 0))
	}
}

func appendArgs(args []int, params []*sqlparse.Param, shift int) []int {
	for _, q := range params {
		args = append(args, q.Index+shift)
	}
	return args
}

// some returns the text of some rows.
func (in *insertion) some(rows []int, params parameters, with renumbering) string {
	var text strings.Builder
	all := in.input.Rows
	text.Grow(len(rows) * (2 + all[rows[0]].To - all[rows[0]].From))
	for i, row := range rows {
		if i > 0 {
			text.WriteString(", ")
		}
		if row := all[row]; with != nil && row.FirstParam != 0 {
			renumber(&text, params.of.Text, row, with)
		} else {
			params.copied(&text, row.Span, with)
		}
	}
	return text.String()
}

// renumber writes a row that shares the numbered parameters of an earlier one: it has nothing else.
func renumber(out *strings.Builder, text string, row sqlparse.Row, with renumbering) {
	for i, v := range row.Values {
		q := v.(*sqlparse.Param) //nolint:forcetypeassert // see sqlparse.Row
		out.WriteString([]string{"(", ", "}[min(i, 1)])
		out.WriteByte(text[q.From])
		out.WriteString(strconv.Itoa(with[q.Index+row.FirstParam]))
	}
	out.WriteByte(')')
}
