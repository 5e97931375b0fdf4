// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
)

// timing limits how long a switch may make writers wait. The time begins with the request
// of the first lock.
type timing struct {
	max   time.Duration
	most  time.Duration // the switch ends after this time, unless something was renamed
	began time.Time
	start chan struct{} // closed by startClock
	share atomic.Int64  // how much of the time may pass before a lock is given up and tried again; 0 if it is not limited
}

// newTiming reserves time at the end for the renames, which take as long as needs, or for
// giving up: on a busy machine releasing locks takes time.
func newTiming(longest, needs time.Duration) *timing {
	return &timing{max: longest, most: longest - max(needs, longest/4), start: make(chan struct{})}
}

// unlimited is for a switch that has renamed something already: only locks that others hold
// for long can end it.
func unlimited(longest time.Duration) *timing {
	return &timing{max: longest, most: backend.RetryLimit, start: make(chan struct{})}
}

// startClock starts the time. It is called once.
func (t *timing) startClock() {
	t.began = time.Now()
	close(t.start)
}

func (t *timing) spent() time.Duration { return time.Since(t.began) }

// rest is the time left before the first rename.
func (t *timing) rest() time.Duration { return t.most - t.spent() }

func (t *timing) over() bool { return t.rest() <= 0 }

// The waits for a further lock while others are held begin short, because a wait in a circle is in vain, and become longer,
// because a transaction that waits for nobody just needs its time.
const (
	leastFurtherWait = 10 * time.Millisecond
	mostFurtherWait  = 200 * time.Millisecond
)

// limitLock limits the wait for the next lock.
func (t *timing) limitLock(wait time.Duration) { t.share.Store(int64(t.spent() + wait)) }

// unlimitLock ends the limit of limitLock.
func (t *timing) unlimitLock() { t.share.Store(0) }

// lockRest is the time left for the statement under way.
func (t *timing) lockRest() time.Duration {
	if share := t.share.Load(); share > 0 {
		return min(t.rest(), time.Duration(share)-t.spent())
	}
	return t.rest()
}

// within ends ctx some time after a statement should have been cancelled. If the server did
// not receive the cancellation or does not answer, only closing the connection is left.
func (t *timing) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, t.began.Add(t.most+(t.max-t.most)/2))
}
