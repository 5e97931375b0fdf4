// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Lookup is a search for rows by a unique key that does not lead to their shard: first on the
// shards where they should be, and then, for rows not found there, on all others. One statement
// uses it; it is not safe for concurrent use.
type Lookup struct {
	Table   *sharding.Table
	plan    *Plan
	columns []string // of the unique key
	rows    []*sought
	models  bool // the rows are those that an UPDATE or DELETE names
	// taken: the key will be assigned to a row, so no other shard may have it. The row's own shard
	// checks the key itself.
	taken  bool
	byText map[string][]*sought // the rows by their keys
	alike  *alike               // for inserted rows of several slots
}

// add adds a row to the search, and returns the first row with its key.
func (l *Lookup) add(r *sought) *sought {
	if l.byText == nil {
		l.byText = map[string][]*sought{}
	}
	text := Text(r.key)
	l.rows, l.byText[text] = append(l.rows, r), append(l.byText[text], r)
	return l.byText[text][0]
}

// sought is one row of a Lookup.
type sought struct {
	number int // among VALUES
	key    []driver.Value
	own    []sharding.Target // the targets where it should be
	slot   sharding.Slot     // for an INSERT: its slot
	keys   []any             // for an UPDATE or DELETE: its possible sharding keys
	only   *sharding.Target  // its only possible target, because its key leads there
	found  bool
}

// Question is a query of a Lookup for one database. Pass its rows to [Lookup.Found].
type Question struct {
	Target sharding.Target // the first of the targets that it queries
	Text   string
	Args   []driver.Value
	Shards int // the number of targets that it queries
}

const (
	mostSought = 400  // rows that one condition searches for
	mostArgs   = 8000 // arguments of one query, unless one condition has more
)

// Seeks returns the table whose rows may have to be searched for before the statement is sent, or
// "".
func (p *Plan) Seeks() string {
	switch {
	case p.origin != nil:
	case p.insert != nil && len(p.insert.seeks) > 0:
		return p.insert.of.table.Name
	case len(p.rekeyed) > 0:
		return p.rekeyed[0].of.table.Name
	}
	return ""
}

// Lookups returns the searches that must precede the statement, for the route that Bind has
// returned.
func (p *Plan) Lookups(args []any, to *Route, h writehint.Hint) (all []*Lookup, err error) {
	if to.Kind != One && to.Kind != Several || p.Seeks() == "" {
		return nil, nil
	}
	if p.insert == nil {
		return p.taken(args, to, h)
	}
	if t := p.insert.of.table; len(t.Map.Targets()) == 1 && len(t.Lookups) == 0 {
		return nil, nil // the table enforces its unique keys itself
	}
	for i := range p.insert.seeks {
		l := &Lookup{Table: p.insert.of.table, plan: p, columns: p.insert.seeks[i].columns}
		if err := p.insert.seekRows(l, &p.insert.seeks[i], args, h); err != nil {
			return nil, p.refusal(l.Table.Name, err, "")
		}
		if len(l.rows) > 0 {
			all = append(all, l)
		}
	}
	return all, nil
}

// seek is a unique key on which an INSERT depends, and that does not always lead to the shard.
type seek struct {
	columns []string
	at      []int // the positions of the columns in a row, -1 for a column that is not named
	// always: rows with new ids are searched for, too, because the statement names the key or
	// changes a sharding key, and the key is not the primary key.
	always bool
	why    string // why rows cannot be searched for by it, or ""
}

// skipsNewRows reports whether rows with new ids need not be searched for by the key.
func (s *seek) skipsNewRows(h writehint.Hint) bool {
	if h.Column != "" {
		return len(s.columns) == 1 && strings.EqualFold(s.columns[0], h.Column)
	}
	return !s.always
}

