// SPDX-License-Identifier: Apache-2.0

package sqlrun

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// longestGap bounds the gap after a write that took long because a member of the cluster had died.
const longestGap = 200 * time.Millisecond

// Gap is the time between two writes of this process to rows that all members of a cluster write. A
// process that has just committed is the only one that has seen the row's last state: without a gap
// its next write would come before the others have applied that, and they would always lose the
// conflict. The wait is before the next write and not after the last one, so that it costs nothing
// if writes are rare.
//
// The zero value is ready to use: there is no gap before the first write. All methods may be called
// by several goroutines, which share the gaps.
type Gap struct {
	mu   sync.Mutex
	ends time.Time
}

// Begin begins a gap after a write that took this long: a random time of up to twice that.
func (g *Gap) Begin(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = time.Now().Add(rand.N(min(2*took, longestGap) + 1))
}

// Wait returns when the gap has ended, or with the error of its context.
func (g *Gap) Wait(ctx context.Context) error {
	left := g.left()
	if left <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}

func (g *Gap) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.ends)
}
