// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
)

// leaseState is one lease with its worker id, its counters and its limit. A new lease gets a
// new leaseState, so that a value of the old one, such as a state read before a pause, cannot
// be applied to it. It is sealed before its worker id is released or the first id of another
// lease is issued.
type leaseState struct {
	lease        keygen.Lease
	lost         bool  // another process has the worker id; guarded by renewer.working
	clockWarning error // set by the newest renewal when the clocks differ; guarded by renewer.working
	workerField  int64 // the bits of an id that hold the worker id

	// ahead is the number of ticks by which ids may be ahead of the clock. It is more than
	// Config.Borrow while the clock is behind ids that the lease has allowed.
	ahead atomic.Int64

	// limit is the highest state that may be used. It only rises, and only after the ceiling
	// that allows it was stored.
	limit atomic.Int64

	// mark is the state up to which callers need not read the clock, with Config.Coarse; 0 when
	// all must. It is never above the limit.
	mark atomic.Int64

	// allowed is the highest state that the clock has allowed so far, with Config.Coarse. The
	// counter is higher while callers wait.
	allowed atomic.Int64

	buckets []counter // of a layout with a bucket field, by bucket

	_    [64]byte // separates the cache line that all callers write from fields that they only read
	only counter  // of a layout without a bucket field
	_    [48]byte
}

func (f *leaseState) counter(bucket int64) *counter {
	if f.buckets == nil {
		return &f.only
	}
	return &f.buckets[bucket]
}

// counters calls visit for each counter.
func (f *leaseState) counters(visit func(*counter)) {
	if f.buckets == nil {
		visit(&f.only)
		return
	}
	for i := range f.buckets {
		visit(&f.buckets[i])
	}
}

// seal makes all later additions useless and returns the highest state that was issued. It
// swaps the states out first, so a caller that read the limit before and adds afterwards finds
// itself above the limit.
func (f *leaseState) seal() (last int64) {
	f.counters(func(c *counter) { last = max(last, min(c.seal(), f.limit.Load())) })
	return last
}

// highest returns the highest state that was issued, 0 after seal.
func (f *leaseState) highest() (last int64) {
	f.counters(func(c *counter) {
		if s := c.state.Load(); s < sealed {
			last = max(last, min(s, f.limit.Load()))
		}
	})
	return last
}

func (f *leaseState) issued() (n int64) {
	f.counters(func(c *counter) { n += c.issued() })
	return n
}

// open returns true when ids may be issued.
func (f *leaseState) open() bool { return f.counter(0).state.Load() < f.limit.Load() }

// raise raises the limit. A lower limit, of a reply that came late, has no effect.
func (f *leaseState) raise(limit int64) { lift(&f.limit, limit) }

func lift(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if to <= old || v.CompareAndSwap(old, to) {
			return
		}
	}
}
