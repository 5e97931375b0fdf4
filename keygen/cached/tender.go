package cached

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// renewals is how often a lease is renewed within its term, so that two
	// renewals may fail before the ceiling is reached.
	renewals = 3

	// After a failure the lease is tried again after pauses that double from the
	// first to the last.
	firstRest = 50 * time.Millisecond
	lastRest  = 2 * time.Second

	// minAge is the least age at which ids are discarded, so that a ring of a few
	// milliseconds does not have to be looked at all the time.
	minAge = time.Second
)

// tend does what has to be done at intervals, until ctx ends.
func (g *Generator) tend(ctx context.Context) {
	age := time.NewTicker(g.maxAge())
	defer age.Stop()
	var scheduled <-chan time.Time
	if g.cfg.ScheduleInterval > 0 {
		schedule := time.NewTicker(g.cfg.ScheduleInterval)
		defer schedule.Stop()
		scheduled = schedule.C
	}
	lease := time.NewTimer(g.nextRenewal(0))
	defer lease.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-age.C:
			g.freshen()
			continue
		case <-scheduled:
			g.pad()
			continue
		case <-lease.C:
		case <-g.hurry:
		}
		if failures++; g.extend(ctx) {
			failures = 0
		}
		lease.Reset(g.nextRenewal(failures))
	}
}

// extend renews the lease, and returns false when that failed.
func (g *Generator) extend(ctx context.Context) bool {
	t := g.maker.tenure.Load()
	if t.window == nil {
		return true
	}
	next := g.renew(ctx, t)
	g.maker.tenure.Store(next)
	return next.err == nil
}

// maxAge is how far in the past the time of an id in the ring may lie when the
// tender looks.
func (g *Generator) maxAge() time.Duration { return max(g.cfg.length(), minAge) }

// freshen discards ids that are too old and fills the ring from the present.
func (g *Generator) freshen() {
	oldest := g.cfg.Layout.Tick(g.maker.clock.Time().Add(-g.maxAge()))
	if oldest > 0 {
		g.discarded.Add(g.buffer.Discard(oldest << g.timeShift))
	}
}

// pad is the periodic fill.
func (g *Generator) pad() {
	if !g.buffer.Pad() {
		g.rejectedPuts.Add(1)
	}
}

// nextRenewal returns when the lease is to be renewed next.
func (g *Generator) nextRenewal(failures int) time.Duration {
	t := g.maker.tenure.Load()
	switch {
	case t.window == nil:
		return 1<<63 - 1 // never
	case failures > 0:
		rest := min(firstRest<<min(failures, 10), lastRest)
		return rest/2 + rand.N(rest/2) // processes that lost the database together do not return together
	}
	return t.window.Term() / renewals
}
