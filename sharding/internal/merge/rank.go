// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
)

// Ranking is a column that numbers the rows of a result in its order: RowNumber, Rank or DenseRank by the first keys of
// the order.
type Ranking struct {
	Column   int // the column that gets the number; its present value has the form of the new one
	Function Function
	Keys     []Key
}

// Ranked numbers rows that are in the order of each ranking. It holds the keys of one row.
func Ranked(d Dialect, rows Rows, rankings []Ranking) Rows {
	if len(rankings) == 0 {
		return rows
	}
	all := make([]ranks, len(rankings))
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		if err := rows.Next(dest); err != nil {
			return err
		}
		for i := range rankings {
			r := &rankings[i]
			number, err := all[i].next(r, dest)
			if err == nil {
				dest[r.Column], err = inFormOf(d, number, dest[r.Column])
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// ranks is where a ranking stands: its numbers of the row that was read last.
type ranks struct {
	last, present    []byte // the keys of two rows
	rows, rank, peer int64
}

// next returns the number of the next row.
func (n *ranks) next(r *Ranking, row []driver.Value) (int64, error) {
	var err error
	if n.present, err = appendKeys(n.present[:0], r.Keys, row); err != nil {
		return 0, err
	}
	n.rows++
	if n.rows == 1 || !bytes.Equal(n.last, n.present) {
		n.rank = n.rows
		n.peer++
	}
	n.last, n.present = n.present, n.last
	switch r.Function {
	case Rank:
		return n.rank, nil
	case DenseRank:
		return n.peer, nil
	default:
		return n.rows, nil
	}
}
