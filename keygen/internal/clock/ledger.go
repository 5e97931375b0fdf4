// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// ledger is a reading of a ledger's clock at a moment of the monotonic clock.
type ledger struct {
	tick  int64
	at    time.Time // has a monotonic reading
	trust int64     // by how many ticks the wall clock may be ahead
}

// Follow reports that the ledger granted or renewed a lease at some time after at, and set its
// ceiling to the ledger's clock plus a term. It returns by how much the wall clock is ahead of
// the ledger's when the wall clock is not trusted, 0 otherwise.
func (c *Clock) Follow(ceiling int64, term time.Duration, at time.Time) (ahead time.Duration) {
	ticks := int64(term / c.layout.Unit)
	l := &ledger{tick: ceiling - ticks, at: at, trust: ticks / 2}
	c.ledger.Store(l)
	if c.cfg.Now != nil {
		c.readConfigured()
	} else {
		c.limitLead(ceiling)
	}
	if !c.distrusted.Load() {
		return 0
	}
	return c.between(l.present(c), c.wallReading())
}

// Unfollow reports that no ledger applies any more.
func (c *Clock) Unfollow() {
	c.ledger.Store(nil)
	c.distrusted.Store(false)
}

// limitLead lowers the latest time for ids to a ceiling, or to the wall clock if that is later.
// No id was made at or above the ceiling.
func (c *Clock) limitLead(ceiling int64) {
	for {
		old := c.anchor.Load()
		next := c.next(old)
		next = c.anchored(next.moment, next.at, min(next.lead, c.between(next.moment, moment{tick: ceiling})))
		if c.anchor.CompareAndSwap(old, next) {
			return
		}
	}
}

// wallReading returns the reading that is compared with the ledger's.
func (c *Clock) wallReading() moment {
	if c.cfg.Now != nil {
		return c.at(c.cfg.Now())
	}
	return c.at(c.cfg.Wall())
}

// readConfigured returns the tick of Config.Now.
func (c *Clock) readConfigured() int64 {
	return min(c.trusted(moment{tick: c.layout.Tick(c.cfg.Now())}).tick, c.end)
}

// trusted returns m, the reading of some clock, or the ledger's time when m is too far ahead of
// that.
func (c *Clock) trusted(m moment) moment {
	l := c.ledger.Load()
	if l == nil {
		return m
	}
	if m.tick > l.tick+l.trust {
		if present := l.present(c); m.tick > present.tick+l.trust {
			if !c.distrusted.Swap(true) && c.cfg.Distrusted != nil {
				c.cfg.Distrusted()
			}
			return present
		}
	}
	if c.distrusted.Load() {
		c.distrusted.Store(false)
	}
	return m
}

func (l *ledger) present(c *Clock) moment {
	return c.plus(moment{tick: l.tick}, max(time.Since(l.at), 0))
}
