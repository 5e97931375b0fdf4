package spans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// flight is one reservation under way: attempts until one succeeds, fails for
// good, or the Buffer is closed. err may be read once done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// launch returns the flight under way, starting one when there is none. The
// caller must hold mu.
func (b *Buffer) launch() *flight {
	if b.flight == nil {
		b.flight = &flight{done: make(chan struct{})}
		go b.fly(b.flight)
	}
	return b.flight
}

func (b *Buffer) fly(f *flight) {
	span, err := b.reserve()
	b.mu.Lock()
	if err == nil && !b.closed {
		err = b.accept(span)
	}
	if b.closed {
		err = fmt.Errorf("%s: %w", b.cfg.Name, keygen.ErrClosed)
	}
	f.err = err
	b.flight = nil
	b.mu.Unlock()
	close(f.done)
}

// Pauses between attempts double from the first to the last; each is drawn
// from the upper half, so that processes that lost the database together do
// not return together.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

// reserve asks the source until it answers or fails for good.
func (b *Buffer) reserve() (keygen.Span, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		span, err := b.attempt()
		if err == nil || permanent(err) {
			return span, err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
			return keygen.Span{}, err
		}
	}
}

func permanent(err error) bool {
	return errors.Is(err, keygen.ErrUnknownTag) || errors.Is(err, keygen.ErrRegressed)
}

func (b *Buffer) attempt() (keygen.Span, error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.CallTimeout)
	defer cancel()
	begin := time.Now()
	span, err := b.ask(ctx)
	b.reserves.record(time.Since(begin), err)
	if err != nil {
		err = fmt.Errorf("%s: %w", b.cfg.Name, err)
	}
	return span, err
}

func (b *Buffer) ask(ctx context.Context) (keygen.Span, error) {
	n, err := b.cfg.Size(ctx)
	if err != nil {
		return keygen.Span{}, err
	}
	span, err := b.cfg.Source.Reserve(ctx, n)
	if err == nil {
		err = check(span)
	}
	return span, err
}

// check refuses spans that break the promise of keygen.Source: an id 0, or an
// arithmetic overflow, would be issued otherwise.
func check(s keygen.Span) error {
	const most = 1<<63 - 1
	if s.First < 1 || s.Count < 1 || s.Step < 1 || s.Count-1 > (most-s.First)/s.Step {
		return fmt.Errorf("%w: the source gave the impossible span first %d, count %d, step %d", keygen.ErrRegressed, s.First, s.Count, s.Step)
	}
	return nil
}

// accept makes span the next chunk. The caller must hold mu.
func (b *Buffer) accept(span keygen.Span) error {
	if span.First <= b.highest {
		err := fmt.Errorf("%s: %w: it gave keys from %d after keys up to %d; was a backup restored? raise the source above %d", b.cfg.Name, keygen.ErrRegressed, span.First, b.highest, b.highest)
		b.reserves.fail(err)
		return err
	}
	b.highest = span.Last()
	b.next = newChunk(span)
	return nil
}

// counters describe the reservations so far.
type counters struct {
	done, failed, took atomic.Int64
	last               atomic.Pointer[error] // of the newest reservation; nil when it succeeded
}

func (c *counters) record(took time.Duration, err error) {
	c.took.Store(int64(took))
	if err != nil {
		c.fail(err)
		return
	}
	c.done.Add(1)
	c.last.Store(nil)
}

func (c *counters) fail(err error) {
	c.failed.Add(1)
	c.last.Store(&err)
}

func (c *counters) lastError() error {
	if p := c.last.Load(); p != nil {
		return *p
	}
	return nil
}

func (c *counters) describe(s *keygen.Stats) {
	s.Reservations, s.FailedReserves = c.done.Load(), c.failed.Load()
	s.LastError, s.LastReservation = c.lastError(), time.Duration(c.took.Load())
}
