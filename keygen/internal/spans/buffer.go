// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Buffer].
type Config struct {
	// Name begins error texts: "segment", say. It is required.
	Name string
	// Reserve returns the next span, which must lie above all spans before it. One goroutine at
	// a time calls it. It is required.
	Reserve func(ctx context.Context, p Pace) (keygen.Span, error)
	// Spans is the size of the ring: how many spans to hold at most, the one in
	// use included. At least 2.
	Spans int
	// Padding is a percentage of the ring, from 1 to 99. A fill starts when fewer keys remain,
	// and goes on until the ring is full. The size of the ring is Spans times the size of the
	// newest span.
	Padding int
	// MaxWait bounds the wait of one call, whose context may end it earlier. It is required.
	MaxWait time.Duration
	// FailFast makes calls that find no key fail at once, without waiting.
	FailFast bool
	// CallTimeout ends a single reservation that hangs. It is required.
	CallTimeout time.Duration
	// Observer is called at waits, reservations, outages and recoveries.
	Observer Observer
}

// Buffer issues the keys of spans. It is safe for concurrent use. A nil *Buffer refuses every
// key, so the zero value of a generator built on it refuses them, too.
type Buffer struct {
	cfg     Config
	current atomic.Pointer[chunk] // changed only while holding mu

	waits    atomic.Int64
	failures atomic.Int64
	reserves counters

	ctx          context.Context // ends with Close; only reservations use it
	cancel       context.CancelFunc
	reservations sync.WaitGroup // grows only while holding mu, and not after Close

	line chan struct{} // capacity 1: the call that sent its element may wait for keys

	mu   sync.Mutex // never held while waiting or talking to the source
	ring ring
}

// New returns a Buffer that holds no span yet.
func New(cfg Config) *Buffer {
	b := &Buffer{cfg: cfg, line: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.current.Store(newChunk(keygen.Span{}))
	b.ring = ring{current: &b.current, size: cfg.Spans, padding: cfg.Padding}
	b.ring.meter.since = time.Now()
	return b
}

// errNotMade is the error of a generator whose Buffer is nil because New did not make it.
var errNotMade = fmt.Errorf("%w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns a key of b. It reads ctx only when it has to wait.
//
// The compiler inlines Next into its caller and into the caller's caller. The argument more is
// always [Buffer.More]. It is a parameter because the compiler's cost model counts the call of
// a parameter as cheaper than the call of a method; with the method Next would be too large to
// inline. TestNextIsInlined checks this with the compiler.
func Next(ctx context.Context, b *Buffer, more func(*Buffer, context.Context, *chunk, int64) (int64, error)) (key int64, err error) {
	if b == nil {
		return 0, errNotMade
	}
	c := b.current.Load()
	if key = atomic.AddInt64(&c.taken, 1); key >= c.plain.Load() {
		key, err = more(b, ctx, c, key)
	}
	return
}

// More is the slow path of Next: it waits for a chunk with keys, or starts a fill. The argument
// taken is the value of c.taken after Next's addition.
func (b *Buffer) More(ctx context.Context, c *chunk, taken int64) (int64, error) {
	n := taken - c.before
	turn := turn{line: b.line}
	defer turn.leave()
	for n > c.span.Count {
		if err := b.nextChunk(ctx, c, &turn); err != nil {
			return 0, err
		}
		c = b.current.Load()
		n = c.take(1)
	}
	if n >= c.lowWater.Load() {
		b.belowLowWater(c)
	}
	return c.key(n), nil
}

// Fill sets dst to keys, rising within each span.
func (b *Buffer) Fill(ctx context.Context, dst []int64) error {
	if b == nil {
		return errNotMade
	}
	turn := turn{line: b.line}
	defer turn.leave()
	for len(dst) > 0 {
		c := b.current.Load()
		last := c.take(int64(len(dst)))
		got := c.copy(dst, last-int64(len(dst)))
		if last <= c.span.Count && last >= c.lowWater.Load() {
			b.belowLowWater(c)
		}
		if dst = dst[got:]; len(dst) == 0 {
			return nil
		}
		if err := b.nextChunk(ctx, c, &turn); err != nil {
			return err
		}
	}
	return nil
}

// Ready waits until the Buffer holds a span and no fill is under way. It takes no key. It waits
// also when Config.FailFast is set.
func (b *Buffer) Ready(ctx context.Context) error {
	maxWait := time.NewTimer(b.cfg.MaxWait)
	defer maxWait.Stop()
	for {
		f, err := b.pending()
		if f == nil {
			return err
		}
		if err := b.await(ctx, f, maxWait.C); err != nil {
			return err
		}
	}
}

// pending returns the reservation that Ready must wait for, nil when there is none.
func (b *Buffer) pending() (*reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ring.closed {
		return nil, b.closedError()
	}
	if b.ring.remaining() == 0 {
		return b.startReservation(), nil
	}
	return b.ring.reservation, nil
}

// StartFill starts a fill. It returns false when the ring has no room for another span.
func (b *Buffer) StartFill() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.startFill()
}

func (b *Buffer) startFill() bool {
	if b.ring.closed || b.ring.full() {
		return false
	}
	b.ring.filling = true
	b.current.Load().clearLowWater()
	b.startReservation()
	return true
}

// belowLowWater starts a fill because c passed its low-water mark. When the ring has no room
// for another span, c does not ask for a fill again.
func (b *Buffer) belowLowWater(c *chunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.clearLowWater()
	b.startFill()
}

// Discard drops the spans in memory that end below a key and returns the number of unissued
// keys in them. When it dropped any, it starts a fill.
func (b *Buffer) Discard(below int64) (lost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := b.current.Load(); c.span.Count > 0 && c.span.Last() < below; c = b.current.Load() {
		used := c.seal()
		b.ring.retired += used
		lost += c.span.Count - used
		b.ring.shift()
	}
	if lost > 0 {
		b.ring.filling = true
		b.startReservation()
	}
	return lost
}

// nextChunk returns once another chunk than old, which is used up, is the current one.
func (b *Buffer) nextChunk(ctx context.Context, old *chunk, turn *turn) error {
	f, err := b.advanceChunk(old)
	if f != nil {
		b.waits.Add(1)
		err = b.waitForKeys(ctx, old, f, turn)
	}
	if err != nil {
		b.failures.Add(1)
	}
	return err
}

func (b *Buffer) waitForKeys(ctx context.Context, old *chunk, f *reservation, turn *turn) (err error) {
	if b.cfg.FailFast {
		return b.starved(errors.New("the ring is empty"))
	}
	begin := time.Now()
	maxWait := time.NewTimer(b.cfg.MaxWait)
	defer maxWait.Stop()
	err = b.queue(ctx, turn, maxWait.C)
	for f != nil && err == nil {
		if err = b.await(ctx, f, maxWait.C); err == nil {
			f, err = b.advanceChunk(old)
		}
	}
	b.cfg.Observer.wait(time.Since(begin), err)
	return err
}

// queue waits until this call may wait for keys: one call at a time does.
func (b *Buffer) queue(ctx context.Context, turn *turn, maxWait <-chan time.Time) error {
	if turn.held {
		return nil
	}
	select {
	case b.line <- struct{}{}:
		turn.held = true
		return nil
	case <-ctx.Done():
		return b.starved(ctx.Err())
	case <-maxWait:
		return b.starved(fmt.Errorf("waited %v", b.cfg.MaxWait))
	}
}

// await waits for a reservation's end and returns its error.
func (b *Buffer) await(ctx context.Context, f *reservation, maxWait <-chan time.Time) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return b.starved(ctx.Err())
	case <-maxWait:
		return b.starved(fmt.Errorf("waited %v", b.cfg.MaxWait))
	}
}

