// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Ordered merges sources that are each ordered by the keys. Rows with equal keys are in the order
// of their sources. It holds one row of each source. There must be at least one source.
func Ordered(sources []Rows, keys []Key) Rows { return Totalled(Dialect{}, sources, keys, nil) }

// Totalled is Ordered for rows with columns that count all rows of their source, which get the number of the rows of all
// sources. A source without rows has counted none.
func Totalled(d Dialect, sources []Rows, keys []Key, columns []int) Rows {
	m := &merged{stage: over(sources...), keys: keys, dialect: d, columns: columns, sums: make([]sum, len(columns))}
	m.step = m.first
	return m
}

type merged struct {
	*stage

	keys  []Key
	heads []*head // in the order of their keys

	dialect Dialect
	columns []int // that count rows
	sums    []sum // of these columns
}

// head is a source with its present row.
type head struct {
	source   int
	row      []driver.Value
	key      []byte
	previous []byte // the key of the previous row
}

func (h *head) compare(other *head) int {
	return cmp.Or(bytes.Compare(h.key, other.key), h.source-other.source)
}

func (m *merged) first(dest []driver.Value) error {
	if err := m.fit(); err != nil {
		return err
	}
	for i := range m.sources {
		h := &head{source: i, row: make([]driver.Value, len(m.Columns()))}
		more, err := m.read(h)
		if more {
			m.heads = append(m.heads, h)
			for at, column := range m.columns {
				err = cmp.Or(err, m.sums[at].add(h.row[column], Integer))
			}
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(m.heads, (*head).compare)
	m.step = m.next
	return m.take(dest)
}

// next reads the next row of the source of the last row. It does not read it earlier, because the
// caller was still using the last row.
func (m *merged) next(dest []driver.Value) error {
	h, others := m.heads[0], m.heads[1:]
	more, err := m.read(h)
	switch {
	case err != nil:
		return err
	case more:
		at, _ := slices.BinarySearchFunc(others, h, (*head).compare)
		copy(m.heads, others[:at])
		m.heads[at] = h
	default:
		m.heads = others
	}
	return m.take(dest)
}

func (m *merged) take(dest []driver.Value) error {
	if len(m.heads) == 0 {
		return io.EOF
	}
	copy(dest, m.heads[0].row)
	for at, column := range m.columns {
		total, err := m.sums[at].total(Integer)
		if err := m.dialect.put(dest, column, total, err); err != nil {
			return err
		}
	}
	return nil
}

// read reads the next row of a source and reports whether there is one.
func (m *merged) read(h *head) (more bool, err error) {
	err = m.sources[h.source].Next(h.row)
	if errors.Is(err, io.EOF) {
		m.closeSource(h.source)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h.previous, h.key = h.key, h.previous[:0]
	if h.key, err = appendKeys(h.key, m.keys, h.row); err != nil {
		return false, err
	}
	if bytes.Compare(h.previous, h.key) > 0 {
		return false, fmt.Errorf("%w: those of source %d", ErrOrder, h.source)
	}
	return true, nil
}

// Sorted sorts rows in memory. Rows with equal keys keep their order.
func Sorted(rows Rows, keys []Key, memory *Memory) Rows {
	if len(keys) == 0 {
		return rows
	}
	var all []keyedRow
	take := func(row []driver.Value) error {
		key, err := appendKeys(nil, keys, row)
		if err != nil {
			return err
		}
		all = append(all, keyedRow{row: Kept(row), key: key})
		return memory.take(2*sizeOfEntry + cap(key) + sizeOf(row...))
	}
	return gather(rows, take, func() func([]driver.Value) error {
		slices.SortStableFunc(all, keyedRow.compare)
		sorted := make([][]driver.Value, len(all))
		for i, p := range all {
			sorted[i] = p.row
		}
		all = nil
		return each(sorted)
	})
}

// keyedRow is a row with its key.
type keyedRow struct {
	row       []driver.Value
	key       []byte
	partition int // the length of the first part of the key, that of the partition of a window
}

func (p keyedRow) compare(q keyedRow) int { return bytes.Compare(p.key, q.key) }
