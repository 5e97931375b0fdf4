// SPDX-License-Identifier: Apache-2.0

package sqlrun

import (
	"context"
	"math/rand/v2"
	"time"
)

// longestWay is as long as GiveWay pauses where a statement took long because a member of the
// cluster had died.
const longestWay = 200 * time.Millisecond

// GiveWay pauses after a write that took so long, for up to twice that time, drawn by lot. Where
// all members of a cluster write to one row, whoever has just committed is the only one that
// has seen its last state: without a pause its next write comes before the others have seen it,
// and they lose every time. The pause ends with the context, too, and is no error then, as the
// write is done.
func GiveWay(ctx context.Context, took time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(min(2*took, longestWay) + 1)):
	}
}
