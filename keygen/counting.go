// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
)

// Counting returns a generator that counts start, start+step, … in this process. It is
// deterministic, for tests with go-sqlmock, say; two processes that use it issue the same keys.
// Start and step must be at least 1: otherwise, and at the end of int64, errors wrap
// [ErrExhausted].
func Counting(start, step int64) Generator[int64] {
	c := &counting{start: start, step: step}
	if start > 0 && step > 0 {
		c.keys = (math.MaxInt64-start)/step + 1
	}
	return c
}

type counting struct {
	start, step int64
	keys        int64 // number of keys that it has in total
	given       atomic.Int64
}

var (
	_ Generator[int64] = (*counting)(nil)
	_ Filler[int64]    = (*counting)(nil)
)

func (c *counting) Next(context.Context) (int64, error) { return c.take(1) }

func (c *counting) Fill(_ context.Context, dst []int64) error {
	first, err := c.take(int64(len(dst)))
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = first + int64(i)*c.step
	}
	return nil
}

// take returns the first of n keys. When fewer than n are left, it takes none.
func (c *counting) take(n int64) (first int64, err error) {
	for {
		given := c.given.Load()
		if n > c.keys-given {
			return 0, fmt.Errorf("%w: Counting(%d, %d) has %d of %d keys left; start and step must be at least 1, and keys at most %d", ErrExhausted, c.start, c.step, c.keys-given, n, int64(math.MaxInt64))
		}
		if c.given.CompareAndSwap(given, given+n) {
			return c.start + given*c.step, nil
		}
	}
}
