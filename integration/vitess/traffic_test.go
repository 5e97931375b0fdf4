// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/internal/testwait"
)

// writers is how many goroutines write at once.
const writers = 4

// traffic writes rows with rising keys, and stores which of them were acknowledged.
type traffic struct {
	// Writers hold gate for a row; who moves the rows excludes them.
	gate   sync.RWMutex
	insert func(ctx context.Context, key int64) error
	first  int64

	acknowledged [writers]atomic.Int64
	refused      atomic.Int64 // attempts that were made again
	retry        func(error) bool
}

// insertInto inserts a row of the key by a pool.
func insertInto(db *sql.DB) func(context.Context, int64) error {
	return func(ctx context.Context, key int64) error {
		_, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders (id, user_id) VALUES (%d, %[1]d)", key))
		return err
	}
}

// run writes until stop is called, which waits for the rows that have begun.
func (w *traffic) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for writer := range int64(writers) {
		all.Go(func() { w.write(ctx, t, writer) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func (w *traffic) write(ctx context.Context, t *testing.T, writer int64) {
	for n := w.acknowledged[writer].Load(); ctx.Err() == nil; {
		w.gate.RLock()
		err := w.insert(t.Context(), w.first+n*writers+writer)
		w.gate.RUnlock()
		switch {
		case err == nil:
			n++
			w.acknowledged[writer].Store(n)
		case w.retry != nil && w.retry(err):
			w.refused.Add(1)
		default:
			t.Errorf("row %d: %v", w.first+n*writers+writer, err)
			return
		}
	}
}

// goesOn waits until each writer has written some more rows.
func (w *traffic) goesOn(t *testing.T, rows int64) {
	t.Helper()
	var until [writers]int64
	for i := range until {
		until[i] = w.acknowledged[i].Load() + rows
	}
	testwait.Until(t, "writers go on", func() bool {
		for i := range until {
			if w.acknowledged[i].Load() < until[i] {
				return t.Failed()
			}
		}
		return true
	})
}

// pause moves the rows while writers wait; the writers then continue with another pool.
func (w *traffic) pause(move func(), insert func(context.Context, int64) error) {
	w.gate.Lock()
	defer w.gate.Unlock()
	move()
	w.insert = insert
}

// keys are those that were acknowledged.
func (w *traffic) keys() (keys []int64) {
	for writer := range int64(writers) {
		for n := range w.acknowledged[writer].Load() {
			keys = append(keys, w.first+n*writers+writer)
		}
	}
	return keys
}

// found looks for each acknowledged row by its key, and counts all.
func (w *traffic) found(t *testing.T, db *sql.DB, before int64) {
	t.Helper()
	keys := w.keys()
	if n := number(t.Context(), t, db, "SELECT COUNT(*) FROM orders"); n != before+int64(len(keys)) {
		t.Errorf("%d rows are there, and %d were before %d acknowledged ones", n, before, len(keys))
	}
	for _, key := range keys {
		if id := number(t.Context(), t, db, "SELECT id FROM orders WHERE user_id = %d", key); id != key {
			t.Errorf("key %d finds the row %d", key, id)
		}
	}
}
