package snowflake

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
)

// Generator issues snowflake ids. It is safe for concurrent use.
type Generator struct {
	shape
	cfg    Config
	clock  *clock.Clock
	ahead  int64 // Config.Borrow in ticks
	keeper *keeper
	ticks  *tickKeeper  // nil unless Config.Coarse
	turn   atomic.Int64 // the bucket of the last Next, in a layout with gene bits

	waits    atomic.Int64
	failures atomic.Int64

	closing sync.Once
	closed  chan struct{}
	closeBy error // what Close returned first
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Bucketed         = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

// minLife is the least time a layout must have left when a generator starts.
const minLife = 24 * time.Hour

// New acquires a worker id and returns a generator, which has to be closed.
// When the worker id may have been used by an earlier process until now, New
// waits for two ticks of the layout to pass: with a unit of a second that takes
// two seconds.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	g, err := assemble(ctx, cfg)
	if err != nil {
		return nil, err
	}
	go g.keeper.run()
	if g.ticks != nil {
		go g.ticks.run()
	}
	if err := g.awaitStart(ctx, g.keeper.family.Load()); err != nil {
		_ = g.Close() // the reason that is returned came first
		return nil, err
	}
	return g, nil
}

// assemble returns a generator whose lease nobody renews yet.
func assemble(ctx context.Context, cfg Config) (*Generator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Generator{
		shape:  newShape(cfg.Layout),
		cfg:    cfg,
		ahead:  cfg.aheadTicks(),
		closed: make(chan struct{}),
	}
	g.clock = clock.New(clock.Config{Layout: cfg.Layout, Now: cfg.Now, Wall: cfg.wall, Distrusted: g.askTheLedger})
	if err := g.checkTime(); err != nil {
		return nil, err
	}
	f, err := g.acquire(ctx, cfg.Worker)
	if err != nil {
		return nil, err
	}
	g.keeper = newKeeper(g, f)
	if cfg.Coarse {
		g.ticks = newTickKeeper(g)
	}
	return g, nil
}

func (g *Generator) checkTime() error {
	now := g.clock.Tick()
	if now < 0 {
		return fmt.Errorf("snowflake: %w: it is %v and the layout's epoch %v; set the clock or the epoch", keygen.ErrClockRollback, g.layout.At(now), g.layout.Epoch.UTC())
	}
	if expires := g.layout.Expires(); g.layout.At(now).Add(minLife).After(expires) {
		return fmt.Errorf("snowflake: %w: its time field ends at %v; use a later epoch or more time bits (old ids go on parsing with the old layout)", keygen.ErrExpired, expires)
	}
	return nil
}

// askTheLedger renews the lease, which tells what time the ledger has.
func (g *Generator) askTheLedger() {
	if g.keeper != nil { // else the lease is being acquired
		g.keeper.hurry()
	}
}

// acquire takes a worker id and starts its family.
func (g *Generator) acquire(ctx context.Context, from keygen.Assigner) (*family, error) {
	begin := time.Now()
	lease, err := from.Acquire(ctx, g.layout)
	if err != nil {
		return nil, fmt.Errorf("snowflake: acquire a worker id: %w", err)
	}
	most := int64(1)<<g.layout.WorkerBits() - 1
	if id := lease.ID(); id < 0 || id > most {
		return nil, fmt.Errorf("snowflake: %w: the assigner gave %d, and the layout has 0 to %d", keygen.ErrNoWorker, id, most)
	}
	w, windowed := lease.(keygen.Window)
	if !windowed && g.ahead > 1 {
		return nil, fmt.Errorf("snowflake: Config.Borrow is %v, which needs a worker id whose lease writes down how far it went; this one (%T) does not", g.cfg.Borrow, lease)
	}
	f := &family{lease: lease, workerPart: g.worker(lease.ID())}
	f.remark = g.follow(f, begin)
	now := g.clock.Tick()
	first := g.firstTick(lease, now)
	if !windowed && lease.NotBefore() > now+g.ahead {
		return nil, fmt.Errorf("snowflake: %w: worker id %d was used up to %v, and the clock reads %v", keygen.ErrClockRollback, lease.ID(), g.layout.At(lease.NotBefore()), g.layout.At(now))
	}
	f.ahead.Store(g.ahead)
	f.limit.Store(g.end)
	if windowed {
		f.limit.Store(g.before(w.Ceiling()))
		// Where the ledger's clock is ahead of ours, or has to let time pass that
		// may have been promised to somebody else, ids start in the future.
		f.ahead.Store(max(g.ahead, first-now+1))
	}
	if g.buckets > 0 {
		f.buckets = make([]counter, g.buckets)
	}
	f.counters(func(c *counter) { c.start(min(g.before(first)+g.startSequence(), g.end)) })
	return f, nil
}

