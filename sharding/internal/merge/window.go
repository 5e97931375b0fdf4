// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
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
	// Lag has the value of a row before, and Lead that of a row behind, NULL if there is none. Without peers it is known which.
	Lag
	Lead
)

// Window is a window function over the rows of a partition. With an order, Count and Sum run from
// the first row of the partition to the last peer of each row; without one, over all rows.
type Window struct {
	Column    int // the column that gets the value; its present value has the form of the new one
	Function  Function
	Of        int  // the column that Sum adds, or whose values Count counts; -1 counts rows. Of Lag and Lead, the one whose value is taken
	Distance  int  // of Lag and Lead, in rows
	Kind      Kind // of Sum's result, and of the values of Lag and Lead
	Partition []Key
	Order     []Key
}

// Windowed computes window functions. It holds all rows, and returns them in their order.
func Windowed(d Dialect, rows Rows, windows []Window, memory *Memory) Rows {
	if len(windows) == 0 {
		return rows
	}
	var all [][]driver.Value
	take := func(row []driver.Value) error {
		all = append(all, Kept(row))
		return memory.take(2*sizeOfEntry + sizeOf(row...))
	}
	return gather(rows, take, func() func([]driver.Value) error {
		for i := range windows {
			if err := windows[i].compute(d, all); err != nil {
				return func([]driver.Value) error { return err }
			}
		}
		return each(all)
	})
}

func (w *Window) compute(d Dialect, rows [][]driver.Value) (err error) {
	all := make([]keyedRow, len(rows))
	for i, row := range rows {
		p := &all[i]
		p.row = row
		if p.key, err = appendKeys(nil, w.Partition, row); err != nil {
			return err
		}
		p.partition = len(p.key)
		if p.key, err = appendKeys(p.key, w.Order, row); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, keyedRow.compare)
	if w.Function == Lag || w.Function == Lead {
		return w.neighbours(d, all)
	}
	var state running
	for from := 0; from < len(all); {
		first := all[from]
		if from == 0 || !bytes.HasPrefix(all[from-1].key, first.key[:first.partition]) {
			state = running{}
		}
		to := from + 1
		for to < len(all) && first.compare(all[to]) == 0 {
			to++
		}
		if err := state.peers(w, d, all[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// neighbours computes Lag and Lead of sorted rows. On MySQL and MariaDB the present value of a row is its own value in the form
// that it has beside it.
func (w *Window) neighbours(d Dialect, all []keyedRow) error {
	values := make([]driver.Value, len(all))
	for i, p := range all {
		own, of := p.row[w.Column], p.row[w.Of]
		if values[i] = of; d.Engine == MySQL && own != nil && of != nil {
			x, err := numberOf(of, w.Kind)
			if err == nil {
				values[i], err = d.like(x, own)
			}
			if err != nil {
				return err
			}
		}
	}
	step := w.Distance
	if w.Function == Lag {
		step = -step
	}
	for i, p := range all {
		p.row[w.Column] = nil
		if at := i + step; at >= 0 && at < len(all) && bytes.Equal(all[at].key[:all[at].partition], p.key[:p.partition]) {
			p.row[w.Column] = values[at]
		}
	}
	return nil
}

// running is the state of a window function in a partition.
type running struct {
	rows, groups int64 // before the present peers
	count        int64
	sum          sum
}

func (r *running) peers(w *Window, d Dialect, rows []keyedRow) error {
	for _, p := range rows {
		if err := r.add(w, p.row); err != nil {
			return err
		}
	}
	for i, p := range rows {
		x, err := r.value(w, i)
		if err := d.put(p.row, w.Column, x, err); err != nil {
			return err
		}
	}
	r.rows += int64(len(rows))
	r.groups++
	return nil
}

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
	n := r.rows + 1 // that of Rank
	switch w.Function {
	case Count:
		n = r.count
	case RowNumber:
		n += int64(i)
	case DenseRank:
		n = r.groups + 1
	case Sum:
		return r.sum.total(w.Kind)
	}
	return numberOf(n, Integer)
}

// Running computes window functions without a partition over rows that are in the order of each of them, row by row. It holds
// the keys of one row. Rows with equal keys would have one Sum or Count in a database, which needs them all; so no two rows
// may have the keys of such a window.
func Running(d Dialect, rows Rows, windows []Window) Rows {
	if len(windows) == 0 {
		return rows
	}
	all := make([]position, len(windows))
	return where(rows, func(row []driver.Value) (bool, error) {
		for i := range windows {
			if err := all[i].next(&windows[i], d, row); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// position is where a window function stands in ordered rows.
type position struct {
	running

	peers         int    // the rows with the keys of the last one
	last, present []byte // the keys of two rows
}

func (p *position) next(w *Window, d Dialect, row []driver.Value) (err error) {
	if p.present, err = appendKeys(p.present[:0], w.Order, row); err != nil {
		return err
	}
	if p.peers > 0 && !bytes.Equal(p.last, p.present) {
		p.rows += int64(p.peers)
		p.groups++
		p.peers = 0
	}
	p.last, p.present = p.present, p.last
	if err := p.add(w, row); err != nil {
		return err
	}
	x, err := p.value(w, p.peers)
	p.peers++
	return d.put(row, w.Column, x, err)
}
