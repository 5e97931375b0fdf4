// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Reading is the parameters of one statement that reads rows for a copy.
type Reading struct {
	Limits

	Table  *openjob.Table
	Name   string // the physical table
	Where  string // "" for all
	Routed bool   // with the sharding keys
	About  int    // how many rows there may be
}

// limited reports whether there may be more rows than the limit.
func (r Reading) limited() bool { return r.Rows > 0 && r.Rows < r.About }

// expected is the largest number of rows that the database sends.
func (r Reading) expected() int {
	if r.limited() {
		return r.Rows
	}
	return r.About
}

// rowWeight is the memory of a row without its values, in bytes.
const rowWeight = 160

// weigh is how many bytes a row takes in memory. A row whose ids change is stored twice.
func (r Reading) weigh(raw []sql.RawBytes, route string) int {
	n := 0
	for _, v := range raw {
		n += len(v)
	}
	if r.Table.Rewrites != nil {
		n *= 2
	}
	return n + len(route) + rowWeight + 8*len(raw)
}

// errCut ends a reading when another row would exceed the limit.
var errCut = errors.New("the rows exceed the memory limit")

// manyRows is the number of rows from which on the session's buffers are grown.
const manyRows = 32

// Read returns rows of one statement, and so as of one moment, in the order of their keys:
// all of them, or as many of the first as the limits allow. They must be converted before
// they are written.
func Read(ctx context.Context, c *backend.Session, r Reading) (all []backend.Row, more bool, err error) {
	ctx, cutOff := context.WithCancel(ctx)
	defer cutOff()
	raw := make([]sql.RawBytes, len(r.Table.Columns))
	var id int64
	var route sql.NullString // as RawBytes, an empty text can be nil
	var refusal sql.RawBytes // before the values: the first RawBytes of an answer is nil if it is an empty text
	dest := []any{&id, &route, &refusal}
	for i := range raw {
		dest = append(dest, &raw[i])
	}
	if r.expected() >= manyRows {
		if err := c.Database.GrowBuffers(ctx, c); err != nil {
			return nil, false, err
		}
	}
	var kept rowArena
	held := 0
	all = make([]backend.Row, 0, r.expected())
	err = c.Each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(dest...); err != nil {
			return fmt.Errorf("read table %s: %w", r.Name, err)
		}
		refused, err := strconv.Atoi(string(refusal))
		if err != nil {
			return fmt.Errorf("read table %s: %w", r.Name, err)
		}
		if refused > 0 {
			return r.Table.RowError(id, r.Table.Columns[refused-1].Refusal(c.Database))
		}
		rec := backend.Row{ID: id, Key: id, Weight: r.weigh(raw, route.String)}
		if held += rec.Weight; held > r.Bytes && (len(all) > 0 || !r.First) {
			cutOffRest(c, cutOff, r.expected()-len(all) > len(all))
			return errCut
		}
		if route.Valid {
			rec.Route = route.String
		}
		rec.Text, rec.Ends = kept.keep(raw)
		if err := findSlots(r.Table, &rec); err != nil {
			return r.Table.RowError(id, err)
		}
		all = append(all, rec)
		return nil
	}, readSQL(c.Database, r))
	if errors.Is(err, errCut) {
		if len(all) == 0 {
			return nil, false, &TooLargeError{held}
		}
		return all, true, nil
	}
	return all, r.limited() && len(all) == r.Rows, err
}

// cutOffRest ends an answer that is not read to its end. The driver would still read the
// rest; when that can be much, the connection is closed instead, unless it holds a lock.
func cutOffRest(c *backend.Session, off func(), much bool) {
	if much && !c.Locked {
		c.Spent = true
		off()
	}
}

func readSQL(s *backend.Database, r Reading) string {
	key := backend.ColumnOf(s, r.Name, r.Table.Key)
	route := "NULL"
	if r.Routed {
		route = r.Table.RouteText(s, r.Name)
	}
	list := []string{key, route, s.Refused(s.Quote(r.Name)+".", r.Table.Columns)}
	for _, c := range r.Table.Columns {
		list = append(list, s.Value(s.Quote(r.Name)+".", c))
	}
	query := "SELECT " + strings.Join(list, ", ") + " FROM " + s.Quote(r.Name)
	if r.Where != "" {
		query += " WHERE " + r.Where
	}
	query += " ORDER BY " + key
	if r.limited() {
		query += fmt.Sprintf(" LIMIT %d", r.Rows)
	}
	return query
}

// UpTo is how many of the sorted ids were read, when there are more rows than these.
func UpTo(ids []int64, rows []backend.Row, more bool) int {
	if !more {
		return len(ids)
	}
	n, _ := slices.BinarySearch(ids, rows[len(rows)-1].ID)
	return n + 1
}
