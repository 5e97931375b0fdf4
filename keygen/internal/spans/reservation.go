// SPDX-License-Identifier: Apache-2.0

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

// reservation gets one span from the source. It makes attempts until one succeeds, one fails
// for good, or the Buffer is closed. Read err only after done is closed.
type reservation struct {
	done chan struct{}
	err  error
}

// startReservation returns the reservation under way. When there is none, it starts one. The
// caller must hold mu, and the Buffer must not be closed.
func (b *Buffer) startReservation() *reservation {
	r := &b.ring
	if r.reservation == nil {
		f := &reservation{done: make(chan struct{})}
		r.reservation = f
		b.reservations.Go(func() { b.runReservation(f) })
	}
	return r.reservation
}

// runReservation calls endReservation even when the source or an observer ends the goroutine by
// runtime.Goexit.
func (b *Buffer) runReservation(f *reservation) {
	var span keygen.Span
	err := errors.New("the source ended the goroutine that asked it")
	defer func() { b.endReservation(f, span, err) }()
	span, err = b.reserve()
}

func (b *Buffer) endReservation(f *reservation, span keygen.Span, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer close(f.done)
	r := &b.ring
	r.reservation = nil
	switch {
	case r.closed:
		f.err = b.closedError()
	case err != nil:
		f.err = fmt.Errorf("%s: %w", b.cfg.Name, err)
		r.filling = false
		b.ring.retryAtHalf()
	default:
		b.ring.push(span)
		if b.current.Load().span.Count == 0 {
			b.ring.shift()
		}
		if r.filling = r.filling && !b.ring.full(); r.filling {
			b.startReservation()
		} else {
			b.ring.setLowWater(b.current.Load())
		}
	}
}

// Pauses between attempts double from the first to the last. Each actual pause is a random part
// of it, from half to all, so that processes that lost the database at the same time do not
// retry at the same time.
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

// permanent returns true for errors that a retry cannot cure: a person must change something
// first.
func permanent(err error) bool {
	var setup *keygen.SetupError
	return errors.As(err, &setup) || errors.Is(err, keygen.ErrUnknownTag) || errors.Is(err, keygen.ErrRegressed) ||
		errors.Is(err, keygen.ErrExhausted) || errors.Is(err, keygen.ErrExpired)
}

func (b *Buffer) attempt() (keygen.Span, error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.CallTimeout)
	defer cancel()
	pace, highest := b.soFar()
	begin := time.Now()
	b.reserves.asked.Store(&begin)
	defer b.reserves.asked.Store(nil)
	span, err := b.cfg.Reserve(ctx, pace)
	if err == nil {
		err = check(span, highest)
	}
	if b.ctx.Err() == nil { // otherwise Close canceled the attempt
		b.note(span, time.Since(begin), err)
	}
	return span, err
}

// soFar returns the pace of the newest used-up span and the highest key reserved.
func (b *Buffer) soFar() (p Pace, highest int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring.pace, b.ring.highest
}

// check refuses spans that break the contract of keygen.Source. Without it the Buffer would
// issue an id 0, an id after an arithmetic overflow, or an id a second time.
func check(s keygen.Span, highest int64) error {
	const most = 1<<63 - 1
	switch {
	case s.First < 1 || s.Count < 1 || s.Step < 1 || s.Count-1 > (most-s.First)/s.Step:
		return fmt.Errorf("%w: the source gave the impossible span first %d, count %d, step %d", keygen.ErrRegressed, s.First, s.Count, s.Step)
	case s.First <= highest:
		return fmt.Errorf("%w: it gave keys from %d after keys up to %d; was a backup restored? raise the source above %d", keygen.ErrRegressed, s.First, highest, highest)
	}
	return nil
}

// note counts an attempt and tells the observer.
func (b *Buffer) note(span keygen.Span, took time.Duration, err error) {
	down := b.reserves.record(took, err)
	o := b.cfg.Observer
	o.refill(span, took, err)
	switch {
	case err != nil && down.IsZero():
		o.outage(err)
	case err == nil && !down.IsZero():
		o.recovery(time.Since(down))
	}
}

// counters describe the reservations so far.
type counters struct {
	done, failed, took atomic.Int64
	last               atomic.Pointer[error]     // of the newest reservation; nil when it succeeded
	asked              atomic.Pointer[time.Time] // when the one under way began; nil when none is
	down               time.Time                 // when the outage under way began; only the reservation uses it
}

// record counts an attempt. It returns when the outage before the attempt began, the zero time
// when there was none.
func (c *counters) record(took time.Duration, err error) (down time.Time) {
	down = c.down
	c.took.Store(int64(took))
	if err == nil {
		c.done.Add(1)
		c.last.Store(nil)
		c.down = time.Time{}
		return down
	}
	c.failed.Add(1)
	c.last.Store(&err)
	if down.IsZero() {
		c.down = time.Now()
	}
	return down
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
