package sqlstore

import (
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// ticks turns the database's microseconds into ticks of a layout.
type ticks struct {
	epoch int64 // µs since 1970
	unit  int64 // µs
}

// newTicks refuses a clock that the database's, which counts whole
// microseconds, would be rounded for.
func newTicks(c workerid.Clock) (ticks, error) {
	switch {
	case c.Unit < time.Microsecond || c.Unit%time.Microsecond != 0:
		return ticks{}, fmt.Errorf("%w: leases need a unit of whole microseconds, not %v", keygen.ErrLayout, c.Unit)
	case !c.Epoch.Equal(c.Epoch.Truncate(time.Microsecond)):
		return ticks{}, fmt.Errorf("%w: leases need an epoch at a whole microsecond, not %v", keygen.ErrLayout, c.Epoch)
	}
	return ticks{c.Epoch.UnixMicro(), c.Unit.Microseconds()}, nil
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

// in returns how many whole ticks d has.
func (t ticks) in(d time.Duration) int64 { return d.Microseconds() / t.unit }

func (t ticks) String() string {
	return fmt.Sprintf("units of %v since %v", time.Duration(t.unit)*time.Microsecond, time.UnixMicro(t.epoch).UTC())
}
