// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// source returns the rows of a test. Like some drivers, it reuses the memory of their bytes.
type source struct {
	columns []string
	rows    [][]driver.Value
	fails   error // after the rows, in place of io.EOF
	closed  int
	reads   int
	buffers [][]byte
}

func (s *source) Columns() []string { return s.columns }

func (s *source) Close() error { s.closed++; return nil }

func (s *source) Next(dest []driver.Value) error {
	if s.closed > 0 {
		return errors.New("source is closed")
	}
	for _, b := range s.buffers {
		clear(b)
	}
	s.buffers = s.buffers[:0]
	if s.reads == len(s.rows) {
		if s.fails != nil {
			return s.fails
		}
		return io.EOF
	}
	for i, v := range s.rows[s.reads] {
		if b, ok := v.([]byte); ok {
			b = bytes.Clone(b)
			s.buffers = append(s.buffers, b)
			v = b
		}
		dest[i] = v
	}
	s.reads++
	return nil
}

// columns returns n names of columns.
func columns(n int) []string {
	return []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}[:n]
}

// of returns sources of rows.
func of(rows ...[][]driver.Value) []Rows {
	width := 0
	for _, r := range rows {
		if len(r) > 0 {
			width = len(r[0])
		}
	}
	sources := make([]Rows, len(rows))
	for i, r := range rows {
		sources[i] = &source{columns: columns(width), rows: r}
	}
	return sources
}

// read reads all rows and closes them.
func read(t *testing.T, rows Rows) [][]driver.Value {
	t.Helper()
	all, err := readTo(rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

func readTo(rows Rows) (all [][]driver.Value, err error) {
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		for i, v := range row {
			row[i] = keep(v)
		}
		all = append(all, row)
	}
}

// split distributes rows randomly.
func split(r *rand.Rand, rows [][]driver.Value, k int) [][][]driver.Value {
	parts := make([][][]driver.Value, k)
	for _, row := range rows {
		i := r.IntN(k)
		parts[i] = append(parts[i], row)
	}
	return parts
}

// random returns a separate random source for each test.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 13)) }
