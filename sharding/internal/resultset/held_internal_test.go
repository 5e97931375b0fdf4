// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// reused are rows of one text each, in a buffer that the next row overwrites.
type reused struct {
	left, closed int
	buffer       []byte
}

func (r *reused) Columns() []string { return []string{"note"} }

func (r *reused) Next(dest []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	r.buffer[0] = byte('0' + r.left)
	dest[0] = r.buffer
	return nil
}

func (r *reused) Close() error {
	r.closed++
	return nil
}

func TestRowsAreHeldWithinTheirMemory(t *testing.T) {
	from := &reused{left: 3, buffer: make([]byte, 100)}
	const size = 3 * (100 + 32) // bytes of texts and of values
	rows, err := Hold(from, merge.NewMemory(size))
	if err != nil || from.closed != 1 {
		t.Fatalf("%v, closed %d times", err, from.closed)
	}
	row := make([]driver.Value, 1)
	for want := 2; want >= 0; want-- {
		if err := rows.Next(row); err != nil || row[0].([]byte)[0] != byte('0'+want) {
			t.Errorf("%v, %v, want %d", row, err, want)
		}
	}
	if err := rows.Next(row); !errors.Is(err, io.EOF) {
		t.Error(err)
	}

	from = &reused{left: 3, buffer: make([]byte, 100)}
	var over *merge.MemoryError
	if _, err := Hold(from, merge.NewMemory(size-1)); !errors.As(err, &over) || from.closed != 1 {
		t.Errorf("%v, closed %d times", err, from.closed)
	}
}
