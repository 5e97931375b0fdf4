// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Rows are read one by one. A [driver.Rows] is a Rows. All rows have the same number of columns.
// The values that Next stores in dest, and the bytes to which they refer, are valid until the next
// call of Next or Close.
type Rows interface {
	Columns() []string
	// Next stores a row in dest, which has the length of Columns. It returns io.EOF after the last
	// row.
	Next(dest []driver.Value) error
	Close() error
}

// Errors of rows. They are wrapped with their location.
var (
	// ErrValue: a value is not of its column's type, or an expression does not accept it.
	ErrValue = errors.New("merge: value of an unexpected type")
	// ErrOrder: the rows of a source are not in the order of the merge, so its database compares
	// differently than the types of the keys say.
	ErrOrder = errors.New("merge: rows are not in the order of the merge")
	// ErrColumns: sources have different columns, or in another order.
	ErrColumns = errors.New("merge: sources have different columns")
	// ErrOverflow: a sum or an expression is outside the range of its type. It would be an error on
	// one table, too.
	ErrOverflow = errors.New("merge: integer overflow")
	// ErrDivision: PostgreSQL's error for a division by zero.
	ErrDivision error = stateError{"division by zero", "22012"}
)

// stateError is an error of PostgreSQL, which has a SQLSTATE.
type stateError struct{ text, state string }

func (e stateError) Error() string { return "merge: " + e.text }

// SQLState returns the SQLSTATE.
func (e stateError) SQLState() string { return e.state }

var errClosed = errors.New("merge: rows are closed")

// stage computes rows from other rows. It returns its first error again after it, and closes each
// source once.
type stage struct {
	columns []string // nil means those of the first source
	sources []Rows   // nil for a source that is closed
	step    func(dest []driver.Value) error
	err     error
	closing error // of sources that were closed early
}

func (s *stage) Columns() []string {
	if s.columns == nil && s.sources[0] != nil {
		s.columns = s.sources[0].Columns()
	}
	return s.columns
}

func (s *stage) Next(dest []driver.Value) error {
	if s.err == nil {
		s.err = s.step(dest)
	}
	return s.err
}

// Close closes the sources and releases what is held.
func (s *stage) Close() error {
	if s.step == nil {
		return nil
	}
	for _, source := range s.sources {
		if source != nil {
			s.closing = errors.Join(s.closing, source.Close())
		}
	}
	s.step, s.err = nil, errClosed
	return s.closing
}

// closeSource closes a source that is no longer needed, which releases its connection. Close returns the
// error.
func (s *stage) closeSource(i int) {
	s.Columns()
	s.closing = errors.Join(s.closing, s.sources[i].Close())
	s.sources[i] = nil
}

func over(sources ...Rows) *stage { return &stage{sources: slices.Clone(sources)} }

// SameColumns reports whether two results have the same columns in the same order. Names of computed
// columns are not compared: a database makes them of the expression's text, which may contain the name
// of a shard's table.
func SameColumns(a, b []string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool {
		return strings.EqualFold(x, y) || strings.ContainsAny(x, signs) && strings.ContainsAny(y, signs)
	})
}

// signs are in the texts of expressions, and seldom in the names of columns.
const signs = " ()\"`'.[]"

// fit returns an error unless all sources have the columns of the first, in the same order.
func (s *stage) fit() error {
	for i, source := range s.sources {
		if got, want := source.Columns(), s.Columns(); !SameColumns(got, want) {
			return fmt.Errorf("%w: source %d has %q, source 0 has %q", ErrColumns, i, got, want)
		}
	}
	return nil
}

// where returns the rows for which keep returns true. It may change them.
func where(rows Rows, keep func(row []driver.Value) (bool, error)) Rows {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		for {
			if err := rows.Next(dest); err != nil {
				return err
			}
			if ok, err := keep(dest); ok || err != nil {
				return err
			}
		}
	}
	return s
}

// gather reads all rows when the first one is requested. Then it returns the rows of the function
// that end returns.
func gather(rows Rows, take func(row []driver.Value) error, end func() (step func(dest []driver.Value) error)) *stage {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		row := make([]driver.Value, len(rows.Columns()))
		for {
			err := rows.Next(row)
			if errors.Is(err, io.EOF) {
				s.step = end()
				return s.step(dest)
			}
			if err == nil {
				err = take(row)
			}
			if err != nil {
				return err
			}
		}
	}
	return s
}

// Concat returns the rows of the first source, then those of the second, and so on. It uses a
// source after the sources before it are closed. There must be at least one source.
func Concat(sources []Rows) Rows {
	s := over(sources...)
	at, fit := 0, false
	s.step = func(dest []driver.Value) error {
		if !fit {
			if err := s.fit(); err != nil {
				return err
			}
			fit = true
		}
		for at < len(s.sources) {
			if err := s.sources[at].Next(dest); !errors.Is(err, io.EOF) {
				return err
			}
			s.closeSource(at)
			at++
		}
		return io.EOF
	}
	return s
}

// Limited returns count rows after the first offset rows; all of them if count is negative.
func Limited(rows Rows, offset, count int64) Rows {
	if offset <= 0 && count < 0 {
		return rows
	}
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		if count == 0 {
			s.closeSource(0)
			return io.EOF
		}
		for ; offset > 0; offset-- {
			if err := rows.Next(dest); err != nil {
				return err
			}
		}
		err := rows.Next(dest)
		if count > 0 {
			count--
		}
		return err
	}
	return s
}

// Counted returns one row with the number of rows, in a column of this name.
func Counted(rows Rows, name string) Rows {
	n := int64(0)
	s := gather(rows, func([]driver.Value) error { n++; return nil }, func() func([]driver.Value) error {
		return each([][]driver.Value{{n}})
	})
	s.columns = []string{name}
	return s
}

// Cut removes the hidden columns, which are the last ones. It calls Columns at once.
func Cut(rows Rows, hidden int) Rows {
	columns := rows.Columns()
	row := make([]driver.Value, len(columns))
	s := over(rows)
	s.columns = columns[:len(columns)-hidden]
	s.step = func(dest []driver.Value) error {
		err := rows.Next(row)
		if err == nil {
			copy(dest, row)
		}
		return err
	}
	return s
}

// each returns rows one after another, and forgets those that it has returned.
func each(rows [][]driver.Value) func(dest []driver.Value) error {
	return func(dest []driver.Value) error {
		if len(rows) == 0 {
			return io.EOF
		}
		copy(dest, rows[0])
		rows[0] = nil
		rows = rows[1:]
		return nil
	}
}

// Kept returns a row that remains valid when the source reads its next row.
func Kept(row []driver.Value) []driver.Value {
	held := slices.Clone(row)
	for i, v := range held {
		held[i] = keep(v)
	}
	return held
}

// keep returns a value that remains valid when the source reads its next row.
func keep(v driver.Value) driver.Value {
	if b, ok := v.([]byte); ok {
		return bytes.Clone(b)
	}
	return v
}
