// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// subject is something that is measured.
type subject struct {
	name string
	// start makes one and returns a function that takes n ids from it, which
	// goroutines call at the same time. What it made ends with b.
	start func(b *testing.B) func(n int)
}

// goroutines are the numbers of goroutines that a subject is measured with.
var goroutines = []int{1, 2, 8}

// share runs the loop in so many goroutines, b.N turns of it in all.
func share(b *testing.B, among int, loop func(n int)) {
	if among == 1 {
		loop(b.N)
		return
	}
	var all sync.WaitGroup
	for range among {
		all.Go(func() { loop(b.N/among + 1) })
	}
	all.Wait()
}

// kept holds a mark of every result, so that no call can be left out.
var kept atomic.Int64

// fromInterface takes ids as gormplugin and sqlxhook do, through the interface
// with a context and an error. It must not be inlined: the compiler would see
// which generator it is.
//
//go:noinline
func fromInterface(b *testing.B, g keygen.Generator[int64]) func(n int) {
	ctx := b.Context()
	return func(n int) {
		var mark int64
		for range n {
			id, err := g.Next(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			mark ^= id
		}
		kept.Store(mark)
	}
}

const batch = 64

// inBatches takes ids by Fill, 64 at a time; n counts ids.
func inBatches(b *testing.B, g keygen.Filler[int64]) func(n int) {
	ctx := b.Context()
	return func(n int) {
		dst := make([]int64, batch)
		for range (n + batch - 1) / batch {
			if err := g.Fill(ctx, dst); err != nil {
				b.Error(err)
				return
			}
		}
		kept.Store(dst[0])
	}
}

// counter is a source in memory, which answers at once.
type counter struct{ next atomic.Int64 }

func (c *counter) Reserve(_ context.Context, n int64) (keygen.Span, error) {
	return keygen.Span{First: c.next.Add(n) - n + 1, Count: n, Step: 1}, nil
}
