// SPDX-License-Identifier: Apache-2.0

package snowflake

import "sync/atomic"

// counter counts the ids of one lease, or of one of its buckets.
//
// The state is tick<<sequenceBits | sequence of the last id taken, whatever the order of the
// id's fields, so that a carry out of the sequence goes into the tick. The state only grows: by
// a compare-and-swap that raises it to the present tick, and by additions. A caller whose
// addition ends at or below the limit owns the states that it covered. States above the limit
// are never used, and no state is ever given back.
type counter struct {
	state   atomic.Int64
	skipped atomic.Int64 // by how much state grew without an id; issued = state - skipped
}

// sealed is a state above the end of every layout, which leaves room for additions.
const sealed = int64(1) << 62

// start sets the state below the first id of a tick.
func (c *counter) start(below int64) {
	c.state.Store(below)
	c.skipped.Store(below)
}

// seal makes every later addition end above all limits. It returns the state before.
func (c *counter) seal() int64 {
	last := c.state.Swap(sealed)
	c.skipped.Add(sealed - last)
	return last
}

func (c *counter) issued() int64 { return max(c.state.Load()-c.skipped.Load(), 0) }
