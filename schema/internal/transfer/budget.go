// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Rows are held in memory between reading and writing. Their number is limited by their
// bytes: few large rows or many small ones fit, and a single row may use the whole limit.

const (
	// reservedUnit is the unit in which memory is reserved, in bytes.
	reservedUnit = 1 << 20
	// reservedUnits is the limit for all rows that a job holds at once. Buffers of drivers and
	// garbage that is not yet collected come on top: together about three times as much.
	reservedUnits = 16
)

// Budget is the memory for rows that the goroutines of a job share. A row larger than all of
// it is held alone.
type Budget struct {
	readers int           // number of concurrent readers
	turn    chan struct{} // one goroutine at a time reserves units
	units   chan struct{}

	mu      sync.Mutex
	weights map[*openjob.Table]*weights
}

// NewBudget returns a Budget for this number of concurrent readers.
func NewBudget(readers int) *Budget {
	return &Budget{readers: readers, turn: make(chan struct{}, 1), units: make(chan struct{}, reservedUnits), weights: map[*openjob.Table]*weights{}}
}

// weightsOf returns the observed row sizes of a table.
func (r *Budget) weightsOf(t *openjob.Table) *weights {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weights[t] == nil {
		r.weights[t] = &weights{}
	}
	return r.weights[t]
}

// Learn notes the sizes of rows that were read from a table.
func (r *Budget) Learn(t *openjob.Table, rows []backend.Row) { r.weightsOf(t).note(rows) }

// Fitting is how many rows of a table fit into a number of bytes, by the sizes seen so far;
// 0 when none were seen.
func (r *Budget) Fitting(t *openjob.Table, bytes int) int { return r.weightsOf(t).fitting(bytes) }

// take waits until it can reserve this many bytes, or the whole memory if that is less. It
// returns the reserved units, for give.
func (r *Budget) take(ctx context.Context, bytes int) (units int, err error) {
	units = unitsFor(bytes)
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-r.turn }()
	for n := range units {
		select {
		case r.units <- struct{}{}:
		case <-ctx.Done():
			r.give(n)
			return 0, ctx.Err()
		}
	}
	return units, nil
}

// unitsFor is how many units this many bytes take: at least one, at most all.
func unitsFor(bytes int) int { return min(max(1, (bytes+reservedUnit-1)/reservedUnit), reservedUnits) }

func (r *Budget) give(units int) {
	for range units {
		<-r.units
	}
}

// Limits are the limits of one reading.
type Limits struct {
	Rows  int // 0: no limit
	Bytes int
	First bool // the first row is read however large it is
}

// TooLargeError is the error for a row that does not fit into the limits of a reading.
type TooLargeError struct{ Bytes int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a row of %d bytes exceeds the reserved memory", e.Bytes)
}

// weights are the sizes of the rows that were last read from a table.
type weights struct {
	mu      sync.Mutex
	typical int // of one row, in bytes; 0 before the first
	largest int
}

// note learns from rows that were read. The typical size rises at once and falls slowly:
// reading too few rows costs one more statement, reading too many costs rows that are sent
// in vain.
func (w *weights) note(rows []backend.Row) {
	if len(rows) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.typical = max(sum(rows)/len(rows), w.typical-w.typical/4)
	w.largest = max(largest(rows), w.largest-w.largest/4)
}

// fitting is how many rows fit into a number of bytes; 0 before the first row.
func (w *weights) fitting(bytes int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.typical == 0 {
		return 0
	}
	return max(1, bytes/w.typical)
}

// wanted is how much memory a reading should reserve that needs this much: all of it before
// the first row.
func (w *weights) wanted(needed int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.typical == 0 {
		return reservedUnits * reservedUnit
	}
	return max(needed, w.largest)
}

// Share is the part of the memory for each of the concurrent readers.
func (r *Budget) Share() int {
	return max(1, reservedUnits/r.readers) * reservedUnit
}

// Portions reads rows of a table and passes them to use, as many at a time as fit, until
// read reports that there are no more.
func (r *Budget) Portions(ctx context.Context, t *openjob.Table, read func(Limits) (rows []backend.Row, more bool, err error), use func([]backend.Row) error) error {
	weights := r.weightsOf(t)
	for needed := r.Share(); ; {
		more, err := r.portion(ctx, t, weights.wanted(needed), read, use)
		var tooLarge *TooLargeError
		switch {
		case errors.As(err, &tooLarge):
			needed = tooLarge.Bytes
		case err != nil || !more:
			return err
		default:
			needed = r.Share()
		}
	}
}

// portion is one of these steps. It wants this many bytes.
func (r *Budget) portion(ctx context.Context, t *openjob.Table, wanted int, read func(Limits) ([]backend.Row, bool, error), use func([]backend.Row) error) (more bool, err error) {
	units, err := r.take(ctx, wanted)
	if err != nil {
		return false, err
	}
	defer func() { r.give(units) }()
	weights, bytes := r.weightsOf(t), units*reservedUnit
	rows, more, err := read(Limits{weights.fitting(bytes), bytes, units == reservedUnits})
	if err != nil {
		return false, err
	}
	weights.note(rows)
	// Memory that the rows do not need is released for others.
	spare := units - unitsFor(sum(rows))
	r.give(spare)
	units -= spare
	Collect(largest(rows))
	err = use(rows)
	Collect(largest(rows))
	return more, err
}

// sum is how many bytes the rows have together.
func sum(rows []backend.Row) (bytes int) {
	for i := range rows {
		bytes += rows[i].Weight
	}
	return bytes
}

// largest is how many bytes the largest of the rows has.
func largest(rows []backend.Row) (bytes int) {
	for i := range rows {
		bytes = max(bytes, rows[i].Weight)
	}
	return bytes
}

// Collect frees the buffers that the driver and database/sql had for a row of this many
// bytes. For large rows these are several times the row, and the garbage collector by
// itself would wait until the heap has doubled.
func Collect(bytes int) {
	if bytes >= reservedUnits*reservedUnit/4 {
		runtime.GC()
	}
}
