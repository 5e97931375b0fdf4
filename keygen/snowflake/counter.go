package snowflake

import "sync/atomic"

// counter numbers the ids of one lease, or of one bucket of it.
//
// state is tick<<sequenceBits | sequence of the last id taken, whatever the
// order of the id's fields, so that a carry out of the sequence goes into the
// tick. It only grows: by one compare-and-swap that lifts it to the present
// tick, and by additions. Whoever's addition ends at or below the limit owns the
// states it covered; states taken beyond the limit are burnt, and nothing is
// ever taken back.
type counter struct {
	state   atomic.Int64
	skipped atomic.Int64 // what state grew by without an id; issued = state - skipped
}

// sealed is a state above every layout's end, with room for additions.
const sealed = int64(1) << 62

// start sets the state below the first id of a tick.
func (c *counter) start(below int64) {
	c.state.Store(below)
	c.skipped.Store(below)
}

// seal makes every later addition end above all limits, and returns the state
// that was reached.
func (c *counter) seal() int64 {
	last := c.state.Swap(sealed)
	c.skipped.Add(sealed - last)
	return last
}

func (c *counter) issued() int64 { return max(c.state.Load()-c.skipped.Load(), 0) }
