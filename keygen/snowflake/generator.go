// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
	"github.com/shardid/shardid/keygen/internal/firstlease"
)

// Generator issues snowflake ids. It is safe for concurrent use.
type Generator struct {
	composer
	cfg     Config
	clock   *clock.Clock
	ahead   int64 // Config.Borrow in ticks
	first   firstSequence
	renewer *renewer
	ticks   *ticker      // nil unless Config.Coarse
	turn    atomic.Int64 // the bucket of the last Next, in a layout with a bucket field

	waits    atomic.Int64
	failures atomic.Int64

	closing sync.Once
	closed  chan struct{}
	closeBy error // the error of the first Close
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Bucketed         = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

const (
	// minLifetime is the shortest time that a layout must last after the start of a generator.
	minLifetime = 24 * time.Hour
)

// New acquires a worker id and returns a generator, which the caller must close. It returns an
// error when it has none after a minute. If an earlier process may have used the worker id
// until now, New waits for two ticks of the layout: with a unit of a second that takes two
// seconds.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	g, err := assemble(ctx, cfg)
	if err != nil {
		return nil, err
	}
	go g.renewer.run()
	if g.ticks != nil {
		go g.ticks.run()
	}
	if err := g.awaitStart(ctx, g.renewer.leaseState.Load()); err != nil {
		_ = g.Close() // err is the cause
		return nil, err
	}
	return g, nil
}

// assemble returns a generator whose goroutines do not run yet.
func assemble(ctx context.Context, cfg Config) (*Generator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Generator{
		composer: newComposer(cfg.Layout),
		cfg:      cfg,
		ahead:    cfg.aheadTicks(),
		closed:   make(chan struct{}),
	}
	g.first = firstSequence{cfg.Sequence, cfg.random, g.seqMask}
	g.clock = clock.New(clock.Config{Layout: cfg.Layout, Now: cfg.Now, Wall: cfg.wall, Distrusted: g.renewNow})
	if err := checkTime(g.clock, g.layout); err != nil {
		return nil, err
	}
	f, err := firstlease.Acquire(ctx, func(ctx context.Context) (*leaseState, error) { return g.acquire(ctx, cfg.Worker) })
	if err != nil {
		return nil, err
	}
	g.renewer = newRenewer(g, f)
	if cfg.Coarse {
		g.ticks = newTicker(g)
	}
	return g, nil
}

// checkTime refuses a clock before the layout's epoch, and a layout that ends soon.
func checkTime(c *clock.Clock, layout keygen.Layout) error {
	now := c.Tick()
	if now < 0 {
		return fmt.Errorf("snowflake: %w: the clock reads %v, before the layout's epoch %v; correct the clock or the epoch", keygen.ErrClockRollback, layout.At(now), layout.Epoch.UTC())
	}
	if expires := layout.Expires(); layout.At(now).Add(minLifetime).After(expires) {
		return fmt.Errorf("snowflake: %w: its time field ends at %v; use a later epoch or more time bits (the old layout still parses old ids)", keygen.ErrExpired, expires)
	}
	return nil
}

// renewNow renews the lease, because the answer tells the ledger's time.
func (g *Generator) renewNow() {
	if g.renewer != nil { // nil while the first lease is acquired
		g.renewer.renewNow()
	}
}

// acquire acquires a worker id and returns its leaseState.
func (g *Generator) acquire(ctx context.Context, from keygen.Assigner) (*leaseState, error) {
	begin := time.Now()
	lease, err := from.Acquire(ctx, g.layout)
	if err != nil {
		return nil, fmt.Errorf("snowflake: acquire a worker id: %w", err)
	}
	w, windowed := lease.(keygen.Window)
	if err := g.check(lease, windowed); err != nil {
		return nil, errors.Join(fmt.Errorf("snowflake: %w", err), unused(ctx, lease))
	}
	f := &leaseState{lease: lease, workerField: g.worker(lease.ID())}
	f.clockWarning = g.follow(f, begin)
	now := g.clock.Tick()
	first := firstTick(lease, now, g.ahead)
	f.ahead.Store(g.ahead)
	f.limit.Store(g.end)
	if windowed {
		f.limit.Store(g.before(w.Ceiling()))
		// Ids start in the future when the ledger's clock is ahead of ours, or when the ledger
		// must let a time pass that another process may have been promised.
		f.ahead.Store(max(g.ahead, first-now+1))
	}
	if g.buckets > 0 {
		f.buckets = make([]counter, g.buckets)
	}
	f.counters(func(c *counter) { c.start(min(g.before(first)+g.first.ofLease(), g.end)) })
	return f, nil
}

