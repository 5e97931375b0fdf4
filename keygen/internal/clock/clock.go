// SPDX-License-Identifier: Apache-2.0

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
	// Layout defines the ticks.
	Layout keygen.Layout
	// Now replaces the system's clocks. It may go back.
	Now func() time.Time
	// Wall replaces only the wall clock, in tests. Defaults to time.Now.
	Wall func() time.Time
	// Distrusted is called once each time the Clock begins to distrust the wall clock, because
	// that is far ahead of the ledger. A newer reading of the ledger shows which of the two is
	// right.
	Distrusted func()
}

// Clock counts a layout's ticks. It is safe for concurrent use.
type Clock struct {
	cfg        Config
	layout     keygen.Layout
	end        int64 // the first tick that no longer fits; readings of Config.Now are cut to it
	anchor     atomic.Pointer[anchor]
	ledger     atomic.Pointer[ledger]
	distrusted atomic.Bool // the wall clock is not trusted

	reciprocal uint64 // 2^64 / Unit, rounded up; 0 when it would not be exact
}

// anchor ties a reading of the monotonic clock to a moment.
type anchor struct {
	moment

	at       time.Time     // has a monotonic reading
	lead     time.Duration // by how much the latest time for ids was ahead of the moment
	validFor time.Duration // how long now equals most and the wall clock is not read
}

const (
	// anchorValidity is the time after which the wall clock is read again.
	anchorValidity = time.Second

	// jitter is how far the wall clock may fall behind the monotonic clock between two readings
	// before it counts as set back: a system may correct the speed of the wall clock alone.
	jitter = 10 * time.Microsecond

	// maxReciprocal is the longest unit for which ticksIn is exact with a reciprocal.
	maxReciprocal = time.Second
)

// New returns a clock.
func New(cfg Config) *Clock {
	l := cfg.Layout
	c := &Clock{cfg: cfg, layout: l, end: int64(1) << l.Bits(keygen.Time)}
	if l.Unit > 1 && l.Unit <= maxReciprocal {
		c.reciprocal = math.MaxUint64/uint64(l.Unit) + 1
	}
	if c.cfg.Wall == nil {
		c.cfg.Wall = time.Now
	}
	if cfg.Now == nil {
		now, at, _ := c.wall()
		c.anchor.Store(&anchor{moment: now, at: at, validFor: anchorValidity})
	}
	return c
}

// Slewed returns by how much the latest time for ids advances while passed goes by and the wall
// clock is behind it.
func Slewed(passed time.Duration) time.Duration { return passed / 2 }

// Read returns the present tick and the latest tick for which ids may be made.
func (c *Clock) Read() (now, most int64) {
	if c.cfg.Now != nil {
		tick := c.readConfigured()
		return tick, tick
	}
	a := c.anchor.Load()
	passed := time.Since(a.at)
	if passed > a.validFor {
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

// ticksIn returns how many whole ticks d has; d must not be negative. A multiplication by the
// unit's reciprocal takes a fifth of the time of a division. Because the reciprocal is rounded
// up, the quotient is exact for every d with d*Unit < 2^64; anchorValidity and maxReciprocal
// guarantee that.
func (c *Clock) ticksIn(d time.Duration) int64 {
	if c.reciprocal == 0 {
		return int64(d / c.layout.Unit)
	}
	ticks, _ := bits.Mul64(uint64(d), c.reciprocal)
	return int64(ticks)
}

func (c *Clock) readSlowly(a *anchor, passed time.Duration) (now, most int64) {
	if passed > anchorValidity {
		a, passed = c.reanchor(a), 0
	}
	return c.plus(a.moment, passed).tick, c.plus(a.moment, passed+a.leadAfter(passed)).tick
}

// current returns an anchor that is still valid, and its age.
func (c *Clock) current() (a *anchor, passed time.Duration) {
	a = c.anchor.Load()
	if passed = time.Since(a.at); passed > anchorValidity {
		return c.reanchor(a), 0
	}
	return a, passed
}

// leadAfter returns the lead that remains after passed.
func (a *anchor) leadAfter(passed time.Duration) time.Duration {
	return max(a.lead-(passed-Slewed(passed)), 0)
}

// reanchor replaces old by an anchor at the present moment. When several goroutines do so at
// once, the first one wins, and the readings of the others are equally valid.
func (c *Clock) reanchor(old *anchor) *anchor {
	next := c.next(old)
	c.anchor.CompareAndSwap(old, next)
	return next
}

// next returns the anchor that comes after old.
func (c *Clock) next(old *anchor) *anchor {
	now, at, late := c.wall()
	passed := at.Sub(old.at)
	kept := c.plus(old.moment, passed)
	most := c.plus(kept, old.leadAfter(passed))
	next := c.trusted(now)
	if back := c.between(next, kept); back > 0 && back < jitter+late {
		next = kept
	}
	return c.anchored(next, at, c.between(next, most))
}

func (c *Clock) anchored(m moment, at time.Time, lead time.Duration) *anchor {
	a := &anchor{moment: m, at: at, lead: max(lead, 0), validFor: anchorValidity}
	if a.lead > 0 {
		a.validFor = -1
	}
	return a
}

// wall reads the wall clock, and after it the monotonic clock. A process may be suspended for
// milliseconds between the two: late is the longest time by which the wall clock's reading may
// be older than the monotonic clock's.
func (c *Clock) wall() (now moment, at time.Time, late time.Duration) {
	before := time.Now()
	now = c.at(c.cfg.Wall())
	at = time.Now()
	return now, at, at.Sub(before)
}

// Time returns the present time.
func (c *Clock) Time() time.Time {
	var m moment
	if c.cfg.Now != nil {
		m = c.trusted(c.at(c.cfg.Now()))
	} else {
		a, passed := c.current()
		m = c.plus(a.moment, passed)
	}
	return c.layout.At(m.tick).Add(m.into)
}

// Behind returns by how much the latest time for ids is before the beginning of a tick, 0 when
// it is not before.
func (c *Clock) Behind(tick int64) time.Duration {
	behind, _ := c.behind(tick)
	return behind
}

func (c *Clock) behind(tick int64) (behind, lead time.Duration) {
	var latest moment
	if c.cfg.Now != nil {
		latest = c.trusted(c.at(c.cfg.Now()))
	} else {
		a, passed := c.current()
		lead = a.leadAfter(passed)
		latest = c.plus(a.moment, passed+lead)
	}
	return max(c.between(latest, moment{tick: tick}), 0), lead
}

// Until returns how long it takes until ids may be made for a tick, 0 when they already may.
func (c *Clock) Until(tick int64) time.Duration {
	behind, lead := c.behind(tick)
	return behind + min(behind, lead) // while there is a lead, the latest time advances at half speed
}
