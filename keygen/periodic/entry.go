// SPDX-License-Identifier: Apache-2.0

package periodic

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// entry is the counter of a key. The first call that needs it makes its generator.
type entry struct {
	gen atomic.Pointer[segment.Generator]

	mu   sync.Mutex
	made *attempt // the attempt to make it; nil for none
}

// attempt is an attempt to make a generator.
type attempt struct {
	done  chan struct{} // closed when the fields below are set
	err   error
	alone bool // it failed because the context of its own call ended
}

// generator returns the key's generator. One call makes it. Calls that wait for it get its
// error, because otherwise each would try and fail in turn.
func (e *entry) generator(ctx context.Context, open func() (*segment.Generator, error)) (*segment.Generator, error) {
	for {
		gen, under := e.begin()
		switch {
		case gen != nil:
			return gen, nil
		case under == nil:
			gen, err := open()
			e.end(err, ctx.Err() != nil)
			return gen, err
		}
		select {
		case <-under.done:
			if under.err != nil && !under.alone {
				return nil, under.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", keygen.ErrStarved, ctx.Err())
		}
	}
}

// begin returns the generator, or the attempt that another call makes, or neither: then the
// caller has begun an attempt.
func (e *entry) begin() (*segment.Generator, *attempt) {
	if gen := e.gen.Load(); gen != nil {
		return gen, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if gen := e.gen.Load(); gen != nil {
		return gen, nil
	}
	under := e.made
	if under == nil {
		e.made = &attempt{done: make(chan struct{})}
	}
	return nil, under
}

func (e *entry) end(err error, alone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made.err, e.made.alone = err, alone
	close(e.made.done)
	e.made = nil
}