// seekRows adds the rows whose key may be on another shard. It refuses two rows with the same key
// that belong to two shards, because no database would notice the conflict.
func (in *insertion) seekRows(l *Lookup, s *seek, args []any, h writehint.Hint) error {
	for i := range in.input.Rows {
		row := &in.input.Rows[i]
		if h.IsFresh(i) && s.skipsNewRows(h) || slices.Contains(s.columns, in.filled) && in.leavesFilled(row, args) {
			continue
		}
		key, err := s.key(row, args)
		switch {
		case in.of.slotBy(s.columns, key).one: // a row with this key is on the same shard
			continue
		case s.why != "":
			return fmt.Errorf("%w: %s", sharding.ErrCrossShard, s.why)
		case slices.Contains(key, nil): // NULL equals no other
			continue
		case err != nil:
			return err
		}
		_, slot, err := in.keySlot(row, args)
		if err != nil {
			return err
		}
		own, err := in.of.table.On(slot)
		if err != nil {
			return err
		}
		same := l.add(&sought{number: i, key: key, slot: slot, own: []sharding.Target{own}})
		if same.slot != slot {
			return fmt.Errorf("%w: rows %d and %d have the same %s under another %s", sharding.ErrKeyChange, same.number, i, strings.Join(s.columns, ", "), l.Table.Key)
		}
	}
	if slices.ContainsFunc(l.rows, func(r *sought) bool { return r.slot != l.rows[0].slot }) {
		return l.apart(in.of)
	}
	return nil
}

// key returns the key of a row, and an error if a part of it is unknown.
func (s *seek) key(row *sqlparse.Row, args []any) (key []driver.Value, err error) {
	key = make([]driver.Value, len(s.at))
	for i, at := range s.at {
		ok := false
		if key[i] = (unbound{}); at >= 0 {
			key[i], ok = valueOf(row, at, args)
		}
		if !ok && err == nil {
			err = fmt.Errorf("%w: %s is neither a value nor a parameter, so a row with it may be on another shard", sharding.ErrCrossShard, s.columns[i])
		}
	}
	return key, err
}

// named is the rows that an UPDATE or DELETE names by their unique key and by the sharding key.
type named struct {
	of      *reference
	columns []string
	values  [][]operand // of each column; several only for IN
	keys    []operand
	paired  bool // each row is listed with its own sharding key
}

// name records the rows that a condition names.
func (b changer) name(c *sqlparse.Change, s *scope) {
	if c.Multi || len(s.refs) == 0 || s.refs[0].role != sharded || len(s.refs[0].schema.Unique) == 0 {
		return
	}
	n := &named{of: s.refs[0], columns: s.refs[0].schema.Unique[0]}
	key := strings.ToLower(n.of.table.Key)
	keys, keysIn := listed(c.Where, s, column{n.of, key})
	if n.keys = keys; len(keys) == 0 || slices.Contains(n.columns, key) { // another key names another row
		return
	}
	var rows sqlparse.Expr // the condition that lists the rows
	for _, name := range n.columns {
		values, in := listed(c.Where, s, column{n.of, name})
		if len(values) == 0 || len(values) > 1 && rows != nil && rows != in {
			return
		}
		if len(values) > 1 {
			rows = in
		}
		n.values = append(n.values, values)
	}
	n.paired = rows != nil && rows == keysIn
	b.named = n
}

// listed returns the values one of which a column has by a condition, and that condition.
func listed(where sqlparse.Expr, s *scope, c column) ([]operand, sqlparse.Expr) {
	for _, e := range conjuncts(where) {
		for _, q := range equalities(e) {
			values, ok := constants(q.right)
			if found, known := s.column(q.left); ok && known && found == c {
				return values, e
			}
		}
	}
	return nil, nil
}

// single reports whether a condition names one row of the only table by a unique key.
func (s *scope) single(where sqlparse.Expr) bool {
	return len(s.refs) == 1 && s.refs[0].schema.hasKey(func(name string) bool {
		values, _ := listed(where, s, column{s.refs[0], name})
		return len(values) == 1
	})
}

