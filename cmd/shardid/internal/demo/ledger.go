// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"slices"
	"sync"
)

// ledger has the rows of one table that must differ from the source: the writers record
// here the writes that were acknowledged. It is safe for concurrent use.
type ledger struct {
	table *table

	mu      sync.Mutex
	changed map[int64][]any // rows of the source
	made    map[int64][]any // rows that are new
}

func newLedger(t *table) *ledger {
	return &ledger{table: t, changed: map[int64][]any{}, made: map[int64][]any{}}
}

func (l *ledger) add(row []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[l.table.keyOf(row)] = row
}

func (l *ledger) change(row []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.table.keyOf(row)
	if _, ours := l.made[key]; ours {
		l.made[key] = row
		return
	}
	l.changed[key] = row
}

// remove records a deleted new row. Rows of the source are never deleted, so that their
// number is known in advance.
func (l *ledger) remove(row []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.made, l.table.keyOf(row))
}

// now returns the row of the source with its acknowledged changes.
func (l *ledger) now(row []any) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, ok := l.changed[l.table.keyOf(row)]; ok {
		return other
	}
	return row
}

// added returns the new rows in the order of their keys.
func (l *ledger) added() [][]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := make([][]any, 0, len(l.made))
	for _, row := range l.made {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Compare(l.table.keyOf(a), l.table.keyOf(b)) })
	return rows
}
