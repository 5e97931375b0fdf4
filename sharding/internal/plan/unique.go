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

// A unique key is unique only on its own shard, unless one of its columns leads to the shard: then
// equal keys are on one shard. A statement that depends on a row with the same key (an upsert,
// IGNORE, REPLACE, an update of the key) would otherwise not find the row on another shard, and
// would store a second one. So the row is searched for (lookup.go).

// conflicting records what an INSERT does if a row exists already.
func (b inserter) conflicting() {
	for _, c := range b.insert.input.Conflicts {
		b.depends(target(c))
		for _, set := range b.insert.of.settings(c.Set) {
			b.resets(set)
		}
	}
	if b.insert.input.Ignore || b.statement.Verb == sqlparse.Replace { // whatever key ON CONFLICT names
		b.depends(nil)
	}
	for i := range b.insert.seeks {
		s := &b.insert.seeks[i]
		s.always = s.always && !slices.Equal(s.columns, b.insert.of.schema.Unique[0])
	}
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
func (b inserter) resets(set setting) {
	r := b.insert.of
	if set.keeps {
		return
	}
	if r.lead(set.column) != nil {
		for i := range b.insert.seeks { // the existing row must have the slot of the new one
			b.insert.seeks[i].always = len(r.schema.Unique) > 0
		}
	}
	for i, key := range r.schema.Unique {
		switch {
		case !slices.Contains(key, set.column) || r.isOnOneShard(key):
		case !set.renews:
			b.recordRefusal(r.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; leave "+set.column+" out of the conflict's SET")
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
		if keys = b.insert.of.schema.Unique; !b.insert.of.known {
			b.recordRefusal(b.insert.of.table.Name, sharding.ErrCrossShard, "the unique keys of the table are not known, so the row may be on another shard; name the columns: ON CONFLICT (…)")
			return
		}
	}
	for _, key := range keys {
		known := slices.ContainsFunc(b.insert.seeks, func(s seek) bool { return slices.Equal(s.columns, key) })
		if !known && !b.insert.of.isOnOneShard(key) {
			b.seek(key, columns != nil)
		}
	}
}

// seek records a unique key by which rows must be searched for.
func (b inserter) seek(key []string, named bool) {
	s := b.insert.seekBy(key)
	s.always = named && len(b.insert.of.schema.Unique) > 0
	for i, column := range key {
		switch {
		case column == "":
			s.why = "a unique key has an expression, by which rows on other shards cannot be searched for; name the columns of another key: ON CONFLICT (…)"
		case s.at[i] < 0 && (len(key) == 1 || column == b.insert.filled):
			return // the database numbers the row, or gives it NULL; or an adapter gives it a new id
		case s.at[i] < 0:
			s.why = "a row with the same " + strings.Join(key, ", ") + " may be on another shard; give " + column + " a value, so that the row can be searched for"
		}
	}
	b.insert.seeks = append(b.insert.seeks, s)
}

// lookups refuses a statement that would set a column with a lookup table to an unknown value.
func (b inserter) lookups(r *reference) {
	for _, l := range r.table.Lookups {
		unknown := func(set setting) bool { return set.changes(r, l.Column) && !set.renews }
		keyed := func(set setting) bool { return set.changes(r, r.table.Key) }
		named := func(set setting) bool { return strings.EqualFold(set.column, l.Column) }
		switch {
		case b.insert.input.Query != nil:
			b.recordRefusal(r.table.Name, sharding.ErrLookup, "insert VALUES; the selected values of "+l.Column+" are not known beforehand")
		case len(b.insert.input.Columns) > 0 && b.insert.place(l.Column) < 0 && !r.schema.Columns[strings.ToLower(l.Column)].Empty:
			b.recordRefusal(r.table.Name, sharding.ErrLookup, "name the column "+l.Column+"; its value may be NULL")
		}
		for _, c := range b.insert.input.Conflicts {
			switch sets := r.settings(c.Set); {
			case slices.ContainsFunc(sets, unknown):
				b.recordRefusal(r.table.Name, sharding.ErrLookup, "set "+l.Column+" to the value of the new row, or leave it out of the conflict's SET")
			case !l.Unique && slices.ContainsFunc(sets, keyed) && !slices.ContainsFunc(sets, named):
				b.recordRefusal(r.table.Name, sharding.ErrLookup, "set "+l.Column+", too, if a conflict sets "+r.table.Key)
			}
		}
	}
}

func (in *insertion) seekBy(key []string) seek {
	s := seek{columns: key}
	for _, column := range key {
		s.at = append(s.at, in.place(column))
	}
	return s
}

// isOnOneShard reports whether rows with an equal key are on one shard, whatever its values.
func (r *reference) isOnOneShard(key []string) bool {
	return slices.ContainsFunc(key, func(column string) bool {
		l := r.lead(column)
		return l != nil && l.always && l.holds != Other && l.holds != Folded
	})
}

// slotBy returns the slot of a row by the values of a unique key, every slot if none of its columns
// leads to one.
func (r *reference) slotBy(columns []string, key []driver.Value) slots {
	for i, column := range columns {
		if l := r.lead(column); l != nil {
			if s := l.slotOf(key[i]); s.one {
				return s
			}
		}
	}
	return everySlot
}

// rekeyed is an UPDATE of a unique key that does not lead to the shard.
type rekeyed struct {
	of      *reference
	columns []string
	values  []operand // the new values; nil if they are unknown
	primary bool
}

// rekeys records the unique keys that an UPDATE changes: it sets some of their columns to values,
// and its condition gives the others.
func (b changer) rekeys(c *sqlparse.Change, sets []setting, s *scope) {
	for _, r := range s.refs {
		for i, key := range r.schema.Unique {
			if r.role == sharded && !r.isOnOneShard(key) && !r.isKept(key) {
				b.rekey(c, sets, s, rekeyed{of: r, columns: key, primary: i == 0})
			}
		}
	}
}

func (b changer) rekey(c *sqlparse.Change, sets []setting, s *scope, r rekeyed) {
	changes := false
	for _, name := range r.columns {
		values, _ := listed(c.Where, s, column{r.of, name})
		if at := slices.IndexFunc(sets, func(set setting) bool { return set.changes(r.of, name) }); at >= 0 {
			changes, values = true, nil
			if to := sets[at].to; to != nil {
				values = []operand{*to}
			}
		}
		if len(values) == 1 {
			r.values = append(r.values, values[0])
		}
	}
	if len(r.values) < len(r.columns) {
		r.values = nil
	}
	if changes {
		b.rekeyed = append(b.rekeyed, r)
	}
}

// taken returns the searches that precede an UPDATE of a unique key. An update of models searches
// only for the primary key: other keys are checked only on their shard, as for an INSERT.
func (p *Plan) taken(args []any, to *Route, h writehint.Hint) (all []*Lookup, err error) {
	for _, r := range p.rekeyed {
		if (h.Keyed || h.Model) && !r.primary || len(r.of.table.Map.Targets()) == 1 {
			continue
		}
		if r.values == nil {
			return nil, p.refusal(r.of.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(r.columns, ", ")+" may be on another shard; set each of these columns to a value, or put "+r.of.table.Key+" into the unique key")
		}
		key := make([]driver.Value, len(r.values))
		for i, v := range r.values {
			key[i] = v.value(args)
		}
		if r.of.slotBy(r.columns, key).one || slices.Contains(key, nil) { // NULL equals no other
			continue
		}
		if to.Kind == Several {
			return nil, p.refusal(r.of.table.Name, sharding.ErrCrossShard, "rows of several shards would get the same "+strings.Join(r.columns, ", ")+"; change one row at a time")
		}
		l := &Lookup{Table: r.of.table, plan: p, columns: r.columns, taken: true}
		l.add(&sought{key: key, own: []sharding.Target{to.Target}})
		all = append(all, l)
	}
	return all, nil
}

// alike groups the rows of an INSERT by texts that are equal if a database may consider two keys
// equal.
type alike struct {
	columns map[int]Column // by their index in the key: those of which a text is known for every row
	rows    map[string][]*sought
}

// apart refuses rows of several slots whose keys the database may consider equal, because no
// database would notice the conflict.
func (l *Lookup) apart(of *reference) error {
	a := &alike{columns: map[int]Column{}, rows: map[string][]*sought{}}
	l.alike = a
	for i, name := range l.columns {
		c := of.schema.Columns[name]
		if !slices.ContainsFunc(l.rows, func(r *sought) bool { _, ok := c.alike(r.key[i]); return !ok }) {
			a.columns[i] = c
		}
	}
	for _, r := range l.rows {
		text, _ := a.text(r.key)
		a.rows[text] = append(a.rows[text], r)
		if same := a.rows[text][0]; same.slot != r.slot {
			return fmt.Errorf("%w: the database may treat the %s of rows %d and %d as equal, and they belong to two shards; insert one after the other", sharding.ErrCrossShard, strings.Join(l.columns, ", "), same.number, r.number)
		}
	}
	return nil
}

// like returns the rows whose key may be equal to a stored one.
func (l *Lookup) like(key []driver.Value) []*sought {
	if l.alike == nil {
		return l.rows[:1] // all have one slot
	}
	if text, ok := l.alike.text(key); ok && len(l.alike.rows[text]) > 0 {
		return l.alike.rows[text]
	}
	return l.rows
}

func (a *alike) text(key []driver.Value) (text string, ok bool) {
	ok = true
	for i, v := range key {
		if c, compares := a.columns[i]; compares {
			part, known := c.alike(v)
			text, ok = text+part+"\x00", ok && known
		}
	}
	return text, ok
}

// uuidMarks removes what a UUID may be spelled with besides its digits.
var uuidMarks = strings.NewReplacer("-", "", "{", "", "}", "")

// alike returns a text that is the same for all values that the database may consider equal in the
// column, false if none is known.
func (c Column) alike(v driver.Value) (string, bool) {
	v, err := plain(v)
	if is, isBool := v.(bool); isBool {
		v = map[bool]int64{true: 1}[is]
	}
	n, isNumber := numberOf(v)
	text := Text([]driver.Value{v})
	_, written := v.(string)
	switch v.(type) {
	case time.Time, float64:
		return "", false
	}
	switch whole, noInteger := strconv.ParseInt(strings.TrimSpace(text), 10, 64); {
	case err != nil:
	case c.Value.As == Weight:
		return folded(text)
	case c.Collation == "uuid":
		return uuidMarks.Replace(strings.ToLower(text)), true
	case c.Collation == AsBytes && written && strings.Contains(text, `\`): // which PostgreSQL reads as an escape
	case c.Holds == Bytes, c.Value.As == Plain && c.Value.Type.Kind == merge.Bytes:
		return strings.TrimRight(text, " \x00"), true
	case noInteger == nil && (c.Holds == Integers || c.Value.number() || c.Value.Type.Kind == merge.Stored):
		return strconv.FormatInt(whole, 10), true
	case c.Holds != Integers && c.Value.Type.Kind == merge.Stored && isNumber:
		return strconv.FormatFloat(n, 'f', -1, 64), true
	case c.Holds != Integers && c.Value.Type.Kind == merge.Stored:
		return strings.ToLower(strings.TrimSpace(text)), true
	}
	return "", false
}

// folded returns a text that is equal if a collation may treat two texts as equal. Some collations
// treat i as j or y, u as v or w, and ccs as cscs; so for a word it is the set of its letters. Of
// other scripts only ideographs are known to differ.
func folded(text string) (string, bool) {
	var out strings.Builder
	letters := uint32(0)
	for _, r := range strings.TrimRight(text, " ") + "\x00" {
		if low := r | 0x20; low >= 'a' && low <= 'z' {
			switch low {
			case 'j', 'y':
				low = 'i'
			case 'v', 'w':
				low = 'u'
			}
			letters |= 1 << (low - 'a')
			continue
		}
		if letters != 0 {
			out.WriteString("{" + strconv.FormatUint(uint64(letters), 36) + "}")
			letters = 0
		}
		switch {
		case r == 0:
		case r >= ' ' && r <= '~', r >= 0x4E00 && r <= 0x9FA5:
			out.WriteRune(r)
		default:
			return "", false
		}
	}
	return out.String(), true
}