// follow lets the clock know what the ledger of a lease reads, after the lease was
// given or renewed at some time since begin. It returns what is to be said when the
// clocks differ.
func (g *Generator) follow(f *family, begin time.Time) error {
	w, windowed := f.lease.(keygen.Window)
	if !windowed {
		g.clock.Unfollow()
		return nil
	}
	if ahead := g.clock.Follow(w.Ceiling(), w.Term(), begin); ahead > 0 {
		return fmt.Errorf("snowflake: %w: this process reads %v more than the ledger of worker id %d; ids have the ledger's time until the clock that is wrong is corrected", keygen.ErrClockRollback, ahead, w.ID())
	}
	return nil
}

// firstTick returns the tick of the first id of a lease. A holder of which
// nothing is known may have run ahead of the clock by a tick.
func (g *Generator) firstTick(lease keygen.Lease, now int64) int64 {
	if w, windowed := lease.(keygen.Window); windowed {
		return max(min(now, w.Ceiling()-1), w.NotBefore())
	}
	if first := lease.NotBefore(); first != keygen.UnknownHistory {
		return max(now, first)
	}
	return now + g.ahead + 1
}

// awaitStart waits until the first id of a family can be issued, so that the
// first call of Next does not have to.
func (g *Generator) awaitStart(ctx context.Context, f *family) error {
	tick := (f.counter(0).state.Load() + 1) >> g.seqBits
	if _, windowed := f.lease.(keygen.Window); windowed {
		tick -= f.ahead.Load()
	}
	if wait := g.clock.Until(tick); wait > 0 {
		return g.fail(g.sleep(ctx, tick, wait))
	}
	return nil
}

// errNotMade is what a Generator says that New has not made.
var errNotMade = fmt.Errorf("snowflake: %w: it was not made by New", keygen.ErrUnknownGenerator)

// Next returns the next id. It waits while the ids of the tick are used up. In a
// layout with gene bits the buckets take turns.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	switch {
	case g.ticks != nil:
		f := g.keeper.family.Load()
		mark := f.mark.Load()
		n := f.only.state.Add(1)
		if n <= mark {
			return g.compose(n, f.workerPart), nil
		}
		return g.nextByClock(ctx, f, n)
	case g.keeper == nil:
		return 0, errNotMade
	case g.buckets > 0:
		return g.next(ctx, g.turn.Add(1)&(g.buckets-1))
	}
	return g.next(ctx, 0)
}

// NextIn returns the next id of a bucket, from 0 to 2^b-1 for a layout with b
// gene bits: id % 2^b is the bucket. Each bucket has ids of its own, so a full
// one takes nothing from the others. A bucket that the layout does not have is
// an error that wraps [keygen.ErrLayout].
func (g *Generator) NextIn(ctx context.Context, bucket int64) (int64, error) {
	if err := g.checkBucket(bucket); err != nil {
		return 0, g.fail(err)
	}
	return g.next(ctx, bucket)
}

func (g *Generator) checkBucket(bucket int64) error {
	switch {
	case g.buckets == 0:
		return fmt.Errorf("snowflake: %w: it has no bucket field, and only that can carry the slot of a row; end the layout with one", keygen.ErrLayout)
	case bucket < 0 || bucket >= g.buckets:
		return fmt.Errorf("snowflake: %w: bucket %d is not between 0 and %d", keygen.ErrLayout, bucket, g.buckets-1)
	}
	return nil
}

