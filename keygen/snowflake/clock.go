package snowflake

import (
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
}

// anchor ties a reading of the monotonic clock to a tick.
type anchor struct {
	at   time.Time     // has a monotonic reading
	tick int64         // the tick at that moment
	into time.Duration // how much of the tick had passed
}

// anchorLife is how long an anchor is used before the wall clock is read again.
const anchorLife = time.Second

func newClock(l keygen.Layout, now func() time.Time) *clock {
	c := &clock{layout: l, now: now, end: int64(1) << l.Bits(keygen.Time)}
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
	return a.tick + int64((a.into+passed)/c.layout.Unit)
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
