package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// rowArena keeps the values of rows that are read together, many rows in one piece of
// memory.
type rowArena struct {
	text strings.Builder
	ends []int
}

// A piece holds what the first row needs, and each is twice the one before it, up
// to these.
const (
	arenaBytes = 64 << 10
	arenaEnds  = 8 << 10
)

// keep copies the values of a row. What was kept before stays where it is.
func (s *rowArena) keep(raw []sql.RawBytes) (text string, ends []int) {
	size := 0
	for _, v := range raw {
		size += len(v)
	}
	if has := s.text.Cap(); has-s.text.Len() < size {
		s.text.Reset()
		s.text.Grow(max(size, min(2*has, arenaBytes)))
	}
	if has := cap(s.ends); has-len(s.ends) < len(raw) {
		s.ends = make([]int, 0, max(len(raw), min(2*has, arenaEnds)))
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

	t      *openjob.Table
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
	if r.t.Rewrites != nil {
		n *= 2
	}
	return n + len(route) + rowWeight + 8*len(raw)
}

// errCut ends a reading when there is no room for another row.
var errCut = errors.New("no room for more rows")

// manyRows are so many that a session is prepared for them.
const manyRows = 32

// readRows returns rows in one statement, and so as of one moment, in the order of their
// keys: all of them, or as many of the first as the limits allow. They have to be
// converted before they are written.
func readRows(ctx context.Context, c *backend.Session, r reading) (all []backend.Row, more bool, err error) {
	ctx, cutOff := context.WithCancel(ctx)
	defer cutOff()
	raw := make([]sql.RawBytes, len(r.t.Columns))
	var id int64
	var route sql.NullString // as RawBytes, an empty text can be nil
	var refused int
	dest := []any{&id, &route, &refused}
	for i := range raw {
		dest = append(dest, &raw[i])
	}
	if r.expected() >= manyRows {
		if err := c.Database.MakeRoom(ctx, c); err != nil {
			return nil, false, err
		}
	}
	var kept rowArena
	held := 0
	all = make([]backend.Row, 0, r.expected())
	err = c.Each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return fmt.Errorf("read table %s: %w", r.name, err)
		}
		if refused > 0 {
			return &RowError{r.t.Conf.Name, id, r.t.Columns[refused-1].Refusal(c.Database)}
		}
		rec := backend.Row{ID: id, Key: id, Weight: r.weigh(raw, route.String)}
		if held += rec.Weight; held > r.bytes && (len(all) > 0 || !r.first) {
			cutOffRest(c, cutOff, r.expected()-len(all) > len(all))
			return errCut
		}
		if route.Valid {
			rec.Route = route.String
		}
		rec.Text, rec.Ends = kept.keep(raw)
		if err := findSlots(r.t, &rec); err != nil {
			return &RowError{r.t.Conf.Name, id, err}
		}
		all = append(all, rec)
		return nil
	}, readSQL(c.Database, r))
	if errors.Is(err, errCut) {
		if len(all) == 0 {
			return nil, false, &tooLargeError{held}
		}
		return all, true, nil
	}
	return all, r.limited() && len(all) == r.rows, err
}

// cutOffRest ends an answer that is not read to its end. The driver would still read the
// rest; when that can be much, the connection is ended instead, unless it holds a
// lock.
func cutOffRest(c *backend.Session, off func(), much bool) {
	if much && !c.Locked {
		c.Spent = true
		off()
	}
}

func readSQL(s *backend.Database, r reading) string {
	key := backend.ColumnOf(s, r.name, r.t.Key)
	route := "NULL"
	if r.routed {
		route = r.t.RouteText(s, r.name)
	}
	list := []string{key, route, s.Refused(s.Quote(r.name)+".", r.t.Columns)}
	for _, c := range r.t.Columns {
		list = append(list, s.Value(s.Quote(r.name)+".", c))
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

// storeRows inserts the rows and returns the ids of those that a secondary unique
// key refused. It touches no other row: replacing the one in the way could
// remove the newer of the two for good.
func storeRows(ctx context.Context, c *backend.Session, t *openjob.Table, name string, rows []backend.Row) (refused []int64, err error) {
	if len(rows) >= manyRows {
		if err := c.Database.MakeRoom(ctx, c); err != nil {
			return nil, err
		}
	}
	for len(rows) > 0 {
		n := c.Database.Batch(rows)
		err := c.Database.Insert(ctx, c, t.Columns, name, rows[:n])
		switch {
		case err == nil:
		case c.Database.MayPass(err):
			return nil, fmt.Errorf("write to %s on %s: %w", name, c.Database.Label, err)
		default:
			some, apart := storeApart(ctx, c, t, name, rows[:n])
			if c.Database.MayPass(apart) && !c.Database.Duplicate(err) { // the connection did not outlive err
				apart = fmt.Errorf("write to %s on %s: %w", name, c.Database.Label, err)
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

// storeApart finds out which of the rows are refused.
func storeApart(ctx context.Context, c *backend.Session, t *openjob.Table, name string, rows []backend.Row) (refused []int64, err error) {
	for i := range rows {
		err := c.Database.Insert(ctx, c, t.Columns, name, rows[i:i+1])
		if c.Database.MayPass(err) {
			return nil, err // that is not the row's fault
		}
		if err != nil && !c.Database.Duplicate(err) {
			return nil, &RowError{t.Conf.Name, rows[i].ID, err}
		}
		if err == nil {
			continue
		}
		n, countErr := c.Number(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = %d", c.Database.Quote(name), c.Database.Quote(t.Key), rows[i].Key))
		if countErr != nil {
			return nil, countErr
		}
		if n > 0 {
			return nil, &RowError{t.Conf.Name, rows[i].ID, fmt.Errorf("%w: %s on %s has a row with this key that the job did not write; empty the shards and begin again", ErrChanged, name, c.Database.Label)}
		}
		refused = append(refused, rows[i].ID)
	}
	return refused, nil
}

// removeRows deletes the rows with these ids.
func removeRows(ctx context.Context, c *backend.Session, t *openjob.Table, name string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return c.Exec(ctx, c.Database.Deletion(name, t.Key, ids, ""))
}

// keysOf are the ids under which rows are written.
func keysOf(rows []backend.Row) []int64 {
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	return keys
}
