// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
)

// Running computes window functions without a partition over rows that are in the order of each of them, row by row. It holds
// the keys of one row. Rows with equal keys would have one Sum or Count in a database, which needs them all; so no two rows
// may have the keys of such a window.
func Running(d Dialect, rows Rows, windows []Window) Rows {
	if len(windows) == 0 {
		return rows
	}
	all := make([]place, len(windows))
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		if err := rows.Next(dest); err != nil {
			return err
		}
		for i := range windows {
			if err := all[i].next(&windows[i], d, dest); err != nil {
				return err
			}
		}
		return nil
	}
	return s
}

// place is where a window function stands.
type place struct {
	running

	peers         int    // the rows with the keys of the last one
	last, present []byte // the keys of two rows
}

// next sets the column of the next row.
func (p *place) next(w *Window, d Dialect, row []driver.Value) (err error) {
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
	if err == nil {
		row[w.Column], err = d.like(x, row[w.Column])
	}
	return err
}
