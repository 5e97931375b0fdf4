// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
)

// timing is how long a switch may keep writers waiting. It begins with the request of
// the first lock.
type timing struct {
	max   time.Duration
	most  time.Duration // after it, unless something was renamed
	began time.Time
	start chan struct{} // closed by startClock
}

// newTiming leaves room at the end for the renames, which take as long as needs, or
// for giving up: locks have to be released, and a busy machine may let that wait.
func newTiming(longest, needs time.Duration) *timing {
	return &timing{max: longest, most: longest - max(needs, longest/4), start: make(chan struct{})}
}

// unlimited is of a switch that has renamed something already: locks that somebody
// holds for long are all that ends it.
func unlimited(longest time.Duration) *timing {
	return &timing{max: longest, most: backend.Patience, start: make(chan struct{})}
}

// startClock is called once.
func (t *timing) startClock() {
	t.began = time.Now()
	close(t.start)
}

func (t *timing) spent() time.Duration { return time.Since(t.began) }

// rest is how long it may go on without a rename.
func (t *timing) rest() time.Duration { return t.most - t.spent() }

func (t *timing) over() bool { return t.rest() <= 0 }

// within ends ctx some time after a statement should have been given up: by then the
// server did not hear of it, or does not answer, and ending the connection is what is
// left.
func (t *timing) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, t.began.Add(t.most+(t.max-t.most)/2))
}
