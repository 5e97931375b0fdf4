// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/internal/nilness"
)

// Striped returns a generator for many cores that draw keys at once. It takes keys from g in
// blocks, one per core, so that callers on different cores write to no shared memory. A
// generator with one counter for all cores gets slower with each core that uses it; with
// Striped, two cores get about twice as many keys as one. More than two cores have not been
// measured. On one core Striped is slower than g.
//
// The keys are g's and are as unique, but they do not rise, not even in one goroutine. A core
// may hold keys that were drawn up to block keys ago. They become gaps when the process ends,
// or at a garbage collection if the core asks for none meanwhile. So g is best a generator of
// package segment or cached; an id of snowflake gets the time at which its block was drawn. A
// block has from 2 to 65,536 keys; 256 are enough to make the cost of g small. Striped needs no
// Close: close g; the rest of the blocks is still issued after that.
//
// Fill asks g directly.
func Striped[K any](g Generator[K], block int) (Generator[K], error) {
	const most = 1 << 16
	if nilness.Is(g) {
		return nil, errNoGenerator
	}
	if block < 2 || block > most {
		return nil, fmt.Errorf("keygen: Striped got blocks of %d keys; the number must be from 2 to %d, 256 say", block, most)
	}
	return &striped[K]{from: g, block: block}, nil
}

// striped keeps its blocks in a sync.Pool, which keeps an item at the core that put it there.
type striped[K any] struct {
	from  Generator[K]
	block int
	pool  sync.Pool // of *stripe[K]
}

// stripe is a block of keys, of which the last ones are left. While it is not in the pool, one
// caller owns it.
type stripe[K any] struct {
	keys []K
	left int
	_    [64]byte // keeps the counters of two stripes in different cache lines
}

var (
	_ Generator[int64] = (*striped[int64])(nil)
	_ Filler[int64]    = (*striped[int64])(nil)
)

// Next returns a key of this core's block.
func (s *striped[K]) Next(ctx context.Context) (key K, err error) {
	b, ok := s.pool.Get().(*stripe[K])
	if !ok {
		b = &stripe[K]{keys: make([]K, s.block)}
	}
	if b.left == 0 {
		if err := Fill(ctx, s.from, b.keys); err != nil { // no key of the block may be used
			s.pool.Put(b)
			return key, err
		}
		b.left = len(b.keys)
	}
	key = b.keys[len(b.keys)-b.left]
	b.left--
	s.pool.Put(b)
	return key, nil
}

// Fill sets dst to keys of g.
func (s *striped[K]) Fill(ctx context.Context, dst []K) error { return Fill(ctx, s.from, dst) }
