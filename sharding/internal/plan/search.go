// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Search is a search for rows by a key that does not lead to their shard: first on the
// shards where they should be, and then, for rows not found there, on all others. One statement
// uses it; it is not safe for concurrent use.
type Search struct {
	Table   *sharding.Table
	plan    *Plan
	columns []string // of the unique key
	rows    []*sought
	models  bool // the rows are those that an UPDATE or DELETE names
	repeats bool // several rows may have one value of the columns
	// taken: the key will be assigned to a row, so no other shard may have it. The row's own shard
	// checks the key itself.
	taken  bool
	lock   string               // see Locking
	byText map[string][]*sought // the rows by their keys
	alike  *alike               // for inserted rows of several slots
}

// add adds a row to the search, and returns the first row with its key.
func (l *Search) add(r *sought) *sought {
	if l.byText == nil {
		l.byText = map[string][]*sought{}
	}
	text := proof.Text(r.key)
	l.rows, l.byText[text] = append(l.rows, r), append(l.byText[text], r)
	return l.byText[text][0]
}

// sought is one row of a Search.
type sought struct {
	number int // among VALUES
	key    []driver.Value
	own    []sharding.Target // the targets where it should be
	slot   sharding.Slot     // for an INSERT: its slot
	keys   []any             // for an UPDATE or DELETE: its possible sharding keys
	only   *sharding.Target  // its only possible target, because its key leads there
	found  bool
}

// Question is a query of a Search for one database. Pass its rows to [Search.Found].
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
	case p.Insert != nil && len(p.Insert.Seeks) > 0:
		return p.Insert.Of.Table.Name
	case len(p.Rekeyed) > 0:
		return p.Rekeyed[0].Of.Table.Name
	}
	return ""
}

// Searches returns the searches that must precede the statement, for the route that Bind has
// returned.
func (p *Plan) Searches(args []any, to *Route, h writehint.Hint) (all []*Search, err error) {
	if to.Kind != One && to.Kind != Several || p.Seeks() == "" {
		return nil, nil
	}
	if p.Insert == nil {
		return p.taken(args, to, h)
	}
	if t := p.Insert.Of.Table; len(t.Map.Targets()) == 1 && len(t.Lookups) == 0 {
		return nil, nil // the table enforces its unique keys itself
	}
	for i := range p.Insert.Seeks {
		l := &Search{Table: p.Insert.Of.Table, plan: p, columns: p.Insert.Seeks[i].Columns}
		if err := seekRows(p.Insert, l, &p.Insert.Seeks[i], args, h); err != nil {
			return nil, p.Refusal(l.Table.Name, err, "")
		}
		if len(l.rows) > 0 {
			all = append(all, l)
		}
	}
	return all, nil
}

// skipsNewRows reports whether rows with new ids need not be searched for by the key.
func skipsNewRows(s *analysis.Seek, h writehint.Hint) bool {
	if h.Column != "" {
		return len(s.Columns) == 1 && strings.EqualFold(s.Columns[0], h.Column)
	}
	return !s.Always
}

// seekRows adds the rows whose key may be on another shard. It refuses two rows with the same key
// that belong to two shards, because no database would notice the conflict.
func seekRows(in *analysis.Insertion, l *Search, s *analysis.Seek, args []any, h writehint.Hint) error {
	for i := range in.Input.Rows {
		row := &in.Input.Rows[i]
		if h.IsFresh(i) && skipsNewRows(s, h) || slices.Contains(s.Columns, in.Filled) && in.LeavesFilled(row, args) {
			continue
		}
		key, err := in.KeyOf(s, row, args)
		switch {
		case in.Of.SlotBy(s.Columns, key).One: // a row with this key is on the same shard
			continue
		case s.Why != "":
			return fmt.Errorf("%w: %s", sharding.ErrCrossShard, s.Why)
		case slices.Contains(key, nil): // NULL equals no other
			continue
		case err != nil:
			return err
		}
		_, slot, err := in.KeySlot(row, args)
		if err != nil {
			return err
		}
		own, err := in.Of.Table.On(slot)
		if err != nil {
			return err
		}
		same := l.add(&sought{number: i, key: key, slot: slot, own: []sharding.Target{own}})
		if same.slot != slot {
			return fmt.Errorf("%w: rows %d and %d have the same %s under another %s", sharding.ErrKeyChange, same.number, i, strings.Join(s.Columns, ", "), l.Table.Key)
		}
	}
	if slices.ContainsFunc(l.rows, func(r *sought) bool { return r.slot != l.rows[0].slot }) {
		return l.apart(in.Of)
	}
	return nil
}

