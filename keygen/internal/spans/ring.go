// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// ring is the state of a Buffer. Buffer.mu guards all of it; callers read current without it.
type ring struct {
	current *atomic.Pointer[chunk] // the Buffer's
	size    int                    // Config.Spans
	padding int                    // Config.Padding

	ahead       []*chunk     // the spans to come, in order
	queued      int64        // the keys in them
	newest      int64        // the size of the newest span
	highest     int64        // the highest key of all spans so far
	reservation *reservation // the reservation under way, nil when there is none
	filling     bool         // reservations follow each other until the ring is full
	retired     int64        // keys issued from chunks that were replaced
	pace        Pace
	meter       meter
	closed      bool
}

// Pace says how fast callers used the newest of the used-up spans: Keys keys in Took. It is
// zero until the first span is used up.
type Pace struct {
	Keys int64
	Took time.Duration
}

// advanceChunk replaces old, which is used up, by the next chunk. When the ring is empty, it
// returns the reservation to wait for.
func (b *Buffer) advanceChunk(old *chunk) (*reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.ring
	switch {
	case r.closed:
		return nil, b.closedError()
	case b.current.Load() != old:
		return nil, nil
	}
	if old.ended.IsZero() {
		old.ended = time.Now()
	}
	if len(r.ahead) == 0 {
		r.filling = r.filling || old.span.Count > 0
		return b.startReservation(), nil
	}
	r.retired += old.span.Count
	if old.span.Count > 0 {
		r.pace = Pace{old.span.Count, old.ended.Sub(old.began)}
	}
	r.shift()
	r.meter.note(time.Now(), r.retired)
	return nil, nil
}

// shift makes the ring's first chunk the current one, or an empty chunk when the ring is empty.
// The caller must have counted the old chunk's keys.
func (r *ring) shift() {
	next := newChunk(keygen.Span{})
	if len(r.ahead) > 0 {
		next = r.ahead[0]
		r.ahead[0] = nil
		r.ahead = r.ahead[1:]
		r.queued -= next.span.Count
	}
	next.began = time.Now()
	if !r.filling {
		r.setLowWater(next)
	}
	r.current.Store(next)
}

// push adds a span to the ring.
func (r *ring) push(span keygen.Span) {
	r.ahead = append(r.ahead, newChunk(span))
	r.queued += span.Count
	r.newest, r.highest = span.Count, span.Last()
}

// setLowWater sets the low-water mark of c, which is or becomes the current chunk. The mark is
// the first ordinal after which fewer keys remain than the padding factor demands.
func (r *ring) setLowWater(c *chunk) {
	percent := int64(r.size * r.padding)
	low := r.newest/100*percent + (r.newest%100*percent+99)/100
	c.setLowWater(min(max(c.span.Count+r.queued-low+1, 1), c.span.Count+1))
}

// retryAtHalf sets the low-water mark of the current chunk, after a fill that failed for good,
// to the middle of its remaining keys: somebody may have removed the cause by then.
func (r *ring) retryAtHalf() {
	c := r.current.Load()
	used := c.used()
	c.setLowWater(used + (c.span.Count-used)/2 + 1)
}

// full returns true when the ring has no room for another span. The current span counts until
// the next one replaces it.
func (r *ring) full() bool {
	held := len(r.ahead)
	if r.current.Load().span.Count > 0 {
		held++
	}
	return held >= r.size
}

// remaining returns how many keys are in memory.
func (r *ring) remaining() int64 {
	c := r.current.Load()
	return c.span.Count - c.used() + r.queued
}

// issued returns how many keys were issued.
func (r *ring) issued() int64 { return r.retired + r.current.Load().used() }

// meter measures how many keys per second are issued.
type meter struct {
	since      time.Time
	issued     int64 // until then
	rate, peak float64
}

// note measures the rate since the last measurement, if that is at least a second ago: over a
// shorter time a burst of a few calls would look like a high rate.
func (m *meter) note(now time.Time, issued int64) {
	passed := now.Sub(m.since)
	if passed < time.Second {
		return
	}
	m.rate = float64(issued-m.issued) / passed.Seconds()
	m.peak = max(m.peak, m.rate)
	m.since, m.issued = now, issued
}
