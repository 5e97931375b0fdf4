package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// record is a row on its way. It holds as few pointers as it can: many are under
// way at once, and collecting garbage would cost as much as reading them.
type record struct {
	id    int64  // where it was read
	key   int64  // where it is to be written
	route any    // the sharding key, as it was read
	to    int    // index of its target, or nowhere
	text  string // its values as the database wrote them down, in the order of the columns
	ends  []int  // of the values in the text; of NULL, the complement
	holes []hole // where ids of the other side go

	weight int // in memory, bytes
}

// value returns the text of a value; false for NULL.
func (r *record) value(i int) (text string, ok bool) {
	from, to := 0, r.ends[i]
	if to < 0 {
		return "", false
	}
	if i > 0 {
		from = max(r.ends[i-1], ^r.ends[i-1])
	}
	return r.text[from:to], true
}

// shelf keeps the values of rows that are read together, many rows in one piece of
// memory.
type shelf struct {
	text strings.Builder
	ends []int
}

// A piece holds what the first row needs, and each is twice the one before it, up
// to these.
const (
	shelfBytes = 64 << 10
	shelfEnds  = 8 << 10
)

// keep copies the values of a row. What was kept before stays where it is.
func (s *shelf) keep(raw []sql.RawBytes) (text string, ends []int) {
	size := 0
	for _, v := range raw {
		size += len(v)
	}
	if has := s.text.Cap(); has-s.text.Len() < size {
		s.text.Reset()
		s.text.Grow(max(size, min(2*has, shelfBytes)))
	}
	if has := cap(s.ends); has-len(s.ends) < len(raw) {
		s.ends = make([]int, 0, max(len(raw), min(2*has, shelfEnds)))
	}
	from, first := s.text.Len(), len(s.ends)
	for _, v := range raw {
		s.text.Write(v)
		end := s.text.Len() - from
		if v == nil {
			end = ^end
		}
		s.ends = append(s.ends, end)
	}
	return s.text.String()[from:], slices.Clip(s.ends[first:])
}

// reading is one statement that reads rows for a copy.
type reading struct {
	limits

	t      *table
	name   string // the physical table
	where  string // "" for all
	routed bool   // with the sharding keys
	about  int    // how many rows there may be
}

// limited: there may be more rows than are to be read.
func (r reading) limited() bool { return r.rows > 0 && r.rows < r.about }

// expected is how many rows the database is going to send, at most.
func (r reading) expected() int {
	if r.limited() {
		return r.rows
	}
	return r.about
}

// rowWeight is what a record has beside its values.
const rowWeight = 160

// weigh is how many bytes a row takes in memory. One whose ids change is written
// down twice.
func (r reading) weigh(raw []sql.RawBytes, route string) int {
	n := 0
	for _, v := range raw {
		n += len(v)
	}
	if r.t.rewrites != nil {
		n *= 2
	}
	return n + len(route) + rowWeight + 8*len(raw)
}

// errCut ends a reading when there is no room for another row.
var errCut = errors.New("no room for more rows")

// manyRows are so many that a session is prepared for them.
const manyRows = 32

// read returns rows in one statement, and so as of one moment, in the order of their
// keys: all of them, or as many of the first as the limits allow. They have to be
// converted before they are written.
func (c *session) read(ctx context.Context, r reading) (all []record, more bool, err error) {
	ctx, cutOff := context.WithCancel(ctx)
	defer cutOff()
	raw := make([]sql.RawBytes, len(r.t.columns))
	var id int64
	var route sql.NullString // as RawBytes, an empty text can be nil
	var refused int
	dest := []any{&id, &route, &refused}
	for i := range raw {
		dest = append(dest, &raw[i])
	}
	if r.expected() >= manyRows {
		if err := c.side.makeRoom(ctx, c); err != nil {
			return nil, false, err
		}
	}
	var kept shelf
	held := 0
	all = make([]record, 0, r.expected())
	err = c.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return fmt.Errorf("read table %s: %w", r.name, err)
		}
		if refused > 0 {
			return &RowError{r.t.conf.Name, id, r.t.columns[refused-1].refusal(c.side)}
		}
		rec := record{id: id, key: id, weight: r.weigh(raw, route.String)}
		if held += rec.weight; held > r.bytes && (len(all) > 0 || !r.first) {
			c.cut(cutOff, r.expected()-len(all) > len(all))
			return errCut
		}
		if route.Valid {
			rec.route = route.String
		}
		rec.text, rec.ends = kept.keep(raw)
		if err := rec.digAll(r.t); err != nil {
			return &RowError{r.t.conf.Name, id, err}
		}
		all = append(all, rec)
		return nil
	}, c.side.readSQL(r))
	if errors.Is(err, errCut) {
		if len(all) == 0 {
			return nil, false, &tooLargeError{held}
		}
		return all, true, nil
	}
	return all, r.limited() && len(all) == r.rows, err
}

