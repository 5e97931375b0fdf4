package bench

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

// floor is what the machine allows: a counter that needs nothing else, one
// reading of the clock, and what a generator that needs both, or that is called
// through the interface, cannot do without.
var floor = []subject{
	{"atomic add", func(*testing.B) func(int) {
		var counter atomic.Int64
		return func(n int) {
			var mark int64
			for range n {
				mark ^= counter.Add(1)
			}
			kept.Store(mark)
		}
	}},
	{"atomic add in a call", func(*testing.B) func(int) {
		var counter called
		return func(n int) {
			var mark int64
			for range n {
				mark ^= counter.next()
			}
			kept.Store(mark)
		}
	}},
	{"time.Since", func(*testing.B) func(int) {
		begin := time.Now()
		return func(n int) {
			var mark time.Duration
			for range n {
				mark ^= time.Since(begin)
			}
			kept.Store(int64(mark))
		}
	}},
	{"atomic add interface", func(b *testing.B) func(int) { return fromInterface(b, keygen.Counting(1, 1)) }},
	{"time.Since, atomic add", func(*testing.B) func(int) {
		begin := time.Now()
		var counter atomic.Int64
		return func(n int) {
			var mark int64
			for range n {
				mark ^= int64(time.Since(begin)) ^ counter.Add(1)
			}
			kept.Store(mark)
		}
	}},
	{"mutex counter", func(*testing.B) func(int) {
		var mu sync.Mutex
		var counter int64
		return func(n int) {
			var mark int64
			for range n {
				mu.Lock()
				counter++
				mark ^= counter
				mu.Unlock()
			}
			kept.Store(mark)
		}
	}},
}

// called counts in a function of its own, as every generator does that is too large to
// become a part of its caller.
type called struct{ n atomic.Int64 }

//go:noinline
func (c *called) next() int64 { return c.n.Add(1) }
