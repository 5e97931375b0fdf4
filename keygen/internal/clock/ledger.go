package clock

import "time"

// ledger is what a ledger's clock read at a moment of the monotonic clock.
type ledger struct {
	tick  int64
	at    time.Time // has a monotonic reading
	trust int64     // by how many ticks the wall clock may be ahead
}

// Follow says that a lease was given or renewed at some time after at, up to a
// ceiling that is a term above what the ledger's clock read then. It returns how
// far the wall clock is ahead of that when it is not believed, and 0 otherwise.
func (c *Clock) Follow(ceiling int64, term time.Duration, at time.Time) (ahead time.Duration) {
	ticks := int64(term / c.layout.Unit)
	l := &ledger{tick: ceiling - ticks, at: at, trust: ticks / 2}
	c.ledger.Store(l)
	if c.cfg.Now != nil {
		c.given()
	} else {
		c.bound(ceiling)
	}
	if !c.doubts.Load() {
		return 0
	}
	return c.between(l.present(c), c.read())
}

// Unfollow says that there is no ledger.
func (c *Clock) Unfollow() {
	c.ledger.Store(nil)
	c.doubts.Store(false)
}

// bound makes the latest time of ids no later than a ceiling, beyond which none
// were made, unless the wall clock is.
func (c *Clock) bound(ceiling int64) {
	for {
		old := c.anchor.Load()
		next := c.next(old)
		next = c.anchored(next.moment, next.at, min(next.lead, c.between(next.moment, moment{tick: ceiling})))
		if c.anchor.CompareAndSwap(old, next) {
			return
		}
	}
}

// read returns what the clock reads that the ledger's is compared with.
func (c *Clock) read() moment {
	if c.cfg.Now != nil {
		return c.at(c.cfg.Now())
	}
	return c.wall(time.Now())
}

// given reads Config.Now.
func (c *Clock) given() int64 {
	return min(c.believed(moment{tick: c.layout.Tick(c.cfg.Now())}).tick, c.end)
}

// believed returns m, which some clock reads, or what the ledger's reads when m is
// too far ahead of that.
func (c *Clock) believed(m moment) moment {
	l := c.ledger.Load()
	if l == nil {
		return m
	}
	if m.tick > l.tick+l.trust {
		if present := l.present(c); m.tick > present.tick+l.trust {
			if !c.doubts.Swap(true) && c.cfg.Doubted != nil {
				c.cfg.Doubted()
			}
			return present
		}
	}
	if c.doubts.Load() {
		c.doubts.Store(false)
	}
	return m
}

func (l *ledger) present(c *Clock) moment {
	return c.plus(moment{tick: l.tick}, max(time.Since(l.at), 0))
}