func (b *Buffer) starved(why error) error {
	if err := b.reserves.lastError(); err != nil {
		return fmt.Errorf("%s: %w: %w; the source says: %w", b.cfg.Name, keygen.ErrStarved, why, err)
	}
	if asked := b.reserves.asked.Load(); asked != nil {
		return fmt.Errorf("%s: %w: %w; the source was asked %v ago and has not answered", b.cfg.Name, keygen.ErrStarved, why, time.Since(*asked).Round(time.Millisecond))
	}
	return fmt.Errorf("%s: %w: %w", b.cfg.Name, keygen.ErrStarved, why)
}

func (b *Buffer) closedError() error { return fmt.Errorf("%s: %w", b.cfg.Name, keygen.ErrClosed) }

// Stats returns a snapshot. Waits counts the calls that found no key.
func (b *Buffer) Stats() keygen.Stats {
	if b == nil {
		return keygen.Stats{LastError: errNotMade}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	issued := b.ring.issued()
	b.ring.meter.note(time.Now(), issued)
	s := keygen.Stats{
		Issued:    issued,
		Rate:      b.ring.meter.rate,
		Waits:     b.waits.Load(),
		Failures:  b.failures.Load(),
		Remaining: b.ring.remaining(),
	}
	b.reserves.describe(&s)
	return s
}

// Rate returns the newest measured rate in keys per second, and the highest rate so far. A rate
// is an average over at least a second. A measurement ends when a span is used up or when Rate
// or Stats is called.
func (b *Buffer) Rate() (now, peak float64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring.meter.note(time.Now(), b.ring.issued())
	return b.ring.meter.rate, b.ring.meter.peak
}

// Close cancels the reservation under way and waits for its end. Calls that wait, and later
// calls, return keygen.ErrClosed. The keys in memory become a gap. Close may be called twice.
func (b *Buffer) Close() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	if !b.ring.closed {
		b.ring.closed = true
		b.ring.retired += b.current.Load().seal()
		b.ring.ahead, b.ring.queued = nil, 0
		b.current.Store(newChunk(keygen.Span{}))
	}
	b.mu.Unlock()
	b.cancel()
	b.reservations.Wait()
	return nil
}
