// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// ticks converts the database's microseconds into ticks of a layout.
type ticks struct {
	epoch int64 // µs since 1970
	unit  int64 // µs
}

// newTicks refuses a layout for which the database's clock, in whole microseconds, would have
// to be rounded.
func newTicks(l keygen.Layout) (ticks, error) {
	switch {
	case l.Unit < time.Microsecond || l.Unit%time.Microsecond != 0:
		return ticks{}, fmt.Errorf("%w: leases need a unit of whole microseconds, not %v", keygen.ErrLayout, l.Unit)
	case !l.Epoch.Equal(l.Epoch.Truncate(time.Microsecond)):
		return ticks{}, fmt.Errorf("%w: leases need an epoch at a whole microsecond, not %v", keygen.ErrLayout, l.Epoch)
	}
	return ticks{l.Epoch.UnixMicro(), l.Unit.Microseconds()}, nil
}

// at returns the tick at micros, the number of whole units since the epoch.
func (t ticks) at(micros int64) int64 {
	since := micros - t.epoch
	n := since / t.unit
	if since%t.unit < 0 {
		n--
	}
	return n
}

// start returns the time at which a tick starts.
func (t ticks) start(tick int64) time.Time {
	return keygen.Layout{Epoch: time.UnixMicro(t.epoch), Unit: time.Duration(t.unit) * time.Microsecond}.At(tick)
}

// in returns how many whole ticks d has.
func (t ticks) in(d time.Duration) int64 { return d.Microseconds() / t.unit }

func (t ticks) String() string {
	return fmt.Sprintf("units of %v since %v", time.Duration(t.unit)*time.Microsecond, time.UnixMicro(t.epoch).UTC())
}