func (g *Generator) next(ctx context.Context, bucket int64) (int64, error) {
	for {
		f := g.keeper.family.Load()
		c := f.counter(bucket)
		now, most := g.clock.Read()
		limit := g.limit(f, most)
		s := c.state.Load()
		for g.tick(s) < now && s < limit {
			n := now<<g.seqBits | g.firstSequence(s)
			if n > limit {
				break
			}
			if c.state.CompareAndSwap(s, n) {
				c.skipped.Add(n - s - 1)
				return g.compose(n, f.workerPart|bucket), nil
			}
			s = c.state.Load()
		}
		if g.tick(s) >= now && s < limit {
			n := c.state.Add(1)
			if n <= limit {
				return g.compose(n, f.workerPart|bucket), nil
			}
			if n <= f.limit.Load() {
				// n is this call's own; it may be used once the clock allows it.
				if err := g.awaitClock(ctx, f, n); err != nil {
					c.skipped.Add(1)
					return 0, err
				}
				return g.compose(n, f.workerPart|bucket), nil
			}
			c.skipped.Add(1) // burnt
		}
		if err := g.await(ctx, f, max(s+1, g.before(now)+1)); err != nil {
			return 0, err
		}
	}
}

// firstSequence returns the sequence that a new tick starts with, s being the
// last state of an earlier one.
func (g *Generator) firstSequence(s int64) int64 {
	if g.cfg.Sequence == Carry {
		return (s + 1) & g.seqMask
	}
	return g.startSequence()
}

// startSequence returns the sequence that the first tick starts with. Were it
// always the same, processes that issue few ids would fill some shards more.
func (g *Generator) startSequence() int64 {
	switch g.cfg.Sequence {
	case FromZero:
		return 0
	case Scatter:
		return g.cfg.random(g.seqMask/10 + 1)
	default:
		return g.cfg.random(g.seqMask + 1)
	}
}

// Fill sets dst to rising ids, taking as many at once as the clock and the lease
// allow. In a layout with gene bits the buckets take turns. On an error no id in
// dst may be used.
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
		g.composeAll(dst[:n], first, f.workerPart)
		dst = dst[n:]
	}
	return nil
}

// FillIn sets each dst[i] to the next id of buckets[i]. The two slices must be
// of the same length. On an error no id in dst may be used.
func (g *Generator) FillIn(ctx context.Context, dst, buckets []int64) error {
	if len(dst) != len(buckets) {
		return g.fail(fmt.Errorf("snowflake: FillIn of %d ids with %d buckets; give one bucket for each id", len(dst), len(buckets)))
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

// take takes up to want consecutive states of the only counter, at least one.
// It adds only what there is room for, so that many large calls cannot drive
// the state far beyond the limit together.
func (g *Generator) take(ctx context.Context, want int64) (f *family, first, n int64, err error) {
	if g.keeper == nil {
		return nil, 0, 0, errNotMade
	}
	for {
		f = g.keeper.family.Load()
		now, most := g.clock.Read()
		limit := g.limit(f, most)
		s := f.only.state.Load()
		below := s
		if g.tick(s) < now && s < limit {
			below = now<<g.seqBits | g.firstSequence(s) - 1
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

// limit returns the highest state that may be used, most being the latest tick by
// the clock.
func (g *Generator) limit(f *family, most int64) int64 {
	return min((most+f.ahead.Load())<<(g.seqBits&63)|g.seqMask, f.limit.Load())
}

// fail counts an error.
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
	if g.keeper == nil {
		return keygen.Stats{LastError: errNotMade}
	}
	s := keygen.Stats{
		Waits:    g.waits.Load(),
		Failures: g.failures.Load(),
		Expires:  g.layout.Expires(),
	}
	g.keeper.describe(&s)
	return s
}

// Close stops the generator: calls that wait and all later ones return
// [keygen.ErrClosed]. Ids taken before stay valid. A leased worker id is handed
// back, for which Close waits a few seconds at most; its error only says that
// the next holder of the worker id will have to wait: because it could not be
// handed back or, where nothing remembers how far it was used
// ([keygen.ErrClockRollback]), until the clock, which was set back, has caught up.
// Close may be called twice.
func (g *Generator) Close() error {
	g.closing.Do(func() {
		if g.keeper == nil {
			return
		}
		close(g.closed)
		if g.ticks != nil {
			<-g.ticks.done
		}
		g.closeBy = g.keeper.close()
	})
	return g.closeBy
}
