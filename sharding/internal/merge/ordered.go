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

// Ordered merges sources that are each ordered by the keys. Rows with equal keys are in the order
// of their sources. It holds one row of each source. There must be at least one source.
func Ordered(sources []Rows, keys []Key) Rows {
	t := &tournament{stage: over(sources...), keys: keys}
	t.step = t.first
	return t
}

// tournament is a tree of losers: a new row of the winner is compared with one row of each level,
// not with two as in a heap.
type tournament struct {
	*stage

	keys    []Key
	players []player
	losers  []int // inner nodes of the tree from 1; 0 is the winner
}

// player is a source with its present row.
type player struct {
	row      []driver.Value
	key      []byte
	previous []byte // the key of the previous row
	done     bool
}

func (t *tournament) first(dest []driver.Value) error {
	if err := t.fit(); err != nil {
		return err
	}
	t.players = make([]player, len(t.sources))
	for i := range t.players {
		t.players[i].row = make([]driver.Value, len(t.Columns()))
		if err := t.read(i); err != nil {
			return err
		}
	}
	t.losers = make([]int, len(t.players))
	t.losers[0] = t.play(1)
	t.step = t.next
	return t.take(dest)
}

// next reads the next row of the source of the last row. It does not read it earlier, because the
// caller was still using the last row.
func (t *tournament) next(dest []driver.Value) error {
	winner := t.losers[0]
	if err := t.read(winner); err != nil {
		return err
	}
	for node := (winner + len(t.players)) / 2; node > 0; node /= 2 {
		if t.beats(t.losers[node], winner) {
			winner, t.losers[node] = t.losers[node], winner
		}
	}
	t.losers[0] = winner
	return t.take(dest)
}

func (t *tournament) take(dest []driver.Value) error {
	p := &t.players[t.losers[0]]
	if p.done {
		return io.EOF
	}
	copy(dest, p.row)
	return nil
}

// play fills the tree below a node and returns the winner. The leaves have the numbers from
// len(players) on.
func (t *tournament) play(node int) int {
	if node >= len(t.players) {
		return node - len(t.players)
	}
	a, b := t.play(2*node), t.play(2*node+1)
	if t.beats(b, a) {
		a, b = b, a
	}
	t.losers[node] = b
	return a
}

func (t *tournament) beats(a, b int) bool {
	p, q := &t.players[a], &t.players[b]
	if p.done || q.done {
		return !p.done
	}
	c := bytes.Compare(p.key, q.key)
	return c < 0 || c == 0 && a < b
}

func (t *tournament) read(i int) error {
	p := &t.players[i]
	err := t.sources[i].Next(p.row)
	if errors.Is(err, io.EOF) {
		p.done = true
		t.closeSource(i)
		return nil
	}
	if err != nil {
		return err
	}
	p.previous, p.key = p.key, p.previous[:0]
	if p.key, err = appendKeys(p.key, t.keys, p.row); err != nil {
		return err
	}
	if bytes.Compare(p.previous, p.key) > 0 {
		return fmt.Errorf("%w: those of source %d", ErrOrder, i)
	}
	return nil
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
