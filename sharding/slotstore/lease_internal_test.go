// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"testing"
	"time"
)

// A machine that was suspended for an hour has a monotonic clock that is an hour behind.
func TestALeaseEndsWhenEitherClockSaysSo(t *testing.T) {
	now := time.Now()
	lease := endAt(now.Add(time.Minute))
	for name, at := range map[string]struct {
		is   end
		want bool
	}{
		"both clocks are before the end":     {*lease, true},
		"the machine was suspended":          {end{lease.monotonic, now.Add(-time.Hour).Round(0)}, false},
		"the other clock was set back":       {end{now.Add(-time.Second), lease.wall.Add(time.Hour)}, false},
		"the lease was never taken or ended": {end{}, false},
	} {
		if got := at.is.isAfter(now); got != at.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
