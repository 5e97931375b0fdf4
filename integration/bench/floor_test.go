// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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
	{"atomic add and a limit", func(*testing.B) func(int) {
		counter := new(limited)
		counter.limit.Store(math.MaxInt64)
		return func(n int) {
			var mark int64
			for range n {
				got := counter.n.Add(1)
				if got >= counter.limit.Load() {
					return
				}
				mark ^= got
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
	{"atomic add interface", func(b *testing.B) func(int) { return fromInterface(b, new(bare)) }},
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

// limited is a counter that ends, as every segment does.
type limited struct {
	n     atomic.Int64
	_     [56]byte
	limit atomic.Int64
	_     [56]byte
}

// bare is a generator that adds and does nothing else.
type bare struct{ n atomic.Int64 }

func (g *bare) Next(context.Context) (int64, error) { return g.n.Add(1), nil }

// called counts in a function of its own, as every generator does that is too large to
// become a part of its caller.
type called struct{ n atomic.Int64 }

//go:noinline
func (c *called) next() int64 { return c.n.Add(1) }
