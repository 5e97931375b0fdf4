// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// A unique key is unique only on its own shard, unless one of its columns leads to the shard: then
// equal keys are on one shard. A statement that depends on a row with the same key (an upsert,
// IGNORE, REPLACE, an update of the key) would otherwise not find the row on another shard, and
// would store a second one. So the row is searched for (search.go).

// taken returns the searches that precede an UPDATE of a unique key. An update of models searches
// only for the primary key: other keys are checked only on their shard, as for an INSERT.
func (p *Plan) taken(args []any, to *Route, h writehint.Hint) (all []*Search, err error) {
	for _, r := range p.Rekeyed {
		if (h.Keyed || h.Model) && !r.Primary || len(r.Of.Table.Map.Targets()) == 1 {
			continue
		}
		if r.Values == nil {
			return nil, p.Refusal(r.Of.Table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(r.Columns, ", ")+" may be on another shard; set each of these columns to a value, or put "+r.Of.Table.Key+" into the unique key")
		}
		key := make([]driver.Value, len(r.Values))
		for i, v := range r.Values {
			key[i] = v.Value(args)
		}
		if r.Of.SlotBy(r.Columns, key).One || slices.Contains(key, nil) { // NULL equals no other
			continue
		}
		if to.Kind == Several {
			return nil, p.Refusal(r.Of.Table.Name, sharding.ErrCrossShard, "rows of several shards would get the same "+strings.Join(r.Columns, ", ")+"; change one row at a time")
		}
		l := &Search{Table: r.Of.Table, plan: p, columns: r.Columns, taken: true}
		l.add(&sought{key: key, own: []sharding.Target{to.Target}})
		all = append(all, l)
	}
	return all, nil
}

// alike groups the rows of an INSERT by texts that are equal if a database may consider two keys
// equal.
type alike struct {
	columns map[int]catalog.Column // by their index in the key: those of which a text is known for every row
	rows    map[string][]*sought
}

// apart refuses rows of several slots whose keys the database may consider equal, because no
// database would notice the conflict.
func (l *Search) apart(of *analysis.Reference) error {
	a := &alike{columns: map[int]catalog.Column{}, rows: map[string][]*sought{}}
	l.alike = a
	for i, name := range l.columns {
		c := of.Schema.Columns[name]
		if !slices.ContainsFunc(l.rows, func(r *sought) bool { _, ok := likeness(c, r.key[i]); return !ok }) {
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
func (l *Search) like(key []driver.Value) []*sought {
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
			part, known := likeness(c, v)
			text, ok = text+part+"\x00", ok && known
		}
	}
	return text, ok
}

// uuidMarks removes what a UUID may be spelled with besides its digits.
var uuidMarks = strings.NewReplacer("-", "", "{", "", "}", "")

// likeness returns a text that is the same for all values that the database may consider equal in the
// column, false if none is known.
func likeness(c catalog.Column, v driver.Value) (string, bool) {
	v, err := proof.Plain(v)
	if is, isBool := v.(bool); isBool {
		v = map[bool]int64{true: 1}[is]
	}
	n, isNumber := analysis.NumberOf(v)
	text := proof.Text([]driver.Value{v})
	_, written := v.(string)
	switch v.(type) {
	case time.Time, float64:
		return "", false
	}
	switch whole, isWhole := wholeNumber(text, c); {
	case err != nil:
	case c.Value.As == catalog.Weight:
		return catalog.Fold(text)
	case c.Collation == "uuid":
		return uuidMarks.Replace(strings.ToLower(text)), true
	case c.Collation == catalog.AsBytes && written && strings.Contains(text, `\`): // which PostgreSQL reads as an escape
	case c.Holds == catalog.Bytes, c.Value.As == catalog.Plain && c.Value.Type.Kind == merge.Bytes:
		return strings.TrimRight(text, " \x00"), true
	case isWhole && (c.Holds == catalog.Integers || c.Value.IsNumber() || c.Value.Type.Kind == merge.Stored):
		return whole, true
	case c.Holds != catalog.Integers && c.Value.Type.Kind == merge.Stored && isNumber:
		return strconv.FormatFloat(n, 'f', -1, 64), true
	case c.Holds != catalog.Integers && c.Value.Type.Kind == merge.Stored:
		return strings.ToLower(strings.TrimSpace(text)), true
	}
	return "", false
}

// wholeNumber returns the decimal text of an integer that the column stores as it is. SQLite stores one above int64 as a float.
func wholeNumber(text string, c catalog.Column) (string, bool) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return strconv.FormatUint(n, 10), err == nil && c.Holds == catalog.Integers && c.Value.Type.Kind == merge.Integer
}