// check returns the reason why the generator cannot use a lease, nil if it can.
func (g *Generator) check(lease keygen.Lease, windowed bool) error {
	most := int64(1)<<g.layout.WorkerBits() - 1
	switch now := g.clock.Tick(); {
	case lease.ID() < 0 || lease.ID() > most:
		return fmt.Errorf("%w: the assigner gave worker id %d, but the layout has only 0 to %d", keygen.ErrNoWorker, lease.ID(), most)
	case windowed:
		return nil
	case g.ahead > 1:
		return fmt.Errorf("Config.Borrow is %v, which needs a worker id whose lease stores how far it was used; this one (%T) does not", g.cfg.Borrow, lease)
	case lease.NotBefore() > now+g.ahead:
		return fmt.Errorf("%w: worker id %d was used up to %v, and the clock reads %v", keygen.ErrClockRollback, lease.ID(), g.layout.At(lease.NotBefore()), g.layout.At(now))
	}
	return nil
}

// unused gives a lease back that the generator does not use.
func unused(ctx context.Context, lease keygen.Lease) error {
	if lease, ok := lease.(keygen.Returnable); ok {
		return lease.Release(ctx, lease.NotBefore())
	}
	return nil
}

// follow passes the ledger's time to the clock, after the ledger granted or renewed a lease at
// some time since begin. It returns an error that describes the difference when the clocks
// differ, nil otherwise.
func (g *Generator) follow(f *leaseState, begin time.Time) error {
	w, windowed := f.lease.(keygen.Window)
	if !windowed {
		g.clock.Unfollow()
		return nil
	}
	if ahead := g.clock.Follow(w.Ceiling(), w.Term(), begin); ahead > 0 {
		return fmt.Errorf("snowflake: %w: the clock of this process is %v ahead of the ledger's, which granted worker id %d; ids have the ledger's time until somebody corrects the wrong clock", keygen.ErrClockRollback, ahead, w.ID())
	}
	return nil
}

// firstTick returns the tick of a lease's first id. If no former holder is on record, one may
// have been ahead of the clock by a tick; ahead is Config.Borrow in ticks.
func firstTick(lease keygen.Lease, now, ahead int64) int64 {
	if w, windowed := lease.(keygen.Window); windowed {
		return max(min(now, w.Ceiling()-1), w.NotBefore())
	}
	if first := lease.NotBefore(); first != keygen.UnknownHistory {
		return max(now, first)
	}
	return now + ahead + 1
}

// awaitStart waits until the first id of a lease can be issued, so that the first call of Next
// need not wait.
func (g *Generator) awaitStart(ctx context.Context, f *leaseState) error {
	tick := (f.counter(0).state.Load() + 1) >> g.seqBits
	if _, windowed := f.lease.(keygen.Window); windowed {
		tick -= f.ahead.Load()
	}
	if wait := g.clock.Until(tick); wait > 0 {
		return g.fail(g.sleep(ctx, tick, wait))
	}
	return nil
}

// errNotMade is the error of a Generator that New did not make.
var errNotMade = fmt.Errorf("snowflake: %w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns the next id. It waits while the ids of the tick are used up. In a layout with a
// bucket field it uses the buckets in turn.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	switch {
	case g.ticks != nil:
		f := g.renewer.leaseState.Load()
		mark := f.mark.Load()
		if mark == 0 {
			return g.ticks.nextByClock(ctx)
		}
		n := f.only.state.Add(1)
		if n <= mark {
			return g.compose(n, f.workerField), nil
		}
		return g.ticks.aboveMark(ctx, f, mark, n)
	case g.renewer == nil:
		return 0, errNotMade
	case g.buckets > 0:
		return g.next(ctx, g.turn.Add(1)&(g.buckets-1))
	}
	return g.next(ctx, 0)
}

// NextIn returns the next id of a bucket, from 0 to 2^b-1 for a layout with b bucket bits: id %
// 2^b is the bucket. Each bucket has its own ids, so one that is used up does not affect the
// others. If the layout does not have the bucket, the error wraps [keygen.ErrLayout].
func (g *Generator) NextIn(ctx context.Context, bucket int64) (int64, error) {
	if err := g.checkBucket(bucket); err != nil {
		return 0, g.fail(err)
	}
	return g.next(ctx, bucket)
}

