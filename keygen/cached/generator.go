// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
	"github.com/shardid/shardid/keygen/internal/firstlease"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Generator issues ids from a ring that is filled ahead of time. It is safe for
// concurrent use.
type Generator struct {
	buffer *spans.Buffer
	cfg    Config
	maker  *maker

	timeShift    int
	renewNow     chan struct{} // a message asks for a renewal now; capacity 1
	discarded    atomic.Int64
	rejectedPuts atomic.Int64

	cancel      context.CancelFunc
	maintenance sync.WaitGroup
	closing     sync.Once
	closeBy     error // the error of the first Close
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

const (
	// minLifetime is the shortest time that a layout must last after the start of a generator.
	minLifetime = 24 * time.Hour

	maxWait = 10 * time.Second
)

// New acquires a worker id, fills the ring and returns the generator. The caller must close it.
// New returns an error when it has no worker id after a minute.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	renewNow := make(chan struct{}, 1)
	g := &Generator{
		cfg:       cfg,
		maker:     &maker{layout: cfg.Layout, start: cfg.random(1 << cfg.Layout.Bits(keygen.Sequence)), renewNow: renewNow},
		timeShift: cfg.Layout.Shift(keygen.Time),
		renewNow:  renewNow,
	}
	g.maker.clock = clock.New(clock.Config{Layout: cfg.Layout, Now: cfg.Now, Wall: cfg.wall, Distrusted: g.maker.askForRenewal})
	if err := g.checkTime(); err != nil {
		return nil, fmt.Errorf("cached: %w", err)
	}
	t, err := firstlease.Acquire(ctx, g.acquire)
	if err != nil {
		return nil, fmt.Errorf("cached: %w", err)
	}
	g.maker.workerLease.Store(t)
	g.start()
	if err := g.buffer.Ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Generator) checkTime() error {
	now, l := g.maker.clock.Time(), g.cfg.Layout
	if l.Tick(now) < 0 {
		return fmt.Errorf("%w: the clock reads %v, before the layout's epoch %v; correct the clock or the epoch", keygen.ErrClockRollback, now.UTC(), l.Epoch.UTC())
	}
	if now.Add(minLifetime).After(l.Expires()) {
		return fmt.Errorf("%w: its time field ends at %v; use a later epoch or more time bits (the old layout still parses old ids)", keygen.ErrExpired, l.Expires())
	}
	return nil
}

// start starts the first fill and the goroutine that maintains the ring and the lease.
func (g *Generator) start() {
	g.buffer = spans.New(spans.Config{
		Name:        "cached",
		Reserve:     g.maker.reserve,
		Spans:       int(g.cfg.ticks()),
		Padding:     g.cfg.PaddingFactor,
		MaxWait:     max(maxWait, 2*g.cfg.Layout.Unit),
		FailFast:    g.cfg.RejectedTake == Fail,
		CallTimeout: callTimeout + 2*g.cfg.Layout.Unit,
		Observer:    g.cfg.Observer.engine(),
	})
	g.maker.issued = func() int64 { return g.buffer.Stats().Issued }
	g.buffer.StartFill()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.maintenance.Go(func() { g.runMaintenance(ctx) })
}

// Next returns an id. It waits only when the ring is empty.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	return spans.Next(ctx, g.buffer, (*spans.Buffer).More)
}

// Fill sets dst to rising ids. On an error the caller must use no id in dst.
func (g *Generator) Fill(ctx context.Context, dst []int64) error { return g.buffer.Fill(ctx, dst) }

// Layout returns the layout in use, for parsing ids.
func (g *Generator) Layout() keygen.Layout { return g.cfg.Layout }

// Stats returns a snapshot of the generator's state. Reservations counts the ticks whose ids
// were made.
func (g *Generator) Stats() keygen.Stats {
	s := g.buffer.Stats()
	if g.maker == nil {
		return s
	}
	t := g.maker.workerLease.Load()
	if g.cfg.RejectedTake == Fail {
		s.Waits = 0
	}
	if s.LastError == nil {
		s.LastError = cmp.Or(t.err, t.clockWarning)
	}
	s.Worker, s.Expires = t.lease.ID(), g.cfg.Layout.Expires()
	if t.window != nil {
		s.LeasedUntil = g.cfg.Layout.At(t.ceiling)
	}
	return s
}

// Close stops the generator: calls that wait and all later calls return [keygen.ErrClosed].
// Close releases a leased worker id, which takes a few seconds at most. Its error only means
// that the next holder of the worker id has to wait. Close may be called twice.
func (g *Generator) Close() error {
	g.closing.Do(func() {
		if g.maker == nil {
			return
		}
		g.cancel()
		g.maintenance.Wait()
		_ = g.buffer.Close() // always nil
		g.closeBy = g.maker.workerLease.Load().release(context.Background(), g.maker.last.Load()+1)
	})
	return g.closeBy
}