// Names returns the table of which an UPDATE or DELETE names rows by their primary key and by the
// sharding key, or "".
func (p *Plan) Names() string {
	if p.named == nil || p.origin != nil {
		return ""
	}
	return p.named.of.table.Name
}

// Len returns the number of rows of the search.
func (l *Lookup) Len() int { return len(l.rows) }

// Named returns the search for the rows that such a statement names.
func (p *Plan) Named(args []any, to *Route) *Lookup {
	n := p.named
	l := &Lookup{Table: n.of.table, plan: p, columns: n.columns, models: true}
	keys := make([]any, len(n.keys))
	for i, key := range n.keys {
		keys[i], _ = n.of.formedKey(key.value(args))
	}
	own := []sharding.Target{to.Target}
	if to.Kind == Several {
		own = own[:0]
		for _, part := range to.Writes.Parts {
			own = append(own, part.Target)
		}
	}
	most := 0
	for _, values := range n.values {
		most = max(most, len(values))
	}
	for i := range most {
		key := make([]driver.Value, len(n.columns))
		for c, values := range n.values {
			key[c] = values[min(i, len(values)-1)].value(args)
		}
		if slices.Contains(key, nil) || l.byText[Text(key)] != nil {
			continue
		}
		r := &sought{key: key, own: own, keys: keys, only: n.target(key)}
		if n.paired {
			r.keys = keys[i : i+1]
		}
		l.add(r)
	}
	return l
}

// target returns the target of a row whose key leads to its shard, or nil.
func (n *named) target(key []driver.Value) *sharding.Target {
	s := n.of.slotBy(n.columns, key)
	if at, err := n.of.table.On(s.only); s.one && err == nil {
		return &at
	}
	return nil
}

// Questions returns the queries for the shards where the rows should be, or, with elsewhere, for
// all other shards, about the rows that were not found.
func (l *Lookup) Questions(elsewhere bool) (all []Question) {
	for number, target := range l.Table.Map.Targets() {
		var keys [][]driver.Value
		for _, r := range l.rows {
			if !r.found && slices.Contains(r.own, target) != elsewhere && (r.only == nil || *r.only == target) {
				keys = append(keys, r.key)
			}
		}
		for some := range slices.Chunk(keys, mostSought) {
			all = l.ask(all, number, target, some)
		}
	}
	return all
}

// ask adds a shard to the query for its database, or to a new one if that query is full.
func (l *Lookup) ask(all []Question, number int, target sharding.Target, keys [][]driver.Value) []Question {
	i := len(all) - 1
	for i >= 0 && all[i].Target.DB != target.DB {
		i--
	}
	if i < 0 || len(all[i].Args)+len(keys)*len(l.columns) > mostArgs {
		all, i = append(all, Question{Target: target}), len(all)
	}
	q := &all[i]
	q.Shards++
	if q.Text != "" {
		q.Text += " UNION ALL "
	}
	q.Text += l.text(number, target, len(keys), len(q.Args))
	q.Args = append(q.Args, slices.Concat(keys...)...)
	return all
}

// text is SELECT 3, id, user_id FROM orders_3 WHERE id IN (?, ?). The number identifies the target.
func (l *Lookup) text(number int, at sharding.Target, rows, params int) string {
	quote := l.plan.options.Quote
	param := func() string {
		if params++; l.plan.options.Merge.Engine == merge.PostgreSQL {
			return "$" + strconv.Itoa(params)
		}
		return "?"
	}
	list := make([]string, len(l.columns))
	for i, name := range l.columns {
		list[i] = quote(name)
	}
	some := make([]string, rows)
	for i := range some {
		if some[i] = param(); len(list) == 1 {
			continue
		}
		some[i] = list[0] + " = " + some[i]
		for _, name := range list[1:] {
			some[i] += " AND " + name + " = " + param()
		}
	}
	where := strings.Join(some, " OR ")
	if len(list) == 1 {
		where = list[0] + " IN (" + strings.Join(some, ", ") + ")"
	}
	return "SELECT " + strconv.Itoa(number) + ", " + strings.Join(list, ", ") + ", " + quote(l.Table.Key) + " FROM " + quote(at.Table) + " WHERE " + where
}

