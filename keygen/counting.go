package keygen

import (
	"context"
	"sync/atomic"
)

// Counting returns a generator that counts start, start+step, … in this
// process. It is deterministic, for tests (with go-sqlmock, say): two processes
// that use it issue the same keys.
func Counting(start, step int64) Generator[int64] {
	c := &counting{step: step}
	c.next.Store(start)
	return c
}

type counting struct {
	next atomic.Int64
	step int64
}

var (
	_ Generator[int64] = (*counting)(nil)
	_ Filler[int64]    = (*counting)(nil)
)

func (c *counting) Next(context.Context) (int64, error) {
	return c.next.Add(c.step) - c.step, nil
}

func (c *counting) Fill(_ context.Context, dst []int64) error {
	n := int64(len(dst))
	first := c.next.Add(n*c.step) - n*c.step
	for i := range dst {
		dst[i] = first + int64(i)*c.step
	}
	return nil
}
