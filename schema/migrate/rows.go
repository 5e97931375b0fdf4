package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// record is a row on its way: its literals in the order of the columns.
type record struct {
	id     int64 // where it was read
	key    int64 // where it is to be written
	route  any   // the sharding key, as it was read
	to     int   // index of its target, or nowhere
	values []byte
	holes  []hole // where ids of the other side go
}

// reading is one statement that reads rows for a copy.
type reading struct {
	t      *table
	name   string // the physical table
	where  string // "" for all
	routed bool   // with the sharding keys
}

// read returns the rows in one statement, and so as of one moment. They have to
// be converted before they are written.
func (c *session) read(ctx context.Context, r reading) ([]record, error) {
	raw := make([]sql.RawBytes, len(r.t.columns))
	var id int64
	var route any
	dest := []any{&id, &route}
	for i := range raw {
		dest = append(dest, &raw[i])
	}
	var all []record
	err := c.each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return fmt.Errorf("read table %s: %w", r.name, err)
		}
		if b, ok := route.([]byte); ok {
			route = string(b)
		}
		rec := record{id: id, key: id, route: route}
		if err := c.tuple(&rec, raw, r.t); err != nil {
			return &RowError{r.t.conf.Name, id, err}
		}
		all = append(all, rec)
		return nil
	}, c.side.readSQL(r))
	return all, err
}

// tuple writes the row's literals down.
func (c *session) tuple(rec *record, raw []sql.RawBytes, t *table) error {
	size := 2
	for _, v := range raw {
		size += len(v) + len(v)/8 + 4
	}
	rec.values = append(make([]byte, 0, size), '(')
	for i, v := range raw {
		if i > 0 {
			rec.values = append(rec.values, ',')
		}
		if t.rewrites == nil || t.rewrites[i] == nil {
			rec.values = c.side.literal(rec.values, v, t.columns[i])
			continue
		}
		if err := rec.dig(string(c.side.literal(nil, v, t.columns[i])), t.rewrites[i]); err != nil {
			return fmt.Errorf("column %s: %w", t.columns[i].name, err)
		}
	}
	rec.values = append(rec.values, ')')
	return nil
}

func (s *side) readSQL(r reading) string {
	key := columnOf(s, r.name, r.t.key)
	route := "NULL"
	if r.routed {
		route = "CAST(" + r.t.routeExpression(s, r.name) + " AS CHAR)"
	}
	list := []string{key, route}
	for _, c := range r.t.columns {
		list = append(list, s.value(s.Quote(r.name)+".", c))
	}
	query := "SELECT " + strings.Join(list, ", ") + " FROM " + s.Quote(r.name)
	if r.where != "" {
		query += " WHERE " + r.where
	}
	return query + " ORDER BY " + key
}

// The size of one INSERT: beyond it nothing gets faster.
const (
	statementRows  = 1000
	statementBytes = 1 << 20
)

// store inserts the rows and returns the ids of those that a secondary unique
// key refused. It touches no other row: replacing the one in the way could
// remove the newer of the two for good.
func (c *session) store(ctx context.Context, t *table, name string, rows []record) (refused []int64, err error) {
	head := c.insertHead(t, name)
	for len(rows) > 0 {
		n := statement(rows)
		err := c.exec(ctx, insertText(head, rows[:n]))
		switch {
		case err == nil:
		case c.side.duplicate(err):
			some, err := c.storeApart(ctx, t, name, rows[:n])
			if err != nil {
				return nil, err
			}
			refused = append(refused, some...)
		default:
			return nil, fmt.Errorf("write to %s on %s: %w", name, c.side.name, err)
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

// statement is how many rows go into the next INSERT.
func statement(rows []record) int {
	size := 0
	for i, r := range rows {
		if size += len(r.values) + 1; i > 0 && (i == statementRows || size > statementBytes) {
			return i
		}
	}
	return len(rows)
}

func insertText(head string, rows []record) string {
	var b strings.Builder
	size := len(head)
	for _, r := range rows {
		size += len(r.values) + 1
	}
	b.Grow(size)
	b.WriteString(head)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(r.values)
	}
	return b.String()
}

// storeApart finds out which of the rows are refused.
func (c *session) storeApart(ctx context.Context, t *table, name string, rows []record) (refused []int64, err error) {
	head := c.insertHead(t, name)
	for i := range rows {
		err := c.exec(ctx, insertText(head, rows[i:i+1]))
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
	return c.exec(ctx, "DELETE FROM "+c.side.Quote(name)+" WHERE "+c.side.Quote(t.key)+" IN ("+idList(ids)+")")
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
