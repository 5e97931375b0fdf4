package snowflake

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// clock counts the layout's ticks. Its reading never goes back: it follows the
// monotonic clock from an anchor taken off the wall clock, and when the wall
// clock is found to be ahead (the machine slept, or was corrected) a new anchor
// is taken there.
//
// A clock with a now function reads that instead, and goes wherever it goes.
type clock struct {
	layout keygen.Layout
	now    func() time.Time
	end    int64 // the first tick that no longer fits; a reading goes no further
	anchor atomic.Pointer[anchor]

	reciprocal uint64 // 2^64 / Unit, rounded up; 0 when it would not be exact
}

// anchor ties a reading of the monotonic clock to a tick.
type anchor struct {
	at   time.Time     // has a monotonic reading
	tick int64         // the tick at that moment
	into time.Duration // how much of the tick had passed
}

// anchorLife is how long an anchor is used before the wall clock is read again.
const anchorLife = time.Second

// maxReciprocal is the longest unit that a reciprocal stands for.
const maxReciprocal = time.Second

func newClock(l keygen.Layout, now func() time.Time) *clock {
	c := &clock{layout: l, now: now, end: int64(1) << l.Bits(keygen.Time)}
	if l.Unit > 1 && l.Unit <= maxReciprocal {
		c.reciprocal = math.MaxUint64/uint64(l.Unit) + 1
	}
	if now == nil {
		c.anchor.Store(c.wall(time.Now()))
	}
	return c
}

// tick returns the current tick.
func (c *clock) tick() int64 {
	if c.now != nil {
		return min(c.layout.Tick(c.now()), c.end)
	}
	a := c.anchor.Load()
	passed := time.Since(a.at)
	if passed > anchorLife {
		return c.reanchor(a)
	}
	return a.tick + c.ticksIn(a.into+passed)
}

// ticksIn returns how many whole ticks there are in d, which is not negative. A
// multiplication by the unit's reciprocal takes a fifth of the time of a
// division; rounding the reciprocal up makes the quotient exact for every d
// with d*Unit < 2^64, which anchorLife and maxReciprocal see to.
func (c *clock) ticksIn(d time.Duration) int64 {
	if c.reciprocal == 0 {
		return int64(d / c.layout.Unit)
	}
	ticks, _ := bits.Mul64(uint64(d), c.reciprocal)
	return int64(ticks)
}

// reanchor replaces old by an anchor at the present moment. When several
// goroutines do so at once the first wins, and the others' readings are as
// good.
func (c *clock) reanchor(old *anchor) int64 {
	now := time.Now()
	next := c.wall(now)
	total := old.into + now.Sub(old.at)
	kept := &anchor{at: now, tick: old.tick + int64(total/c.layout.Unit), into: total % c.layout.Unit}
	if kept.tick > next.tick || kept.tick == next.tick && kept.into > next.into {
		next = kept // the wall clock is behind: it was set back
	}
	c.anchor.CompareAndSwap(old, next)
	return next.tick
}

func (c *clock) wall(now time.Time) *anchor {
	tick := c.layout.Tick(now)
	return &anchor{at: now, tick: tick, into: now.Sub(c.layout.At(tick))}
}

// until returns how long it takes until the given tick begins, 0 when it has.
func (c *clock) until(tick int64) time.Duration {
	if c.now != nil {
		return max(c.layout.At(tick).Sub(c.now()), 0)
	}
	a := c.anchor.Load()
	return max(time.Duration(tick-a.tick)*c.layout.Unit-a.into-time.Since(a.at), 0)
}