// NamesRowsOf returns the table of which an UPDATE or DELETE names rows by their primary key and by the
// sharding key, or "".
func (p *Plan) NamesRowsOf() string {
	if p.NamedRows == nil || p.origin != nil {
		return ""
	}
	return p.NamedRows.Of.Table.Name
}

// Len returns the number of rows of the search.
func (l *Search) Len() int { return len(l.rows) }

// Named returns the search for the rows that such a statement names.
func (p *Plan) Named(args []any, to *Route) *Search {
	n := p.NamedRows
	l := &Search{Table: n.Of.Table, plan: p, columns: n.Columns, models: true}
	keys := make([]any, len(n.Keys))
	for i, key := range n.Keys {
		keys[i], _ = n.Of.FormedKey(key.Value(args))
	}
	own, most := to.Targets(), 0
	for _, values := range n.Values {
		most = max(most, len(values))
	}
	for i := range most {
		key := make([]driver.Value, len(n.Columns))
		for c, values := range n.Values {
			key[c] = values[min(i, len(values)-1)].Value(args)
		}
		if slices.Contains(key, nil) || l.byText[proof.Text(key)] != nil {
			continue
		}
		r := &sought{key: key, own: own, keys: keys, only: n.Target(key)}
		if n.Paired {
			r.keys = keys[i : i+1]
		}
		l.add(r)
	}
	return l
}

