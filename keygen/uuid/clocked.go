// SPDX-License-Identifier: Apache-2.0

package uuid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"

	"github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
)

// V1 returns a generator of UUIDs with a time in units of 100 ns, a counter and 48 random
// bits instead of a network address (a MAC would show where an id was made, and containers
// share it).
func V1() keygen.Generator[[16]byte] { return newClocked(keep) }

// V6 returns a generator like V1 with the high bits of the time first, so that the bytes
// sort by time.
func V6() keygen.Generator[[16]byte] { return newClocked(highFirst) }

// clocked makes UUIDs with a time. The time and the counter come from the library. The
// library changes the counter for ids of the same time, and when the time goes back. But
// the counter has only 14 bits. A busy process uses them up before a clock that was set
// back has caught up, and while a clock stands still or has long ticks. So each generator has
// its own node, and chooses a new one whenever the time goes back, and when the counter has gone
// round at one time: no node is used twice with the same time and counter.
type clocked struct {
	draw    func() (uuid.UUID, error) // a V1
	arrange func(uuid.UUID) uuid.UUID

	mu    sync.Mutex // guards the fields below
	node  [6]byte
	last  uuid.Time
	count int // the counter of the last UUID
	since int // by how much the counter rose since the first UUID of this time and node
}

// counts is the number of values of the counter.
const counts = 1 << 14

func newClocked(arrange func(uuid.UUID) uuid.UUID) *clocked {
	return &clocked{draw: uuid.NewUUID, arrange: arrange, node: newNode()}
}

// newNode returns random bytes with the mark that they are not a network address.
func newNode() (node [6]byte) {
	_, _ = rand.Read(node[:]) // never fails
	node[0] |= 1
	return node
}

// Next returns a UUID.
func (c *clocked) Next(context.Context) ([16]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, err := c.draw()
	if err != nil {
		return [16]byte{}, explain(err)
	}
	c.follow(u.Time(), u.ClockSequence())
	copy(u[10:], c.node[:])
	return c.arrange(u), nil
}

// follow chooses a new node if the present one may have been used at this time with this count.
func (c *clocked) follow(at uuid.Time, count int) {
	rose := (count-c.count+counts-1)%counts + 1 // from 1 to counts; it is drawn by other generators, too
	c.since += rose
	switch {
	case at > c.last:
		c.since = 0
	case at < c.last || c.since >= counts:
		c.node, c.since = newNode(), 0
	}
	c.last, c.count = at, count
}

func keep(u uuid.UUID) uuid.UUID { return u }

// highFirst turns a V1 into a V6. The library's own NewV6 overwrites four bits of the time
// with the version, so that ids 409.6 µs apart are equal.
func highFirst(u uuid.UUID) uuid.UUID {
	t := uint64(u.Time())
	binary.BigEndian.PutUint64(u[:], t>>12<<16|0x6000|t&0xfff)
	return u
}