// Found records the rows that a query has returned, and refuses the statement if one of them has a
// sharding key of another slot.
func (l *Lookup) Found(elsewhere bool, rows [][]driver.Value) error {
	targets := l.Table.Map.Targets()
	for _, row := range rows {
		number, err := strconv.Atoi(Text(row[:1]))
		if err != nil || number >= len(targets) {
			return fmt.Errorf("plan: a search has returned the unknown target %v", row[0])
		}
		if err := l.found(targets[number], elsewhere, row[1:]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lookup) found(at sharding.Target, elsewhere bool, row []driver.Value) error {
	key := row[len(l.columns)]
	slot, err := l.Table.Slot(key)
	if on, moving := l.Table.On(slot); err == nil && moving == nil && on != at {
		return nil // a move of its slot has left this copy behind
	}
	if elsewhere {
		return l.refusal(at, nil)
	}
	same := l.byText[Text(row[:len(l.columns)])]
	for _, r := range same {
		if !l.belongs(r, key, slot, err == nil) {
			return l.refusal(at, r)
		}
		r.found = true
	}
	// If no row has this text, the database considers the row equal to one of them.
	if len(same) == 0 && !l.models && slices.ContainsFunc(l.like(row[:len(l.columns)]), func(r *sought) bool { return !l.belongs(r, key, slot, err == nil) }) {
		return l.refusal(at, nil)
	}
	return nil
}

// belongs reports whether a row on its own shard, whose sharding key may have a slot, may be the
// one that is searched for.
func (l *Lookup) belongs(r *sought, key driver.Value, slot sharding.Slot, known bool) bool {
	switch {
	case l.taken:
		return true
	case l.models:
		return r.isUnder(key)
	}
	return !known || slot == r.slot
}

// isUnder reports whether a sharding key is one of the row's. A key that is neither a number nor a
// text has several forms, so it counts as one of them.
func (r *sought) isUnder(key driver.Value) bool {
	text := Text([]driver.Value{key})
	return slices.ContainsFunc(r.keys, func(k any) bool {
		switch v, _ := plain(k); v.(type) {
		case int64, int, uint64, string, []byte:
			return Text([]driver.Value{k}) == text
		}
		return true
	})
}

func (l *Lookup) refusal(at sharding.Target, r *sought) error {
	which := "a row"
	if r != nil {
		which = fmt.Sprintf("row %d: the row", r.number)
	}
	columns, where := strings.Join(l.columns, ", "), at.String()
	switch {
	case l.taken:
		return l.plan.refusal(l.Table.Name, sharding.ErrCrossShard, "a row with this "+columns+" is already in "+where+", and a row of another shard would get it; use another value")
	case l.models:
		return l.plan.refusal(l.Table.Name, sharding.ErrKeyChange, "the row with this "+columns+" lies in "+where+", under another "+l.Table.Key+"; read it again")
	}
	remedy := "delete it there, and create it with the new one"
	if l.plan.insert.skips() {
		remedy = "search for it first, and leave the INSERT out if it exists"
	}
	return l.plan.refusal(l.Table.Name, sharding.ErrKeyChange, fmt.Sprintf("%s with this %s lies in %s, under another %s; %s", which, columns, where, l.Table.Key, remedy))
}

// Text returns a text that is equal for equal keys, whatever types a driver uses for them.
func Text(key []driver.Value) string {
	texts := make([]string, len(key))
	for i, v := range key {
		if plainly, err := plain(v); err == nil {
			v = plainly
		}
		switch v := v.(type) {
		case []byte:
			texts[i] = string(v)
		case time.Time:
			texts[i] = v.UTC().Format(time.RFC3339Nano)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return fmt.Sprintf("%q", texts)
}