// Questions returns the queries for the shards where the rows should be, or, with elsewhere, for
// all other shards, about the rows that were not found.
func (l *Search) Questions(elsewhere bool) (all []Question) {
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

// SearchAt searches one table that has the rows of all slots.
func (l *Search) SearchAt(at sharding.Target) (err error) {
	whole := *l.Table
	whole.Map, err = sharding.Spread([]string{at.DB}, 1, at.Table)
	l.Table = &whole
	return err
}

// Locking returns a search for the same rows that locks them as the statement does and that sees all committed rows, for MySQL
// and MariaDB. After [Search.Keys] it is only for the values that have no row yet. It returns nil if the statement locks no row of
// the table.
func (l *Search) Locking() *Search {
	locking := *l
	if locking.lock = l.plan.sharded[0].Lock; l.plan.Statement.Change != nil {
		locking.lock = "FOR UPDATE"
	}
	if locking.lock == "" {
		return nil
	}
	return &locking
}

// ask adds a shard to the query for its database, or to a new one if that query is full.
func (l *Search) ask(all []Question, number int, target sharding.Target, keys [][]driver.Value) []Question {
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
func (l *Search) text(number int, at sharding.Target, rows, params int) string {
	quote := l.plan.Options.Quote
	param := func() string {
		if params++; l.plan.Options.Merge.Engine == merge.PostgreSQL {
			return "$" + strconv.Itoa(params)
		}
		return "?"
	}
	list := make([]string, len(l.columns))
	for i, name := range l.columns {
		list[i] = quoted(l.plan, l.Table, name)
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
	distinct := ""
	if l.repeats {
		distinct = "DISTINCT "
	}
	text := "SELECT " + distinct + strconv.Itoa(number) + ", " + strings.Join(list, ", ") + ", " + quote(l.Table.Key) + " FROM " + quote(at.Table) + " WHERE " + where
	if l.lock != "" {
		return "(" + text + " " + l.lock + ")"
	}
	return text
}

// Found records the rows that a query has returned, and refuses the statement if one of them has a
// sharding key of another slot.
func (l *Search) Found(elsewhere bool, rows [][]driver.Value) error {
	return l.each(rows, func(at sharding.Target, row []driver.Value) error {
		if elsewhere {
			return l.refusal(at, nil)
		}
		return l.found(at, row)
	})
}

// Keys returns the sharding keys of the rows that the queries for all shards have returned, and how many of the values they have.
// It refuses a write if two shards have rows with one value that one table would have once: without the sharding key it is not
// known which of them is meant.
func (l *Search) Keys(answers [][][]driver.Value) (keys []any, values int, err error) {
	known := map[string]holder{}
	isMany := l.plan.Statement.Change == nil || slices.ContainsFunc(l.of().Schema.Partial, func(key []string) bool { return slices.Equal(key, l.columns) })
	for _, rows := range answers {
		err := l.each(rows, func(at sharding.Target, row []driver.Value) error {
			switch _, failed := l.Table.Target(row[1]); {
			case errors.Is(failed, sharding.ErrSlotMoving): // both shards may have the row
				return l.plan.Refusal(l.Table.Name, failed, "")
			case failed != nil && l.plan.writes():
				return l.plan.Refusal(l.Table.Name, failed, "the row in "+at.String()+" has this key, as the driver returns it; add a condition on "+l.Table.Key)
			}
			this, value := holder{at, proof.Text(row[:1])}, l.valueOf(row)
			if other, is := known[value]; is && !isMany && other.at != at && !l.hasBoth(this, other) {
				return l.plan.Refusal(l.Table.Name, sharding.ErrCrossShard,
					fmt.Sprintf("%s and %s have rows with one %s; add a condition on %s", other.at, at, l.columns[0], l.Table.Key))
			}
			known[value] = this
			for _, r := range l.byText[this.text] {
				r.found = true
			}
			keys = append(keys, row[1])
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return keys, len(known), nil
}

// Stays refuses the statement if a query for its target has returned a row whose slot is moving and belongs to another
// target: the statement would read what the move has copied or left behind there.
func (l *Search) Stays(answers [][][]driver.Value) error {
	shared := l.Table.Map.Shared()
	for _, row := range slices.Concat(answers...) {
		slot, err := l.Table.Slot(row[len(row)-1])
		if err != nil || !slices.Contains(shared, slot) {
			continue
		}
		on, err := l.Table.On(slot)
		if err == nil && on != l.rows[0].own[0] {
			err = fmt.Errorf("slot %d: %w", slot, sharding.ErrSlotMoving)
		}
		if err != nil {
			return l.plan.Refusal(l.Table.Name, err, "")
		}
	}
	return nil
}

// holder is a row that was found: its target, and the text of its value.
type holder struct {
	at   sharding.Target
	text string
}

// hasBoth reports whether the statement has the values of two rows, each as its row has it.
func (l *Search) hasBoth(a, b holder) bool {
	return a.text != b.text && l.byText[a.text] != nil && l.byText[b.text] != nil
}

// valueOf returns a text that is the same for rows that may be found by one value of the statement: 'a' finds 'A', too, if the
// column ignores case.
func (l *Search) valueOf(row []driver.Value) string {
	if len(l.byText) == 1 {
		return ""
	}
	if text, ok := likeness(l.of().Schema.Columns[l.columns[0]], row[0]); ok {
		return text
	}
	return proof.Text(row[:1])
}

// of returns a reference to the table.
func (l *Search) of() *analysis.Reference {
	return l.plan.sharded[slices.IndexFunc(l.plan.sharded, func(r *analysis.Reference) bool { return r.Table.Name == l.Table.Name })]
}

// each calls f for the rows of a search, except for the copies that a move of their slot has left behind.
func (l *Search) each(rows [][]driver.Value, f func(at sharding.Target, row []driver.Value) error) error {
	targets := l.Table.Map.Targets()
	for _, row := range rows {
		number, err := strconv.Atoi(proof.Text(row[:1]))
		if err != nil || number >= len(targets) {
			return fmt.Errorf("plan: a search has returned the unknown target %v", row[0])
		}
		at, row := targets[number], row[1:]
		slot, err := l.Table.Slot(row[len(l.columns)])
		if on, moving := l.Table.On(slot); err == nil && moving == nil && on != at {
			continue
		}
		if err := f(at, row); err != nil {
			return err
		}
	}
	return nil
}

func (l *Search) found(at sharding.Target, row []driver.Value) error {
	key := row[len(l.columns)]
	slot, err := l.Table.Slot(key)
	same := l.byText[proof.Text(row[:len(l.columns)])]
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
func (l *Search) belongs(r *sought, key driver.Value, slot sharding.Slot, known bool) bool {
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
	text := proof.Text([]driver.Value{key})
	return slices.ContainsFunc(r.keys, func(k any) bool {
		switch v, _ := proof.Plain(k); v.(type) {
		case int64, int, uint64, string, []byte:
			return proof.Text([]driver.Value{k}) == text
		}
		return true
	})
}

func (l *Search) refusal(at sharding.Target, r *sought) error {
	which := "a row"
	if r != nil {
		which = fmt.Sprintf("row %d: the row", r.number)
	}
	columns, where := strings.Join(l.columns, ", "), at.String()
	switch {
	case l.taken:
		return l.plan.Refusal(l.Table.Name, sharding.ErrCrossShard, "a row with this "+columns+" is already in "+where+", and a row of another shard would get it; use another value")
	case l.models:
		return l.plan.Refusal(l.Table.Name, sharding.ErrKeyChange, "the row with this "+columns+" lies in "+where+", under another "+l.Table.Key+"; read it again")
	}
	remedy := "delete it there, and create it with the new one"
	switch in := l.plan.Insert; {
	case in.KeepsRows():
		remedy = "search for it first, and leave the INSERT out if it exists"
	case len(in.Input.Conflicts) > 0:
		remedy = "search for it first, and update it by its " + l.Table.Key
	}
	return l.plan.Refusal(l.Table.Name, sharding.ErrKeyChange, fmt.Sprintf("%s with this %s lies in %s, under another %s; %s", which, columns, where, l.Table.Key, remedy))
}
