package cached

import (
	"sync"
	"time"
)

// clock reads the time for fills. It does not go back: when the wall clock does,
// it follows the monotonic clock from the latest reading that was ahead. A
// function given for the wall clock is read as it is.
type clock struct {
	now func() time.Time // nil for the system's clock

	mu     sync.Mutex
	anchor time.Time
}

func (c *clock) read() time.Time {
	if c.now != nil {
		return c.now()
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.anchor.IsZero() {
		kept := c.anchor.Add(now.Sub(c.anchor)) // by the monotonic clock
		if kept.Round(0).After(now.Round(0)) {
			return kept.Round(0)
		}
	}
	c.anchor = now
	return now.Round(0) // without the monotonic reading, so that callers compare wall times
}
