// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// renewals is the number of renewals within the term of a lease. Two of them may fail
	// before the ceiling is reached.
	renewals = 3

	// After a failed renewal the generator retries after pauses that double from the first to
	// the last.
	firstRetryPause = 50 * time.Millisecond
	lastRetryPause  = 2 * time.Second

	// minAge is the lowest age at which ids are discarded. It bounds how often the maintenance
	// goroutine wakes for a ring of a few milliseconds.
	minAge = time.Second
)

// runMaintenance discards old ids, starts scheduled fills and renews the lease, until ctx ends.
func (g *Generator) runMaintenance(ctx context.Context) {
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
			g.discardOld()
			continue
		case <-scheduled:
			g.scheduledFill()
			continue
		case <-lease.C:
		case <-g.renewNow:
		}
		if failures++; g.renewLease(ctx) {
			failures = 0
		}
		lease.Reset(g.nextRenewal(failures))
	}
}

// renewLease renews the lease and returns false when that failed.
func (g *Generator) renewLease(ctx context.Context) bool {
	t := g.maker.workerLease.Load()
	if t.window == nil {
		return true
	}
	next := g.renew(ctx, t)
	g.maker.workerLease.Store(next)
	return next.err == nil
}

// maxAge is the age at which ids are discarded, and the interval between two checks for it.
func (g *Generator) maxAge() time.Duration { return max(g.cfg.length(), minAge) }

// discardOld discards ids that are too old and fills the ring from the present.
func (g *Generator) discardOld() {
	oldest := g.cfg.Layout.Tick(g.maker.clock.Time().Add(-g.maxAge()))
	if oldest > 0 {
		g.discarded.Add(g.buffer.Discard(oldest << g.timeShift))
	}
}

// scheduledFill starts the fill of Config.ScheduleInterval.
func (g *Generator) scheduledFill() {
	if !g.buffer.StartFill() {
		g.rejectedPuts.Add(1)
	}
}

// nextRenewal returns the time until the next renewal of the lease.
func (g *Generator) nextRenewal(failures int) time.Duration {
	t := g.maker.workerLease.Load()
	switch {
	case t.window == nil:
		return 1<<63 - 1 // never
	case failures > 0:
		pause := min(firstRetryPause<<min(failures, 10), lastRetryPause)
		return pause/2 + rand.N(pause/2) // random, so that processes that lost the database together do not retry together
	}
	return t.window.Term() / renewals
}
