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
	// Name stands in front of error texts, "segment" say. It is required.
	Name string
	// Reserve gives the next span, above all before. It is called by one
	// goroutine at a time. It is required.
	Reserve func(ctx context.Context, p Pace) (keygen.Span, error)
	// Spans is the size of the ring: how many spans to hold at most, the one in
	// use included. At least 2.
	Spans int
	// Padding is the percentage of the ring, from 1 to 99, below which a fill
	// starts. It goes on until the ring is full. The size of a span is that of
	// the newest one.
	Padding int
	// Patience is the longest that a caller waits whose context allows more. It
	// is required.
	Patience time.Duration
	// FailFast makes calls that find no key fail at once, without waiting.
	FailFast bool
	// CallTimeout ends a single reservation that hangs. It is required.
	CallTimeout time.Duration
	// Observer is told what happens.
	Observer Observer
}

// Buffer hands out the keys of spans. It is safe for concurrent use. A nil *Buffer
// refuses every key, so that the zero values of the generators on it do.
type Buffer struct {
	cfg     Config
	current atomic.Pointer[chunk] // changed only while holding mu

	waits    atomic.Int64
	failures atomic.Int64
	reserves counters

	ctx     context.Context // ends with Close; only flights use it
	cancel  context.CancelFunc
	flights sync.WaitGroup // grows only while holding mu, and not after Close

	line chan struct{} // holds one, of the call whose turn it is to wait for keys

	mu   sync.Mutex // never held while waiting or talking to the source
	ring ring
}

// New returns a Buffer that holds no span yet.
func New(cfg Config) *Buffer {
	b := &Buffer{cfg: cfg, line: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.current.Store(newChunk(keygen.Span{}))
	b.ring.meter.since = time.Now()
	return b
}

// errNotMade is what a generator says whose Buffer is nil, as New has not made it.
var errNotMade = fmt.Errorf("%w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns a key of b. It looks at ctx only when it has to wait.
//
// It becomes a part of its caller, and of the caller's caller, where more is always
// [Buffer.More]: the compiler counts the call of a parameter for less than that of a
// method, with which the whole would be too large. TestNextIsInlined asks the compiler.
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

// More goes on where Next has more to do than to add: taken is what c.taken became.
func (b *Buffer) More(ctx context.Context, c *chunk, taken int64) (int64, error) {
	n := taken - c.before
	turn := turn{line: b.line}
	defer turn.leave()
	for n > c.span.Count {
		if err := b.advance(ctx, c, &turn); err != nil {
			return 0, err
		}
		c = b.current.Load()
		n = c.take(1)
	}
	if n >= c.alarm.Load() {
		b.alarmed(c)
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
		if last <= c.span.Count && last >= c.alarm.Load() {
			b.alarmed(c)
		}
		if dst = dst[got:]; len(dst) == 0 {
			return nil
		}
		if err := b.advance(ctx, c, &turn); err != nil {
			return err
		}
	}
	return nil
}

// Ready waits until a span is there and the fill under way has ended, taking
// nothing. It waits in a Buffer that fails fast, too.
func (b *Buffer) Ready(ctx context.Context) error {
	patience := time.NewTimer(b.cfg.Patience)
	defer patience.Stop()
	for {
		f, err := b.awaited()
		if f == nil {
			return err
		}
		if err := b.await(ctx, f, patience.C); err != nil {
			return err
		}
	}
}

// awaited returns the flight that Ready waits for.
func (b *Buffer) awaited() (*flight, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ring.closed {
		return nil, b.closedError()
	}
	if b.remaining() == 0 {
		return b.launch(), nil
	}
	return b.ring.flight, nil
}

// Pad starts a fill, and returns false when there is no room for another span.
func (b *Buffer) Pad() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pad()
}

func (b *Buffer) pad() bool {
	if b.ring.closed || b.full() {
		return false
	}
	b.ring.filling = true
	b.current.Load().disarm()
	b.launch()
	return true
}

// alarmed starts a fill because too few keys are left after c's. Where that
// finds no room, c calls for none again.
func (b *Buffer) alarmed(c *chunk) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.disarm()
	b.pad()
}

// Discard gives up the spans in memory that end below a key, starts a fill when
// there were any, and returns how many keys were lost with them.
func (b *Buffer) Discard(below int64) (lost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := b.current.Load(); c.span.Count > 0 && c.span.Last() < below; c = b.current.Load() {
		used := c.seal()
		b.ring.retired += used
		lost += c.span.Count - used
		b.shift()
	}
	if lost > 0 {
		b.ring.filling = true
		b.launch()
	}
	return lost
}

// advance returns when old, which is used up, is no longer the current chunk.
func (b *Buffer) advance(ctx context.Context, old *chunk, turn *turn) error {
	f, err := b.swap(old)
	if f != nil {
		b.waits.Add(1)
		err = b.outwait(ctx, old, turn)
	}
	if err != nil {
		b.failures.Add(1)
	}
	return err
}

func (b *Buffer) outwait(ctx context.Context, old *chunk, turn *turn) (err error) {
	if b.cfg.FailFast {
		return b.starved(errors.New("the ring is empty"))
	}
	begin := time.Now()
	patience := time.NewTimer(b.cfg.Patience)
	defer patience.Stop()
	if err = b.queue(ctx, turn, patience.C); err == nil {
		var f *flight
		for f, err = b.swap(old); f != nil && err == nil; {
			if err = b.await(ctx, f, patience.C); err == nil {
				f, err = b.swap(old)
			}
		}
	}
	b.cfg.Observer.wait(time.Since(begin), err)
	return err
}

// queue waits until it is the call's turn to wait for keys.
func (b *Buffer) queue(ctx context.Context, turn *turn, patience <-chan time.Time) error {
	if turn.held {
		return nil
	}
	select {
	case b.line <- struct{}{}:
		turn.held = true
		return nil
	case <-ctx.Done():
		return b.starved(ctx.Err())
	case <-patience:
		return b.starved(fmt.Errorf("waited %v", b.cfg.Patience))
	}
}

// await waits for a flight's end and returns its error.
func (b *Buffer) await(ctx context.Context, f *flight, patience <-chan time.Time) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return b.starved(ctx.Err())
	case <-patience:
		return b.starved(fmt.Errorf("waited %v", b.cfg.Patience))
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
	issued := b.issued()
	b.ring.meter.note(time.Now(), issued)
	s := keygen.Stats{
		Issued:    issued,
		Rate:      b.ring.meter.rate,
		Waits:     b.waits.Load(),
		Failures:  b.failures.Load(),
		Remaining: b.remaining(),
	}
	b.reserves.describe(&s)
	return s
}

// Rate returns how many keys per second were issued lately, and the highest
// that this ever was. Both are averages over a second at least, and over the
// life of a span or the time between two calls of Rate at most.
func (b *Buffer) Rate() (now, peak float64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring.meter.note(time.Now(), b.issued())
	return b.ring.meter.rate, b.ring.meter.peak
}

// Close ends the reservation under way and waits for it. Calls that wait, and
// later ones, return keygen.ErrClosed. Keys in memory are left as a gap. It may
// be called twice.
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
	b.flights.Wait()
	return nil
}