func (g *Generator) next(ctx context.Context, bucket int64) (int64, error) {
	for {
		f := g.renewer.leaseState.Load()
		c := f.counter(bucket)
		now, most := g.clock.Read()
		limit := g.limit(f, most)
		s := c.state.Load()
		for g.tick(s) < now && s < limit {
			n := now<<g.seqBits | g.first.after(s)
			if n > limit {
				break
			}
			if c.state.CompareAndSwap(s, n) {
				c.skipped.Add(n - s - 1)
				return g.compose(n, f.workerField|bucket), nil
			}
			s = c.state.Load()
		}
		if g.tick(s) >= now && s < limit {
			n := c.state.Add(1)
			if n <= limit {
				return g.compose(n, f.workerField|bucket), nil
			}
			if n <= f.limit.Load() {
				// This call owns n, and may use it once the clock allows it.
				if err := g.awaitClock(ctx, f, n); err != nil {
					c.skipped.Add(1)
					return 0, err
				}
				return g.compose(n, f.workerField|bucket), nil
			}
			c.skipped.Add(1) // a state above the limit is never used
		}
		if err := g.await(ctx, f, max(s+1, g.before(now)+1)); err != nil {
			return 0, err
		}
	}
}

// Fill sets dst to rising ids, and takes as many at once as the clock and the lease allow. In a
// layout with a bucket field it uses the buckets in turn. On an error the caller must use no id
// in dst.
func (g *Generator) Fill(ctx context.Context, dst []int64) error {
	if g.buckets > 0 {
		for i := range dst {
			id, err := g.Next(ctx)
			if err != nil {
				return err
			}
			dst[i] = id
		}
		return nil
	}
	for len(dst) > 0 {
		f, first, n, err := g.take(ctx, int64(len(dst)))
		if err != nil {
			return err
		}
		g.composeAll(dst[:n], first, f.workerField)
		dst = dst[n:]
	}
	return nil
}

// FillIn sets each dst[i] to the next id of buckets[i]. Both slices must have the same length.
// On an error the caller must use no id in dst.
func (g *Generator) FillIn(ctx context.Context, dst, buckets []int64) error {
	if len(dst) != len(buckets) {
		return g.fail(fmt.Errorf("snowflake: FillIn got %d ids and %d buckets; pass one bucket per id", len(dst), len(buckets)))
	}
	for i, bucket := range buckets {
		id, err := g.NextIn(ctx, bucket)
		if err != nil {
			return err
		}
		dst[i] = id
	}
	return nil
}

// take takes up to want consecutive states of the only counter, at least one. It adds only as
// many as the limit allows, so that many large calls together cannot drive the state far above
// the limit.
func (g *Generator) take(ctx context.Context, want int64) (f *leaseState, first, n int64, err error) {
	if g.renewer == nil {
		return nil, 0, 0, errNotMade
	}
	for {
		f = g.renewer.leaseState.Load()
		now, most := g.clock.Read()
		limit := g.limit(f, most)
		s := f.only.state.Load()
		below := s
		if g.tick(s) < now && s < limit {
			below = now<<g.seqBits | g.first.after(s) - 1
		}
		if below < limit {
			n = min(want, limit-below)
			if f.only.state.CompareAndSwap(s, below+n) {
				f.only.skipped.Add(below - s)
				if g.ticks != nil {
					lift(&f.allowed, below+n)
				}
				return f, below + 1, n, nil
			}
			continue
		}
		if err := g.await(ctx, f, below+1); err != nil {
			return nil, 0, 0, err
		}
	}
}

// limit returns the highest state that may be used; most is the latest tick that the clock
// allows.
func (g *Generator) limit(f *leaseState, most int64) int64 {
	return min((most+f.ahead.Load())<<(g.seqBits&63)|g.seqMask, f.limit.Load())
}

// fail counts an error and returns it.
func (g *Generator) fail(err error) error {
	if err != nil {
		g.failures.Add(1)
	}
	return err
}

// Layout returns the layout in use, for parsing ids.
func (g *Generator) Layout() keygen.Layout { return g.layout }

// Range returns the lowest and the highest id that was or will be made in a
// period, as [keygen.Layout.Range] does.
func (g *Generator) Range(from, to time.Time) (lo, hi int64, err error) {
	return g.layout.Range(from, to)
}

// Stats returns a snapshot of the generator's state.
func (g *Generator) Stats() keygen.Stats {
	if g.renewer == nil {
		return keygen.Stats{LastError: errNotMade}
	}
	s := keygen.Stats{
		Waits:    g.waits.Load(),
		Failures: g.failures.Load(),
		Expires:  g.layout.Expires(),
	}
	g.renewer.describe(&s)
	return s
}

// Close stops the generator: calls that wait and all later calls return [keygen.ErrClosed]. Ids
// taken before stay valid. Close releases a leased worker id, which takes a few seconds at
// most. Its error only means that the next holder of the worker id has to wait: because the
// release failed, or because no record says how far the worker id was used and the clock was
// set back ([keygen.ErrClockRollback]). Close may be called twice.
func (g *Generator) Close() error {
	g.closing.Do(func() {
		if g.renewer == nil {
			return
		}
		close(g.closed)
		if g.ticks != nil {
			<-g.ticks.done
		}
		g.closeBy = g.renewer.close()
	})
	return g.closeBy
}
