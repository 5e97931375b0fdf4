package cached

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// Ring is a snapshot of a generator's ring, in UidGenerator's words. Tail minus
// Cursor ids remain.
type Ring struct {
	Capacity  int64 // ids that the ring has room for
	Threshold int64 // a fill starts when fewer ids remain
	Tail      int64 // ids put into the ring since the start
	Cursor    int64 // ids that left it: issued, or discarded
	Discarded int64 // ids that became too old

	RejectedPuts  int64 // periodic fills that found the ring full
	RejectedTakes int64 // calls that found the ring empty

	// Ahead is how far the time of the newest id is ahead of the clock, negative
	// when it is behind.
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
