package cached

import "time"

// OnWall is cfg with another wall clock than the system's. The monotonic clock
// goes on by itself.
func OnWall(cfg Config, wall func() time.Time) Config {
	cfg.wall = wall
	return cfg
}

// Drawing is cfg with another source of the numbers that sequences start with,
// unless it has one.
func Drawing(cfg Config, random func(n int64) int64) Config {
	if cfg.random == nil {
		cfg.random = random
	}
	return cfg
}
