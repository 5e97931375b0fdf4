package snowflake

import (
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
)

// family is all that belongs to one lease: its worker id, its counters and its
// limit. A new lease gets a new family, so that nothing of the old one, a state
// read before a pause say, can be applied to it. It is sealed before its worker
// id is handed back or another one's first id is issued.
type family struct {
	lease      keygen.Lease
	lost       bool  // the lease is another's; guarded by keeper.working
	remark     error // of the newest renewal: the clocks differ; guarded by keeper.working
	workerPart int64 // the worker id in its place in the id

	// ahead is how many ticks ids may be ahead of the clock. It is more than
	// Config.Borrow while the clock is behind what the lease has allowed before.
	ahead atomic.Int64

	// limit is the highest state that may be used. It only rises, and only after
	// the ceiling that allows it is written.
	limit atomic.Int64

	// mark is the state up to which callers need not look at the clock, with
	// Config.Coarse; 0 when all have to. It is never above the limit.
	mark atomic.Int64

	// allowed is the highest state that the clock has allowed so far, with Config.Coarse.
	// The counter runs ahead of it while callers wait.
	allowed atomic.Int64

	buckets []counter // of a layout with gene bits, by bucket

	_    [64]byte // keeps the line that all callers write apart from what they only read
	only counter  // of a layout without
	_    [48]byte
}

func (f *family) counter(bucket int64) *counter {
	if f.buckets == nil {
		return &f.only
	}
	return &f.buckets[bucket]
}

// counters calls visit for each counter.
func (f *family) counters(visit func(*counter)) {
	if f.buckets == nil {
		visit(&f.only)
		return
	}
	for i := range f.buckets {
		visit(&f.buckets[i])
	}
}

// seal ends the family and returns the highest state that was handed out.
// Taking the states out first is what makes that sure: a caller that read the
// limit before and adds after finds itself above it.
func (f *family) seal() (last int64) {
	f.counters(func(c *counter) { last = max(last, min(c.seal(), f.limit.Load())) })
	return last
}

// highest returns the highest state that was handed out, 0 when the family is
// sealed.
func (f *family) highest() (last int64) {
	f.counters(func(c *counter) {
		if s := c.state.Load(); s < sealed {
			last = max(last, min(s, f.limit.Load()))
		}
	})
	return last
}

func (f *family) issued() (n int64) {
	f.counters(func(c *counter) { n += c.issued() })
	return n
}

// open tells whether there are ids that may be issued.
func (f *family) open() bool { return f.counter(0).state.Load() < f.limit.Load() }

// raise lifts the limit; a lower one, of a reply that was overtaken, changes
// nothing.
func (f *family) raise(limit int64) { lift(&f.limit, limit) }

func lift(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if to <= old || v.CompareAndSwap(old, to) {
			return
		}
	}
}
