package snowflake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Generator].
type Config struct {
	// Layout says how ids are made up. The zero Layout means [keygen.Twitter].
	Layout keygen.Layout

	// Worker assigns the worker id. It is required: two processes that forget
	// it would issue the same ids.
	Worker keygen.Assigner

	// Now replaces the clock, for tests; it may go backwards. It must be safe
	// for concurrent use. Defaults to the system's clock, read as the package
	// comment says.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Layout.Fields == nil && c.Layout.Unit == 0 && c.Layout.Epoch.IsZero() {
		c.Layout = keygen.Twitter()
	}
	return c
}

func (c Config) validate() error {
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("snowflake: Config.Layout: %w", err)
	}
	if c.Layout.WorkerBits() == 0 {
		return fmt.Errorf("snowflake: Config.Layout: %w: it has no worker field", keygen.ErrLayout)
	}
	if c.Layout.Bits(keygen.Bucket) > 0 {
		return fmt.Errorf("snowflake: Config.Layout: %w: a bucket field is not filled by this generator", keygen.ErrLayout)
	}
	if c.Worker == nil {
		return errors.New("snowflake: Config.Worker is nil; give workerid.Static(n), n being different in every process, or a store's WorkerNode")
	}
	return nil
}

// Generator issues snowflake ids. It is safe for concurrent use.
type Generator struct {
	layout     keygen.Layout
	clock      *clock
	worker     int64
	workerPart int64 // the worker id in its place in the id
	seqBits    uint8
	seqShift   uint8
	timeShift  uint8
	seqMask    int64
	end        int64 // the highest state whose tick fits the time field

	// state is tick<<seqBits | sequence of the last id taken, whatever the order
	// of the id's fields, so that a carry out of the sequence goes into the
	// tick. It only grows. Padding keeps the line that all callers write apart
	// from the fields that they only read.
	_     [64]byte
	state atomic.Int64
	_     [56]byte

	// skipped is what the state has grown by without ids being issued, so that
	// the number issued can be computed instead of counted.
	skipped  atomic.Int64
	waits    atomic.Int64
	failures atomic.Int64

	closing sync.Once
	closed  chan struct{}
	last    atomic.Int64 // the state when it was sealed
}

var (
	_ keygen.Generator[int64] = (*Generator)(nil)
	_ keygen.Filler[int64]    = (*Generator)(nil)
	_ keygen.Reporter         = (*Generator)(nil)
)

const (
	// aheadTicks is how far a used-up tick may run ahead of the clock. It has to
	// be at least 1, because a tick that starts in the middle of a sequence
	// reaches its end before it has issued as many ids as it could.
	aheadTicks = 1

	// patience is the longest wait for the clock, beyond what the ids that are
	// already taken need. A longer one means that the clock went back.
	patience = time.Second

	// minLife is the least time a layout must have left when a generator starts.
	minLife = 24 * time.Hour

	// sealed is a state above every layout's end, with room for additions.
	sealed = int64(1) << 62
)

// New acquires a worker id and returns a generator. When the worker id may have
// been used by an earlier process it waits for two ticks of the layout to pass,
// so with a unit of a second it takes two seconds.
func New(ctx context.Context, cfg Config) (*Generator, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := cfg.Layout
	g := &Generator{
		layout:    l,
		clock:     newClock(l, cfg.Now),
		seqBits:   uint8(l.Bits(keygen.Sequence)),
		seqShift:  uint8(l.Shift(keygen.Sequence)),
		timeShift: uint8(l.Shift(keygen.Time)),
		seqMask:   int64(1)<<l.Bits(keygen.Sequence) - 1,
		closed:    make(chan struct{}),
	}
	g.end = int64(1)<<(l.Bits(keygen.Time)+l.Bits(keygen.Sequence)) - 1
	if err := g.checkTime(); err != nil {
		return nil, err
	}
	if err := g.takeWorker(ctx, cfg.Worker); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Generator) checkTime() error {
	now := g.clock.tick()
	if now < 0 {
		return fmt.Errorf("snowflake: %w: it is %v and the layout's epoch %v; set the clock or the epoch", keygen.ErrClockRollback, g.layout.At(now), g.layout.Epoch.UTC())
	}
	if expires := g.layout.Expires(); g.layout.At(now).Add(minLife).After(expires) {
		return fmt.Errorf("snowflake: %w: its time field ends at %v; use a later epoch or more time bits (old ids go on parsing with the old layout)", keygen.ErrExpired, expires)
	}
	return nil
}

func (g *Generator) takeWorker(ctx context.Context, a keygen.Assigner) error {
	most := int64(1)<<g.layout.WorkerBits() - 1
	lease, err := a.Acquire(ctx, most)
	if err != nil {
		return fmt.Errorf("snowflake: acquire a worker id: %w", err)
	}
	if id := lease.ID(); id < 0 || id > most {
		return fmt.Errorf("snowflake: %w: the assigner gave %d, and the layout has 0 to %d", keygen.ErrNoWorker, id, most)
	}
	g.worker = lease.ID()
	var p keygen.Parts
	g.layout.SplitWorker(&p, g.worker)
	g.workerPart = p.Datacenter<<g.layout.Shift(keygen.Datacenter) | p.Worker<<g.layout.Shift(keygen.Worker)
	return g.start(ctx, lease.NotBefore())
}

