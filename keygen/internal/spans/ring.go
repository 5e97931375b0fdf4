package spans

import (
	"time"

	"github.com/shardid/shardid/keygen"
)

// ring is what a Buffer holds besides the chunk in use. All of it is guarded by
// Buffer.mu.
type ring struct {
	ahead   []*chunk // the spans to come, in order
	queued  int64    // the keys in them
	newest  int64    // the size of the newest span
	highest int64    // the highest key of all spans so far
	flight  *flight  // the reservation under way, nil when there is none
	filling bool     // flights follow each other until the ring is full
	retired int64    // keys handed out of chunks that are gone
	pace    Pace
	meter   meter
	closed  bool
}

// Pace is how fast the newest of the spans that are used up was: Keys keys in
// Took. It is zero as long as there is none.
type Pace struct {
	Keys int64
	Took time.Duration
}

// swap makes the next chunk the current one, in the place of old, which is used
// up. When there is none it returns the flight to wait for.
func (b *Buffer) swap(old *chunk) (*flight, error) {
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
		return b.launch(), nil
	}
	r.retired += old.span.Count
	if old.span.Count > 0 {
		r.pace = Pace{old.span.Count, old.ended.Sub(old.began)}
	}
	b.shift()
	r.meter.note(time.Now(), r.retired)
	return nil, nil
}

// shift makes the next chunk the current one, an empty one when there is none.
// The caller must hold mu and have counted the old one's keys.
func (b *Buffer) shift() {
	r := &b.ring
	next := newChunk(keygen.Span{})
	if len(r.ahead) > 0 {
		next = r.ahead[0]
		r.ahead[0] = nil
		r.ahead = r.ahead[1:]
		r.queued -= next.span.Count
	}
	next.began = time.Now()
	if !r.filling {
		b.arm(next)
	}
	b.current.Store(next)
}

// push adds a span to the ring. The caller must hold mu.
func (b *Buffer) push(span keygen.Span) {
	r := &b.ring
	r.ahead = append(r.ahead, newChunk(span))
	r.queued += span.Count
	r.newest, r.highest = span.Count, span.Last()
}

// arm sets the alarm of c, which is or becomes the current chunk, to the first
// ordinal that leaves fewer keys than the padding factor asks for. The caller
// must hold mu.
func (b *Buffer) arm(c *chunk) {
	percent := int64(b.cfg.Spans * b.cfg.Padding)
	low := b.ring.newest/100*percent + (b.ring.newest%100*percent+99)/100
	c.arm(min(max(c.span.Count+b.ring.queued-low+1, 1), c.span.Count+1))
}

// rearm sets the alarm of the current chunk, after a fill that failed for good,
// to the middle of the keys that are left in it: what was wrong may have been set
// right by then. The caller must hold mu.
func (b *Buffer) rearm() {
	c := b.current.Load()
	used := c.used()
	c.arm(used + (c.span.Count-used)/2 + 1)
}

// full returns true when there is no room for another span. The current one
// keeps its place until the next one takes it. The caller must hold mu.
func (b *Buffer) full() bool {
	held := len(b.ring.ahead)
	if b.current.Load().span.Count > 0 {
		held++
	}
	return held >= b.cfg.Spans
}

// remaining returns how many keys are in memory. The caller must hold mu.
func (b *Buffer) remaining() int64 {
	c := b.current.Load()
	return c.span.Count - c.used() + b.ring.queued
}

// issued returns how many keys were handed out. The caller must hold mu.
func (b *Buffer) issued() int64 { return b.ring.retired + b.current.Load().used() }

// meter measures how many keys per second are issued.
type meter struct {
	since      time.Time
	issued     int64 // until then
	rate, peak float64
}

// note measures the rate since the last time, when that is long enough ago for
// a burst of a few calls not to pass for a rate.
func (m *meter) note(now time.Time, issued int64) {
	passed := now.Sub(m.since)
	if passed < time.Second {
		return
	}
	m.rate = float64(issued-m.issued) / passed.Seconds()
	m.peak = max(m.peak, m.rate)
	m.since, m.issued = now, issued
}
