package keygen

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/internal/nilness"
)

// Striped returns a generator for many cores that draw at once: it takes keys from g in
// blocks, one for each core, so that callers on different cores write to no memory in
// common. Where every generator that counts for all cores gets slower with each of them,
// two cores get about twice as many keys of it as one; more have not been measured. On
// one core it is slower than g.
//
// The keys are g's and as unique, but they rise no longer, not in one goroutine either.
// Blocks that a core holds are up to block keys old, and become gaps when the process ends
// or, when a core asks for none, at garbage collections. So g is best a generator of
// package segment or cached; ids of snowflake get the time at which their block was
// drawn. A block has 2 keys at least; 256 are enough to make g's part small, and 65,536
// the most. Striped has nothing to close: close g, and what is left in blocks is still
// given.
//
// Fill asks g itself.
func Striped[K any](g Generator[K], block int) (Generator[K], error) {
	const most = 1 << 16
	if nilness.Is(g) {
		return nil, errNoGenerator
	}
	if block < 2 || block > most {
		return nil, fmt.Errorf("keygen: Striped with blocks of %d keys; they are from 2 to %d, 256 say", block, most)
	}
	return &striped[K]{from: g, block: block}, nil
}

// striped keeps its blocks in a sync.Pool, whose items lie at the core that put them
// there.
type striped[K any] struct {
	from  Generator[K]
	block int
	pool  sync.Pool // of *stripe[K]
}

// stripe is a block of keys, of which the last ones are left. It is one caller's while
// it is not in the pool.
type stripe[K any] struct {
	keys []K
	left int
	_    [64]byte // keeps the counters of two stripes apart
}

var (
	_ Generator[int64] = (*striped[int64])(nil)
	_ Filler[int64]    = (*striped[int64])(nil)
)

// Next returns a key of the block at hand.
func (s *striped[K]) Next(ctx context.Context) (key K, err error) {
	b, ok := s.pool.Get().(*stripe[K])
	if !ok {
		b = &stripe[K]{keys: make([]K, s.block)}
	}
	if b.left == 0 {
		if err := Fill(ctx, s.from, b.keys); err != nil { // nothing of the block may be used
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

// Fill sets dst to keys of the generator behind.
func (s *striped[K]) Fill(ctx context.Context, dst []K) error { return Fill(ctx, s.from, dst) }