// start sets the state below the first id. A process that held the worker id
// until notBefore may have run ahead by aheadTicks.
func (g *Generator) start(ctx context.Context, notBefore time.Time) error {
	first := g.clock.tick()
	former := first
	if !notBefore.IsZero() {
		former = g.layout.Tick(notBefore)
	}
	first = max(first, former+aheadTicks+1)
	g.state.Store(first<<g.seqBits - 1)
	g.skipped.Store(first<<g.seqBits - 1)
	return g.await(ctx, (first+aheadTicks)<<g.seqBits)
}

// Next returns the next id. It waits while the ids of the tick are used up.
func (g *Generator) Next(ctx context.Context) (int64, error) {
	for {
		now := g.clock.tick()
		limit := g.limit(now)
		s := g.state.Load()
		for s>>g.seqBits < now {
			n := now<<g.seqBits | (s+1)&g.seqMask
			if n > limit {
				return 0, g.fail(g.expired())
			}
			if g.state.CompareAndSwap(s, n) {
				g.skipped.Add(n - s - 1)
				return g.compose(n), nil
			}
			s = g.state.Load()
		}
		if s < limit {
			n := g.state.Add(1)
			if n > limit {
				// n is this call's own; it may be used once the clock allows it.
				if err := g.await(ctx, n); err != nil {
					g.skipped.Add(1)
					return 0, err
				}
			}
			return g.compose(n), nil
		}
		if err := g.await(ctx, s+1); err != nil {
			return 0, err
		}
	}
}

// Fill sets dst to rising ids, taking as many at once as the clock allows. On
// an error no id in dst may be used.
func (g *Generator) Fill(ctx context.Context, dst []int64) error {
	for len(dst) > 0 {
		first, n, err := g.take(ctx, int64(len(dst)))
		if err != nil {
			return err
		}
		for i := range dst[:n] {
			dst[i] = g.compose(first + int64(i))
		}
		dst = dst[n:]
	}
	return nil
}

// take takes up to want consecutive states, at least one.
func (g *Generator) take(ctx context.Context, want int64) (first, n int64, err error) {
	for {
		now := g.clock.tick()
		limit := g.limit(now)
		if now<<g.seqBits > limit {
			return 0, 0, g.fail(g.expired())
		}
		s := g.state.Load()
		if lifted := now<<g.seqBits | (s+1)&g.seqMask - 1; lifted > s && lifted < limit {
			if !g.state.CompareAndSwap(s, lifted) {
				continue
			}
			g.skipped.Add(lifted - s)
			s = lifted
		}
		if s >= limit {
			if err := g.await(ctx, s+1); err != nil {
				return 0, 0, err
			}
			continue
		}
		n = min(want, limit-s)
		last := g.state.Add(n)
		if last > limit { // others took some of the room; these are ours none the less
			if err := g.await(ctx, last); err != nil {
				g.skipped.Add(n)
				return 0, 0, err
			}
		}
		return last - n + 1, n, nil
	}
}

// limit returns the highest state that may be used at tick now.
func (g *Generator) limit(now int64) int64 {
	return min((now+aheadTicks)<<g.seqBits|g.seqMask, g.end)
}

func (g *Generator) compose(state int64) int64 {
	return state>>g.seqBits<<g.timeShift | state&g.seqMask<<g.seqShift | g.workerPart
}

// await waits until state may be used. The wait is normally a tick or two, plus
// what the ids that other callers have taken need; much more means that the
// clock reads far behind, which waiting does not mend.
func (g *Generator) await(ctx context.Context, state int64) error {
	if state > g.end {
		return g.fail(g.expired())
	}
	tick := state>>g.seqBits - aheadTicks
	wait := g.clock.until(tick)
	if wait == 0 {
		return nil
	}
	if wait > patience+2*g.layout.Unit {
		return g.fail(fmt.Errorf("snowflake: %w: it reads %v behind the last id; correct the clock, or wait", keygen.ErrClockRollback, wait))
	}
	g.waits.Add(1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			wait = g.clock.until(tick)
			if wait == 0 {
				return nil
			}
			timer.Reset(wait)
		case <-ctx.Done():
			return g.fail(fmt.Errorf("snowflake: %w: the ids of this tick are used up: %w", keygen.ErrStarved, ctx.Err()))
		case <-g.closed:
			return g.fail(fmt.Errorf("snowflake: %w", keygen.ErrClosed))
		}
	}
}

func (g *Generator) expired() error {
	select {
	case <-g.closed:
		return fmt.Errorf("snowflake: %w", keygen.ErrClosed)
	default:
		return fmt.Errorf("snowflake: %w: its time field ended at %v", keygen.ErrExpired, g.layout.Expires())
	}
}

func (g *Generator) fail(err error) error {
	g.failures.Add(1)
	return err
}

// Layout returns the layout in use, for parsing ids.
func (g *Generator) Layout() keygen.Layout { return g.layout }

// Stats returns a snapshot of the generator's state.
func (g *Generator) Stats() keygen.Stats {
	// Read in this order: a lift between the two reads then counts as too few
	// ids issued rather than too many.
	state := g.state.Load()
	if state >= sealed {
		state = g.last.Load()
	}
	return keygen.Stats{
		Issued:   max(state-g.skipped.Load(), 0),
		Waits:    g.waits.Load(),
		Failures: g.failures.Load(),
		Worker:   g.worker,
		Expires:  g.layout.Expires(),
	}
}

// Close stops the generator: calls that wait and all later ones return
// [keygen.ErrClosed]. Ids taken before stay valid. It may be called twice.
func (g *Generator) Close() error {
	g.closing.Do(func() {
		close(g.closed)
		g.last.Store(g.state.Swap(sealed))
	})
	return nil
}
