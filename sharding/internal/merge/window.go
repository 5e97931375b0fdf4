// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The functions of windows that are not aggregates.
const (
	// RowNumber numbers the rows of a partition from 1.
	RowNumber Function = iota + 10
	// Rank numbers them too, and gives peers the number of the first of them.
	Rank
	// DenseRank gives peers one number, and the next peers the next.
	DenseRank
)

// Window is a window function over the rows of a partition. With an order, Count and Sum run from
// the first row of the partition to the last peer of each row; without one, over all rows.
type Window struct {
	Column    int // the column that gets the value; its present value has the form of the new one
	Function  Function
	Of        int // the column that Sum adds, or whose values Count counts; -1 counts rows
	Kind      Kind
	Partition []Key
	Order     []Key
}

// Windowed computes window functions. It holds all rows, and returns them in their order.
func Windowed(d Dialect, rows Rows, windows []Window, memory *Memory) Rows {
	var all [][]driver.Value
	take := func(row []driver.Value) error {
		held := make([]driver.Value, len(row))
		for i, v := range row {
			held[i] = keep(v)
		}
		all = append(all, held)
		return memory.take(2*sizeOfEntry + sizeOf(row...))
	}
	emit := func(dest []driver.Value) error {
		if len(all) == 0 {
			return io.EOF
		}
		copy(dest, all[0])
		all[0] = nil
		all = all[1:]
		return nil
	}
	return gather(rows, take, func() func([]driver.Value) error {
		for i := range windows {
			if err := windows[i].compute(d, all); err != nil {
				return func([]driver.Value) error { return err }
			}
		}
		return emit
	})
}

// Totalled returns sources in which columns that count all rows of their source count those of all sources. Before
// the first row it reads the first one of each source: one without rows has counted none.
func Totalled(d Dialect, sources []Rows, columns []int) []Rows {
	if len(columns) == 0 {
		return sources
	}
	t := &totals{dialect: d, columns: columns, sources: make([]totalled, len(sources)), sums: make([]sum, len(columns))}
	all := make([]Rows, len(sources))
	for i, source := range sources {
		s := over(source)
		s.step = func(dest []driver.Value) error { return t.next(i, dest) }
		all[i], t.sources[i].Rows = s, source
	}
	return all
}

// totals adds up what several sources have counted.
type totals struct {
	dialect Dialect
	columns []int
	sources []totalled
	sums    []sum
	read    bool
}

// totalled is a source whose first row is read.
type totalled struct {
	Rows

	first []driver.Value // nil if there is none, and after it was returned
	ended bool
}

// begin reads the first rows.
func (t *totals) begin() error {
	for i := range t.sources {
		s := &t.sources[i]
		row := make([]driver.Value, len(s.Columns()))
		switch err := s.Next(row); {
		case errors.Is(err, io.EOF):
			s.ended = true
			continue
		case err != nil:
			return err
		}
		for at, column := range t.columns {
			if err := t.sums[at].add(row[column], Integer); err != nil {
				return err
			}
		}
		for at, v := range row {
			row[at] = keep(v)
		}
		s.first = row
	}
	t.read = true
	return nil
}

// next returns a row of a source.
func (t *totals) next(source int, dest []driver.Value) error {
	if !t.read {
		if err := t.begin(); err != nil {
			return err
		}
	}
	s := &t.sources[source]
	switch {
	case s.ended:
		return io.EOF
	case s.first != nil:
		copy(dest, s.first)
		s.first = nil
	default:
		if err := s.Next(dest); err != nil {
			return err
		}
	}
	for at, column := range t.columns {
		total, err := t.sums[at].result(Integer)
		if err == nil {
			dest[column], err = inFormOf(t.dialect, total, dest[column])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inFormOf returns a number in the form of another one.
func inFormOf(d Dialect, n, like driver.Value) (driver.Value, error) {
	x, err := numberOf(n, Integer)
	if err != nil {
		return nil, err
	}
	return d.like(x, like)
}

// placed is a row with the keys of its partition and of its order.
type placed struct {
	row              []driver.Value
	partition, order []byte
}

// compute sets the column of all rows.
func (w *Window) compute(d Dialect, rows [][]driver.Value) (err error) {
	all := make([]placed, len(rows))
	for i, row := range rows {
		all[i].row = row
		if all[i].partition, err = appendKeys(nil, w.Partition, row); err == nil {
			all[i].order, err = appendKeys(nil, w.Order, row)
		}
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		if c := bytes.Compare(a.partition, b.partition); c != 0 {
			return c
		}
		return bytes.Compare(a.order, b.order)
	})
	var state running
	for from := 0; from < len(all); {
		first := all[from]
		if from == 0 || !bytes.Equal(first.partition, all[from-1].partition) {
			state = running{}
		}
		to := from + 1
		for to < len(all) && bytes.Equal(first.partition, all[to].partition) && bytes.Equal(first.order, all[to].order) {
			to++
		}
		if err := state.peers(w, d, all[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// running is the state of a window function in a partition.
type running struct {
	rows, groups int64 // before the present peers
	count        int64
	sum          sum
}

// peers sets the column of rows with equal keys.
func (r *running) peers(w *Window, d Dialect, rows []placed) error {
	for _, p := range rows {
		if err := r.add(w, p.row); err != nil {
			return err
		}
	}
	for i, p := range rows {
		x, err := r.value(w, i)
		if err == nil {
			p.row[w.Column], err = d.like(x, p.row[w.Column])
		}
		if err != nil {
			return err
		}
	}
	r.rows += int64(len(rows))
	r.groups++
	return nil
}

// add adds a row to a sum or a count.
func (r *running) add(w *Window, row []driver.Value) error {
	if w.Of >= 0 && row[w.Of] == nil {
		return nil
	}
	if r.count++; w.Function == Sum {
		return r.sum.add(row[w.Of], w.Kind)
	}
	return nil
}

// value returns the value of the i-th of the present peers.
func (r *running) value(w *Window, i int) (number, error) {
	switch w.Function {
	case Count:
		return numberOf(r.count, Integer)
	case RowNumber:
		return numberOf(r.rows+int64(i)+1, Integer)
	case Rank:
		return numberOf(r.rows+1, Integer)
	case DenseRank:
		return numberOf(r.groups+1, Integer)
	case Sum:
		v, err := r.sum.result(w.Kind)
		if err != nil {
			return number{}, err
		}
		return numberOf(v, w.Kind)
	}
	return number{}, unsupported(fmt.Sprintf("window function %d", w.Function))
}
