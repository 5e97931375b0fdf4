// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

// A swap and the reading of a route each derive the next snapshot from the present one. Neither may
// undo the other.
func TestSwapsAndSwitchesDoNotUndoEachOther(t *testing.T) {
	const switches = 120
	m := newMoving(t, time.Minute)
	sent := m.load(t)
	done := make(chan struct{})
	var swaps sync.WaitGroup
	var made atomic.Int64
	swaps.Go(func() {
		for version := int64(1); ; version++ {
			select {
			case <-done:
				t.Logf("%d swaps", version)
				return
			default:
			}
			if err := m.router.Swap(map[string]sharding.Map{"orders": ordersTable(t).Map.At(version)}); err != nil {
				t.Error(err)
				return
			}
			if table, _ := m.router.Table("orders"); table.Map.Version() != version {
				t.Errorf("version %d is in force, not %d", table.Map.Version(), version)
				return
			}
			made.Store(version)
		}
	})
	for n := range switches {
		route, missing, want := sharding.OnShards, "orders", "main/orders_1"
		if n%2 == 1 {
			route, missing, want = sharding.Returned, "orders_1", "main/orders"
		}
		m.flip(t, route)
		next, err := m.router.Moved(t.Context(), sent, fakeNoTable(missing))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := next.Target("orders", 1); err != nil || got.String() != want {
			t.Errorf("switch %d leads to %s (%v), not %s", n, got, err, want)
		}
		for before := made.Load(); made.Load() < before+2 && !t.Failed(); { // one may have been under way
			runtime.Gosched()
		}
		m.wantTarget(t, want)
		sent = next
	}
	close(done)
	swaps.Wait()
}
