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
	"github.com/shardid/shardid/keygen/internal/spans"
)

// Generator issues ids from a ring that is filled ahead of time. It is safe for
// concurrent use.
type Generator struct {
	buffer *spans.Buffer
	cfg    Config
	maker  *maker

	timeShift    int
	hurry        chan struct{} // asks for a renewal now; holds one
	discarded    atomic.Int64
	rejectedPuts atomic.Int64

	cancel  context.CancelFunc
	tending sync.WaitGroup
	closing sync.Once
	closeBy error // what Close returned first
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

const (
	// minLife is the least time a layout must have left when a generator starts.
	minLife = 24 * time.Hour

	patience = 10 * time.Second
)

// New acquires a worker id and returns a generator whose ring is full. It has to
// be closed.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	hurry := make(chan struct{}, 1)
	g := &Generator{
		cfg:       cfg,
		maker:     &maker{layout: cfg.Layout, start: cfg.random(1 << cfg.Layout.Bits(keygen.Sequence)), hurry: hurry},
		timeShift: cfg.Layout.Shift(keygen.Time),
		hurry:     hurry,
	}
	g.maker.clock = clock.New(clock.Config{Layout: cfg.Layout, Now: cfg.Now, Wall: cfg.wall, Doubted: g.maker.askForRenewal})
	if err := g.checkTime(); err != nil {
		return nil, fmt.Errorf("cached: %w", err)
	}
	t, err := g.acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("cached: %w", err)
	}
	g.maker.tenure.Store(t)
	g.start()
	if err := g.buffer.Ready(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Generator) checkTime() error {
	now, l := g.maker.clock.Time(), g.cfg.Layout
	if l.Tick(now) < 0 {
		return fmt.Errorf("%w: it is %v and the layout's epoch %v; set the clock or the epoch", keygen.ErrClockRollback, now.UTC(), l.Epoch.UTC())
	}
	if now.Add(minLife).After(l.Expires()) {
		return fmt.Errorf("%w: its time field ends at %v; use a later epoch or more time bits (old ids go on parsing with the old layout)", keygen.ErrExpired, l.Expires())
	}
	return nil
}

// start starts the first fill and the tender.
func (g *Generator) start() {
	g.buffer = spans.New(spans.Config{
		Name:        "cached",
		Reserve:     g.maker.reserve,
		Spans:       int(g.cfg.ticks()),
		Padding:     g.cfg.PaddingFactor,
		Patience:    max(patience, 2*g.cfg.Layout.Unit),
		FailFast:    g.cfg.RejectedTake == Fail,
		CallTimeout: callTimeout + 2*g.cfg.Layout.Unit,
		Observer:    g.cfg.Observer.engine(),
	})
	g.maker.issued = func() int64 { return g.buffer.Stats().Issued }
	g.buffer.Pad()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.tending.Go(func() { g.tend(ctx) })
}

// Next returns an id. It waits only when the ring is empty.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	return spans.Next(ctx, g.buffer, (*spans.Buffer).More)
}

// Fill sets dst to ids, which rise. On an error no id in dst may be used.
func (g *Generator) Fill(ctx context.Context, dst []int64) error { return g.buffer.Fill(ctx, dst) }

// Layout returns the layout in use, for parsing ids.
func (g *Generator) Layout() keygen.Layout { return g.cfg.Layout }

// Stats returns a snapshot of the generator's state. A reservation is the making
// of one tick's ids.
func (g *Generator) Stats() keygen.Stats {
	s := g.buffer.Stats()
	if g.maker == nil {
		return s
	}
	t := g.maker.tenure.Load()
	if g.cfg.RejectedTake == Fail {
		s.Waits = 0
	}
	if s.LastError == nil {
		s.LastError = cmp.Or(t.err, t.remark)
	}
	s.Worker, s.Expires = t.lease.ID(), g.cfg.Layout.Expires()
	if t.window != nil {
		s.LeasedUntil = g.cfg.Layout.At(t.ceiling)
	}
	return s
}

// Close stops the generator: calls that wait and all later ones return
// [keygen.ErrClosed]. A leased worker id is handed back, for which Close waits a
// few seconds at most; its error only says that the next holder of the worker id
// will have to wait. Close may be called twice.
func (g *Generator) Close() error {
	g.closing.Do(func() {
		if g.maker == nil {
			return
		}
		g.cancel()
		g.tending.Wait()
		_ = g.buffer.Close() // which has nothing to complain about
		g.closeBy = g.maker.tenure.Load().release(context.Background(), g.maker.last.Load()+1)
	})
	return g.closeBy
}
