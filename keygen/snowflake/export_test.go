// SPDX-License-Identifier: Apache-2.0

package snowflake

import "time"

// OnWall is cfg with a replacement for the wall clock. The monotonic clock is not replaced.
func OnWall(cfg Config, wall func() time.Time) Config {
	cfg.wall = wall
	return cfg
}

// Drawing is cfg with another source of the numbers that sequences start with.
func Drawing(cfg Config, random func(n int64) int64) Config {
	cfg.random = random
	return cfg
}

// Frozen is cfg with a ticker whose goroutine is stopped until thaw is closed.
func Frozen(cfg Config, awaitTestSignal <-chan struct{}) Config {
	cfg.testPause = awaitTestSignal
	return cfg
}

// Asleep reports whether the ticker's goroutine sleeps.
func Asleep(g *Generator) bool { return g.renewer.leaseState.Load().mark.Load() == 0 }

// Reserve takes the ids of some ticks, as callers do who wait for them.
func Reserve(g *Generator, ticks int64) {
	f := g.renewer.leaseState.Load()
	f.only.state.Add(ticks << g.seqBits)
}
