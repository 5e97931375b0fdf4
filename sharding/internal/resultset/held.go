// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"errors"
	"io"
	"reflect"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// MostMemory is the largest number of bytes that one result of several shards holds at a time.
const MostMemory = 64 << 20

var _ DescribedRows = (*Held)(nil)

// Held are rows in memory.
type Held struct {
	Types // of rows that a write has returned

	Names []string
	Rows  [][]driver.Value

	memory *merge.Memory // that counts the rows, nil for none
}

// ColumnTypeScanType is that of the next row, which matters with SQLite.
func (h *Held) ColumnTypeScanType(i int) reflect.Type {
	if len(h.Rows) == 0 {
		return h.scan(i, nil)
	}
	return h.scan(i, h.Rows[0][i])
}

// Hold reads rows into memory, which counts them until they are read again, and closes them.
func Hold(from merge.Rows, memory *merge.Memory) (_ *Held, err error) {
	defer func() { err = dialect.JoinErrors(err, from.Close()) }()
	h := &Held{Names: from.Columns(), memory: memory}
	row := make([]driver.Value, len(h.Names))
	for {
		err := from.Next(row)
		if IsEOF(err) {
			return h, nil
		}
		if err == nil {
			h.Rows = append(h.Rows, merge.Kept(row))
			err = memory.Take(row)
		}
		if err != nil {
			return nil, err
		}
	}
}

// HoldWithTypes is Hold for rows of a driver, which are returned to the program with the types of their columns.
func HoldWithTypes(from driver.Rows, memory *merge.Memory) (*Held, error) {
	types := NewTypes(1, true)
	types.Read(0, from)
	h, err := Hold(from, memory)
	if err != nil {
		return nil, err
	}
	h.Types = types
	return h, nil
}

// AddTypes adds the types of the rows of another shard.
func (h *Held) AddTypes(of *Held) { h.scans = append(h.scans, of.scans...) }

// IsEOF reports whether an error of Next says that there is no other row.
func IsEOF(err error) bool { return errors.Is(err, io.EOF) }

// Columns implements [driver.Rows].
func (h *Held) Columns() []string { return h.Names }

// Next implements [driver.Rows].
func (h *Held) Next(dest []driver.Value) error {
	if len(h.Rows) == 0 {
		return io.EOF
	}
	copy(dest, h.Rows[0])
	if h.memory != nil {
		h.memory.Give(h.Rows[0])
	}
	h.Rows[0] = nil
	h.Rows = h.Rows[1:]
	return nil
}

// Close implements [driver.Rows].
func (h *Held) Close() error { return nil }
