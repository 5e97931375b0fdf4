package clock

import "time"

// moment is a time: a tick and how much of it has passed.
type moment struct {
	tick int64
	into time.Duration
}

func (c *Clock) at(t time.Time) moment {
	tick := c.layout.Tick(t)
	return moment{tick, t.Sub(c.layout.At(tick))}
}

// plus returns the moment d, which is not negative, after m.
func (c *Clock) plus(m moment, d time.Duration) moment {
	total := m.into + d
	return moment{m.tick + int64(total/c.layout.Unit), total % c.layout.Unit}
}

// longest bounds a difference, so that two of them can be added.
const longest = time.Duration(1) << 61

// between returns how long it is from one moment to another, which is negative
// when the other comes first, and 73 years at most.
func (c *Clock) between(from, to moment) time.Duration {
	ticks, most := to.tick-from.tick, int64(longest/c.layout.Unit)
	return time.Duration(min(max(ticks, -most), most))*c.layout.Unit + to.into - from.into
}
