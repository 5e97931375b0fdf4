// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
)

// querier is a database or a transaction from which rows are read.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRow calls f with every row of a query: int64, float64, string, []byte or
// nil per column, as stored. f may keep the row.
func eachRow(ctx context.Context, q querier, columns int, f func([]any) error, query string, args ...any) error {
	c, err := openCursor(ctx, q, columns, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // next returns every error
	for {
		row, err := c.next()
		if err != nil || row == nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// cursor reads the rows of a query one by one.
type cursor struct {
	rows    *sql.Rows
	columns int
}

func openCursor(ctx context.Context, q querier, columns int, query string, args ...any) (*cursor, error) {
	rows, err := q.QueryContext(ctx, query, args...) //nolint:rowserrcheck // next checks Err
	if err != nil {
		return nil, err
	}
	return &cursor{rows, columns}, nil
}

// next returns the next row, nil after the last one.
func (c *cursor) next() ([]any, error) {
	if !c.rows.Next() {
		return nil, c.rows.Err()
	}
	row := make([]any, c.columns)
	into := make([]any, c.columns)
	for i := range row {
		into[i] = &row[i]
	}
	err := c.rows.Scan(into...)
	for i, v := range row {
		// The driver reads an empty BLOB as a nil slice, and writes that as NULL.
		if b, ok := v.([]byte); ok && b == nil {
			row[i] = []byte{}
		}
	}
	return row, err
}

func (c *cursor) close() error { return c.rows.Close() }

// encode appends a row to buf. Two rows have equal encodings only if their types and bytes
// are equal.
func encode(buf []byte, row []any) []byte {
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			buf = append(buf, 'n')
		case int64:
			buf = binary.LittleEndian.AppendUint64(append(buf, 'i'), uint64(v))
		case float64:
			buf = binary.LittleEndian.AppendUint64(append(buf, 'f'), math.Float64bits(v))
		case string:
			buf = append(binary.LittleEndian.AppendUint64(append(buf, 's'), uint64(len(v))), v...)
		case []byte:
			buf = append(binary.LittleEndian.AppendUint64(append(buf, 'b'), uint64(len(v))), v...)
		default:
			panic(fmt.Sprintf("bug: a stored value of type %T", v))
		}
	}
	return buf
}

// sameRow reports whether types and bytes of two rows are equal.
func sameRow(a, b []any) bool { return bytes.Equal(encode(nil, a), encode(nil, b)) }

// checksum is a row's part of the checksum of its table, which is the sum over all rows.
// Unlike XOR, a sum does not cancel duplicate rows.
func checksum(encoded []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(encoded) // cannot fail
	return h.Sum64()
}
