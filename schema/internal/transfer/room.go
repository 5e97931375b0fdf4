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

// Rows are held in memory between the two databases. How many are held at once goes
// by their bytes: those of small rows are never many, and of large ones a single row
// may be all that there is room for.

const (
	// roomUnit is the unit in which room is given, in bytes.
	roomUnit = 1 << 20
	// roomUnits is how much there is for all rows that a job holds at once. What
	// drivers keep for a statement or an answer, and what the garbage collector has
	// not found yet, comes on top: together some three times as much.
	roomUnits = 16
)

// Room is what the goroutines of a job share to hold rows in. A row that is larger
// than all of it is held by one of them while no other holds any.
type Room struct {
	readers int           // how many read at the same time
	turn    chan struct{} // one goroutine at a time takes units
	units   chan struct{}

	mu      sync.Mutex
	weights map[*openjob.Table]*weights
}

// NewRoom returns a room for so many goroutines that read at the same time.
func NewRoom(readers int) *Room {
	return &Room{readers: readers, turn: make(chan struct{}, 1), units: make(chan struct{}, roomUnits), weights: map[*openjob.Table]*weights{}}
}

// weightsOf are those of a table's rows.
func (r *Room) weightsOf(t *openjob.Table) *weights {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.weights[t] == nil {
		r.weights[t] = &weights{}
	}
	return r.weights[t]
}

// Learn notes how large rows are that were read from a table.
func (r *Room) Learn(t *openjob.Table, rows []backend.Row) { r.weightsOf(t).note(rows) }

// Fitting is how many rows of a table will fit into a number of bytes; 0: nobody knows
// yet.
func (r *Room) Fitting(t *openjob.Table, bytes int) int { return r.weightsOf(t).fitting(bytes) }

// take waits for room for that many bytes, or for all that there is. It returns how
// much was given, to be given back.
func (r *Room) take(ctx context.Context, bytes int) (units int, err error) {
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

// unitsFor is how much room that many bytes take: at least one unit, at most all.
func unitsFor(bytes int) int { return min(max(1, (bytes+roomUnit-1)/roomUnit), roomUnits) }

func (r *Room) give(units int) {
	for range units {
		<-r.units
	}
}

// Limits are those of one reading.
type Limits struct {
	Rows  int // 0: as many as there are
	Bytes int
	First bool // the first row is read however large it is
}

// TooLargeError is that of a row for which there is no room in a reading.
type TooLargeError struct{ Bytes int }

func (e *TooLargeError) Error() string { return fmt.Sprintf("there is no room for %d bytes", e.Bytes) }

// weights are the sizes of the rows that were read from a table last.
type weights struct {
	mu      sync.Mutex
	typical int // of one row, in bytes; 0 before the first
	largest int
}

// note learns from rows that were read. What is typical grows at once and shrinks
// slowly: to read too few rows costs a statement more, to read too many costs what
// was sent in vain.
func (w *weights) note(rows []backend.Row) {
	if len(rows) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.typical = max(sum(rows)/len(rows), w.typical-w.typical/4)
	w.largest = max(largest(rows), w.largest-w.largest/4)
}

// fitting is how many rows will fit into a number of bytes; 0: nobody knows yet.
func (w *weights) fitting(bytes int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.typical == 0 {
		return 0
	}
	return max(1, bytes/w.typical)
}

// wanted is how much room a reading should have that needs so much: all, when nobody
// knows how large the rows are.
func (w *weights) wanted(needed int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.typical == 0 {
		return roomUnits * roomUnit
	}
	return max(needed, w.largest)
}

// Share is the part of the room that each of those who read at the same time has.
func (r *Room) Share() int {
	return max(1, roomUnits/r.readers) * roomUnit
}

// Portions reads rows of a table and uses them, as many at a time as there is room
// for, until read says that these were all.
func (r *Room) Portions(ctx context.Context, t *openjob.Table, read func(Limits) (rows []backend.Row, more bool, err error), use func([]backend.Row) error) error {
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

// portion is one of them, for which so many bytes are wanted.
func (r *Room) portion(ctx context.Context, t *openjob.Table, wanted int, read func(Limits) ([]backend.Row, bool, error), use func([]backend.Row) error) (more bool, err error) {
	units, err := r.take(ctx, wanted)
	if err != nil {
		return false, err
	}
	defer func() { r.give(units) }()
	weights, bytes := r.weightsOf(t), units*roomUnit
	rows, more, err := read(Limits{weights.fitting(bytes), bytes, units == roomUnits})
	if err != nil {
		return false, err
	}
	weights.note(rows)
	// What the rows do not take, others need not wait for.
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

// Collect frees what the driver and database/sql had for a row of so many bytes. Of
// large ones that is several times the row, and the garbage collector by itself would
// wait until there is as much again.
func Collect(bytes int) {
	if bytes >= roomUnits*roomUnit/4 {
		runtime.GC()
	}
}