// cut ends an answer that is not read to its end. The driver would still read the
// rest; when that can be much, the connection is ended instead, unless it holds a
// lock.
func (c *session) cut(off func(), much bool) {
	if much && !c.locked {
		c.spent = true
		off()
	}
}

func (s *side) readSQL(r reading) string {
	key := columnOf(s, r.name, r.t.key)
	route := "NULL"
	if r.routed {
		route = r.t.routeText(s, r.name)
	}
	list := []string{key, route, s.refused(s.Quote(r.name)+".", r.t.columns)}
	for _, c := range r.t.columns {
		list = append(list, s.value(s.Quote(r.name)+".", c))
	}
	query := "SELECT " + strings.Join(list, ", ") + " FROM " + s.Quote(r.name)
	if r.where != "" {
		query += " WHERE " + r.where
	}
	query += " ORDER BY " + key
	if r.limited() {
		query += fmt.Sprintf(" LIMIT %d", r.rows)
	}
	return query
}

// store inserts the rows and returns the ids of those that a secondary unique
// key refused. It touches no other row: replacing the one in the way could
// remove the newer of the two for good.
func (c *session) store(ctx context.Context, t *table, name string, rows []record) (refused []int64, err error) {
	if len(rows) >= manyRows {
		if err := c.side.makeRoom(ctx, c); err != nil {
			return nil, err
		}
	}
	for len(rows) > 0 {
		n := c.side.batch(rows)
		err := c.side.insert(ctx, c, t, name, rows[:n])
		switch {
		case err == nil:
		case c.side.mayPass(err):
			return nil, fmt.Errorf("write to %s on %s: %w", name, c.side.name, err)
		default:
			some, apart := c.storeApart(ctx, t, name, rows[:n])
			if c.side.mayPass(apart) && !c.side.duplicate(err) { // the connection did not outlive err
				apart = fmt.Errorf("write to %s on %s: %w", name, c.side.name, err)
			}
			if apart != nil {
				return nil, apart
			}
			refused = append(refused, some...)
		}
		rows = rows[n:]
	}
	return refused, nil
}

func (c *session) insertHead(t *table, name string) string {
	names := make([]string, len(t.columns))
	for i, col := range t.columns {
		names[i] = c.side.Quote(col.name)
	}
	return "INSERT INTO " + c.side.Quote(name) + " (" + strings.Join(names, ", ") + ") VALUES "
}

// fitting is how many of the rows have no more bytes than these, at least one.
func fitting(rows []record, bytes int) int {
	size := 0
	for i, r := range rows {
		if size += len(r.text); i > 0 && size > bytes {
			return i
		}
	}
	return len(rows)
}

// insertText is an INSERT of values that are literals.
func insertText(head string, rows []record) string {
	var b strings.Builder
	size := len(head)
	for _, r := range rows {
		size += len(r.text) + len(r.ends) + 2
	}
	b.Grow(size)
	b.WriteString(head)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		for j := range r.ends {
			b.WriteByte("(,"[min(j, 1)])
			literal, _ := r.value(j) // NULL is one, too
			b.WriteString(literal)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// storeApart finds out which of the rows are refused.
func (c *session) storeApart(ctx context.Context, t *table, name string, rows []record) (refused []int64, err error) {
	for i := range rows {
		err := c.side.insert(ctx, c, t, name, rows[i:i+1])
		if c.side.mayPass(err) {
			return nil, err // that is not the row's fault
		}
		if err != nil && !c.side.duplicate(err) {
			return nil, &RowError{t.conf.Name, rows[i].id, err}
		}
		if err == nil {
			continue
		}
		n, countErr := c.number(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = %d", c.side.Quote(name), c.side.Quote(t.key), rows[i].key))
		if countErr != nil {
			return nil, countErr
		}
		if n > 0 {
			return nil, &RowError{t.conf.Name, rows[i].id, fmt.Errorf("%w: %s on %s has a row with this key that the job did not write; empty the shards and begin again", ErrChanged, name, c.side.name)}
		}
		refused = append(refused, rows[i].id)
	}
	return refused, nil
}

// remove deletes the rows with these ids.
func (c *session) remove(ctx context.Context, t *table, name string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return c.exec(ctx, c.side.deletion(name, t.key, ids, ""))
}

// idList writes "1,2,3".
func idList(ids []int64) string {
	var dst []byte
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, id, 10)
	}
	return string(dst)
}

// keysOf are the ids under which rows are written.
func keysOf(rows []record) []int64 {
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}
	return keys
}
