// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// Ring is a snapshot of a generator's ring, in UidGenerator's terms. Tail minus Cursor is the
// number of ids that remain.
type Ring struct {
	Capacity  int64 // ids that the ring can hold
	Threshold int64 // a fill starts when fewer ids remain
	Tail      int64 // ids put into the ring since the start
	Cursor    int64 // ids issued or discarded since the start
	Discarded int64 // ids discarded because they were too old

	RejectedPuts  int64 // periodic fills that found the ring full
	RejectedTakes int64 // calls that found the ring empty

	// Ahead is the time of the newest id minus the clock's time; it is negative when the id is
	// older.
	Ahead time.Duration
}

// Ring returns a snapshot of the ring.
func (g *Generator) Ring() Ring {
	if g.maker == nil {
		return Ring{}
	}
	s, discarded := g.buffer.Stats(), g.discarded.Load()
	capacity := g.cfg.ticks() << g.cfg.Layout.Bits(keygen.Sequence)
	gone := s.Issued + discarded
	return Ring{
		Capacity:      capacity,
		Threshold:     threshold(capacity, int64(g.cfg.PaddingFactor)),
		Tail:          gone + s.Remaining,
		Cursor:        gone,
		Discarded:     discarded,
		RejectedPuts:  g.rejectedPuts.Load(),
		RejectedTakes: s.Waits,
		Ahead:         g.cfg.Layout.At(g.maker.last.Load()).Sub(g.maker.clock.Time()),
	}
}

// threshold returns percent of capacity, without overflow.
func threshold(capacity, percent int64) int64 {
	return capacity/100*percent + capacity%100*percent/100
}
