// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// distant is a counter in memory that answers after a millisecond, as a database does.
type distant struct{ last atomic.Int64 }

func (d *distant) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return keygen.Span{}, ctx.Err()
	}
	return keygen.Span{First: d.last.Add(n) - n + 1, Count: n, Step: 1}, nil
}

// On one processor the same call ran first each time, and took all ids of the segment.
func TestCallersOfASourceThatIsSlowerGetIDsInTurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g, err := segment.New(t.Context(), segment.Config{Source: &distant{}, Step: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	const callers, each = 5, 100
	var first atomic.Int64 // how many ids the first one that is ready has drawn
	var least atomic.Int64
	least.Store(each)
	var wg sync.WaitGroup
	var done atomic.Bool
	for range callers {
		wg.Go(func() {
			drawn := int64(0)
			for !done.Load() {
				if _, err := g.Next(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if drawn++; drawn == 10*each && first.CompareAndSwap(0, drawn) {
					done.Store(true)
				}
			}
			for old := least.Load(); drawn < old && !least.CompareAndSwap(old, drawn); {
				old = least.Load()
			}
		})
	}
	wg.Wait()
	if least.Load() < each {
		t.Errorf("one caller had %d ids when another one had %d", least.Load(), first.Load())
	}
}
