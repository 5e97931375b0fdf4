package spans

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Buffer]. All fields are required.
type Config struct {
	// Name stands in front of error texts, "segment orders" say.
	Name string
	// Source gives the spans.
	Source keygen.Source
	// Size returns how many keys to reserve next, at least 1. It is called by
	// one goroutine at a time.
	Size func(ctx context.Context) (int64, error)
	// Patience is the longest that a caller waits whose context allows more.
	Patience time.Duration
	// CallTimeout ends a single reservation that hangs.
	CallTimeout time.Duration
}

// Buffer hands out the keys of spans. It is safe for concurrent use.
type Buffer struct {
	cfg     Config
	current atomic.Pointer[chunk] // changed only while holding mu

	waits    atomic.Int64
	failures atomic.Int64
	reserves counters

	ctx    context.Context // ends with Close; only the flight uses it
	cancel context.CancelFunc

	mu      sync.Mutex // never held while waiting or talking to the source
	next    *chunk     // the prefetched span, nil when there is none
	flight  *flight    // the reservation under way, nil when there is none
	highest int64      // the highest key of all spans so far
	retired int64      // keys of the chunks that were used up
	closed  bool
}

// New returns a Buffer that holds no span yet; the first call reserves one.
func New(cfg Config) *Buffer {
	b := &Buffer{cfg: cfg}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.current.Store(newChunk(keygen.Span{}))
	return b
}

// Next returns a key. It looks at ctx only when it has to wait.
func (b *Buffer) Next(ctx context.Context) (int64, error) {
	c := b.current.Load()
	n := c.taken.Add(1)
	if n < c.alarm {
		return c.key(n), nil
	}
	return b.next1(ctx, c, n)
}

// next1 goes on with the ordinal n that Next took from c.
func (b *Buffer) next1(ctx context.Context, c *chunk, n int64) (int64, error) {
	for {
		if n == c.alarm {
			b.prefetch()
		}
		if n <= c.span.Count {
			return c.key(n), nil
		}
		if err := b.advance(ctx, c); err != nil {
			b.failures.Add(1)
			return 0, err
		}
		c = b.current.Load()
		n = c.taken.Add(1)
	}
}

// Fill sets dst to keys, rising within each span.
func (b *Buffer) Fill(ctx context.Context, dst []int64) error {
	for len(dst) > 0 {
		c := b.current.Load()
		want := int64(len(dst))
		last := c.taken.Add(want)
		before := last - want
		if before < c.alarm && c.alarm <= last {
			b.prefetch()
		}
		got := max(min(last, c.span.Count)-before, 0)
		for i := range dst[:got] {
			dst[i] = c.key(before + 1 + int64(i))
		}
		if dst = dst[got:]; len(dst) == 0 {
			return nil
		}
		if err := b.advance(ctx, c); err != nil {
			b.failures.Add(1)
			return err
		}
	}
	return nil
}

// Ready waits until a span is there, taking nothing from it.
func (b *Buffer) Ready(ctx context.Context) error {
	if c := b.current.Load(); c.used() == c.span.Count {
		return b.advance(ctx, c)
	}
	return nil
}

// advance returns when old, which is used up, is no longer the current chunk.
func (b *Buffer) advance(ctx context.Context, old *chunk) error {
	var patience <-chan time.Time
	for {
		f, err := b.swap(old)
		if f == nil {
			return err
		}
		if patience == nil {
			b.waits.Add(1)
			timer := time.NewTimer(b.cfg.Patience)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-f.done:
			if f.err != nil {
				return f.err
			}
		case <-ctx.Done():
			return b.starved(ctx.Err())
		case <-patience:
			return b.starved(fmt.Errorf("waited %v", b.cfg.Patience))
		}
	}
}

// swap makes the prefetched chunk the current one. When there is none it
// returns the flight to wait for.
func (b *Buffer) swap(old *chunk) (*flight, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, fmt.Errorf("%s: %w", b.cfg.Name, keygen.ErrClosed)
	case b.current.Load() != old:
		return nil, nil
	case b.next == nil:
		return b.launch(), nil
	}
	b.retired += old.span.Count
	b.current.Store(b.next)
	b.next = nil
	return nil, nil
}

func (b *Buffer) prefetch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && b.next == nil {
		b.launch()
	}
}

func (b *Buffer) starved(why error) error {
	if err := b.reserves.lastError(); err != nil {
		return fmt.Errorf("%s: %w: %w; the source says: %w", b.cfg.Name, keygen.ErrStarved, why, err)
	}
	return fmt.Errorf("%s: %w: %w", b.cfg.Name, keygen.ErrStarved, why)
}

// Stats returns a snapshot.
func (b *Buffer) Stats() keygen.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.current.Load()
	s := keygen.Stats{
		Issued:    b.retired + c.used(),
		Waits:     b.waits.Load(),
		Failures:  b.failures.Load(),
		Remaining: c.span.Count - c.used(),
	}
	if b.next != nil {
		s.Remaining += b.next.span.Count
	}
	b.reserves.describe(&s)
	return s
}

// Close ends the reservation under way and waits for it. Calls that wait, and
// later ones, return keygen.ErrClosed. Keys in memory are left as a gap. It may
// be called twice.
func (b *Buffer) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		c := b.current.Load()
		b.retired += c.used()
		b.next = nil
		b.current.Store(newChunk(keygen.Span{}))
	}
	f := b.flight
	b.mu.Unlock()
	b.cancel()
	if f != nil {
		<-f.done
	}
	return nil
}
