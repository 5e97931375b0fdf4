// SPDX-License-Identifier: Apache-2.0

package cached

import "time"

// OnWall returns cfg with a replacement for the wall clock. The monotonic clock is not
// replaced.
func OnWall(cfg Config, wall func() time.Time) Config {
	cfg.wall = wall
	return cfg
}

// Drawing returns cfg with random as the source of first sequences, unless cfg has one.
func Drawing(cfg Config, random func(n int64) int64) Config {
	if cfg.random == nil {
		cfg.random = random
	}
	return cfg
}
