// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// moment is a point in time: a tick and the time since its beginning.
type moment struct {
	tick int64
	into time.Duration
}

func (c *Clock) at(t time.Time) moment {
	tick := c.layout.Tick(t)
	return moment{tick, t.Sub(c.layout.At(tick))}
}

// plus returns the moment that is d after m; d must not be negative.
func (c *Clock) plus(m moment, d time.Duration) moment {
	total := m.into + d
	return moment{m.tick + int64(total/c.layout.Unit), total % c.layout.Unit}
}

// longest bounds a difference, so that two of them can be added.
const longest = time.Duration(1) << 61

// between returns the time from one moment to another, which is negative when the other is
// earlier. It is at most 73 years.
func (c *Clock) between(from, to moment) time.Duration {
	ticks, most := to.tick-from.tick, int64(longest/c.layout.Unit)
	return time.Duration(min(max(ticks, -most), most))*c.layout.Unit + to.into - from.into
}
