package clock

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Config configures a [Clock].
type Config struct {
	// Layout says what a tick is.
	Layout keygen.Layout
	// Now replaces the system's clocks. It may go back.
	Now func() time.Time
	// Wall replaces the wall clock alone, in tests. Defaults to time.Now.
	Wall func() time.Time
	// Doubted is called when the wall clock is found to be far ahead of the ledger,
	// once until it is believed again: a newer reading of the ledger tells which of
	// them is right.
	Doubted func()
}

// Clock counts a layout's ticks. It is safe for concurrent use.
type Clock struct {
	cfg    Config
	layout keygen.Layout
	end    int64 // the first tick that no longer fits; a reading of Config.Now goes no further
	anchor atomic.Pointer[anchor]
	ledger atomic.Pointer[ledger]
	doubts atomic.Bool // the wall clock is not believed

	reciprocal uint64 // 2^64 / Unit, rounded up; 0 when it would not be exact
}

// anchor ties a reading of the monotonic clock to a moment.
type anchor struct {
	moment

	at   time.Time     // has a monotonic reading
	lead time.Duration // how far the latest time of ids was ahead of the moment
	life time.Duration // how long now and most are the same and need no look at the wall clock
}

const (
	// anchorLife is how long an anchor is used before the wall clock is read again.
	anchorLife = time.Second

	// jitter is how far the wall clock may seem to go back because it and the
	// monotonic clock are read one after the other.
	jitter = 10 * time.Microsecond

	// maxReciprocal is the longest unit that a reciprocal stands for.
	maxReciprocal = time.Second
)

// New returns a clock.
func New(cfg Config) *Clock {
	l := cfg.Layout
	c := &Clock{cfg: cfg, layout: l, end: int64(1) << l.Bits(keygen.Time)}
	if l.Unit > 1 && l.Unit <= maxReciprocal {
		c.reciprocal = math.MaxUint64/uint64(l.Unit) + 1
	}
	if cfg.Now == nil {
		at := time.Now()
		c.anchor.Store(&anchor{moment: c.wall(at), at: at, life: anchorLife})
	}
	return c
}

// Slewed is how far the latest time of ids goes on in a time that passes while the
// wall clock is behind it.
func Slewed(passed time.Duration) time.Duration { return passed / 2 }

// Read returns the present tick, and the latest tick that ids may be made for.
func (c *Clock) Read() (now, most int64) {
	if c.cfg.Now != nil {
		tick := c.given()
		return tick, tick
	}
	a := c.anchor.Load()
	passed := time.Since(a.at)
	if passed > a.life {
		return c.readSlowly(a, passed)
	}
	tick := a.tick + c.ticksIn(a.into+passed)
	return tick, tick
}

// Tick returns the present tick.
func (c *Clock) Tick() int64 {
	now, _ := c.Read()
	return now
}

// ticksIn returns how many whole ticks there are in d, which is not negative. A
// multiplication by the unit's reciprocal takes a fifth of the time of a
// division; rounding the reciprocal up makes the quotient exact for every d
// with d*Unit < 2^64, which anchorLife and maxReciprocal see to.
func (c *Clock) ticksIn(d time.Duration) int64 {
	if c.reciprocal == 0 {
		return int64(d / c.layout.Unit)
	}
	ticks, _ := bits.Mul64(uint64(d), c.reciprocal)
	return int64(ticks)
}

func (c *Clock) readSlowly(a *anchor, passed time.Duration) (now, most int64) {
	if passed > anchorLife {
		a, passed = c.reanchor(a), 0
	}
	return c.plus(a.moment, passed).tick, c.plus(a.moment, passed+a.leadAfter(passed)).tick
}

// current returns an anchor whose life has not passed, and how old it is.
func (c *Clock) current() (a *anchor, passed time.Duration) {
	a = c.anchor.Load()
	if passed = time.Since(a.at); passed > anchorLife {
		return c.reanchor(a), 0
	}
	return a, passed
}

// leadAfter returns what is left of the lead.
func (a *anchor) leadAfter(passed time.Duration) time.Duration {
	return max(a.lead-(passed-Slewed(passed)), 0)
}

// reanchor replaces old by an anchor at the present moment. When several
// goroutines do so at once the first wins, and the others' readings are as
// good.
func (c *Clock) reanchor(old *anchor) *anchor {
	next := c.next(old)
	c.anchor.CompareAndSwap(old, next)
	return next
}

// next returns the anchor that comes after old.
func (c *Clock) next(old *anchor) *anchor {
	at := time.Now()
	passed := at.Sub(old.at)
	kept := c.plus(old.moment, passed)
	most := c.plus(kept, old.leadAfter(passed))
	next := c.believed(c.wall(at))
	if back := c.between(next, kept); back > 0 && back < jitter {
		next = kept
	}
	return c.anchored(next, at, c.between(next, most))
}

func (c *Clock) anchored(m moment, at time.Time, lead time.Duration) *anchor {
	a := &anchor{moment: m, at: at, lead: max(lead, 0), life: anchorLife}
	if a.lead > 0 {
		a.life = -1
	}
	return a
}

func (c *Clock) wall(now time.Time) moment {
	if c.cfg.Wall != nil {
		now = c.cfg.Wall()
	}
	return c.at(now)
}

// Time returns the present time.
func (c *Clock) Time() time.Time {
	var m moment
	if c.cfg.Now != nil {
		m = c.believed(c.at(c.cfg.Now()))
	} else {
		a, passed := c.current()
		m = c.plus(a.moment, passed)
	}
	return c.layout.At(m.tick).Add(m.into)
}

// Behind returns by how much the latest time of ids is before the beginning of a
// tick, 0 when it is not.
func (c *Clock) Behind(tick int64) time.Duration {
	behind, _ := c.behind(tick)
	return behind
}

func (c *Clock) behind(tick int64) (behind, lead time.Duration) {
	var latest moment
	if c.cfg.Now != nil {
		latest = c.believed(c.at(c.cfg.Now()))
	} else {
		a, passed := c.current()
		lead = a.leadAfter(passed)
		latest = c.plus(a.moment, passed+lead)
	}
	return max(c.between(latest, moment{tick: tick}), 0), lead
}

// Until returns how long it takes until ids may be made for a tick, 0 when they
// may.
func (c *Clock) Until(tick int64) time.Duration {
	behind, lead := c.behind(tick)
	return behind + min(behind, lead) // while there is a lead, half of what passes counts
}
