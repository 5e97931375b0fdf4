// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// chunk is a span from which callers take keys. A caller owns the keys that its addition to
// taken covered, up to the end of the span. Callers that find the chunk used up have added to
// taken, too, so it may lie past the end.
type chunk struct {
	// taken is before plus the ordinal, from 1, of the newest key taken. In a span of step 1
	// that sum is the key itself, so Next returns it without a multiplication. The field is the
	// first one because 32-bit processors align only that to 64 bits. It has a cache line of
	// its own because all callers write it. Its type is int64, not atomic.Int64, because the
	// method call would make Next too large to inline.
	taken  int64
	before int64
	_      [48]byte

	// plain is the lowest value of taken for which Next calls More: the low-water mark, or the
	// lowest int64 in spans where taken is not the key.
	plain atomic.Int64

	// lowWater is the low-water mark: a caller that takes this ordinal or a later one starts a
	// fill. It lies past the end while a fill is under way, and after a fill that found no
	// room.
	lowWater atomic.Int64

	span keygen.Span
	base int64 // one step below the span's first key

	began, ended time.Time // when it became current and when a caller found it used up; guarded by Buffer.mu

	_ [96]byte // pads to 256 bytes, a size class whose objects begin at a cache line
}

// overrun is how far taken may run past the last key before it overflows, in chunks where taken
// is the key.
const overrun = 1 << 48

func newChunk(s keygen.Span) *chunk {
	c := &chunk{span: s, base: s.First - s.Step}
	if s.Step == 1 && s.Last() <= math.MaxInt64-overrun {
		c.before = c.base
	}
	c.taken = c.before
	c.clearLowWater()
	return c
}

func (c *chunk) clearLowWater() { c.setLowWater(c.span.Count + 1) }

// setLowWater sets the low-water mark to an ordinal.
func (c *chunk) setLowWater(ordinal int64) {
	c.lowWater.Store(ordinal)
	if c.span.Step == 1 && c.before == c.base {
		c.plain.Store(c.before + ordinal)
	} else {
		c.plain.Store(math.MinInt64)
	}
}

// take takes n keys and returns the ordinal of the last one, which may lie past the end.
func (c *chunk) take(n int64) (last int64) { return atomic.AddInt64(&c.taken, n) - c.before }

// key returns the key with the given ordinal, from 1.
func (c *chunk) key(ordinal int64) int64 { return c.base + ordinal*c.span.Step }

// copy sets dst to the keys after the ordinal before, up to the end of the span, and returns
// how many it set.
func (c *chunk) copy(dst []int64, before int64) int64 {
	n := min(int64(len(dst)), c.span.Count-before)
	if n <= 0 {
		return 0
	}
	progression(dst[:n], c.key(before+1), c.span.Step)
	return n
}

// progression sets dst to key, key+step, and so on. Setting eight elements per iteration halves
// the time, which dominates the cost of a key in a large Fill.
func progression(dst []int64, key, step int64) {
	for ; len(dst) >= 8; dst = dst[8:] {
		next := key + 4*step
		eight := (*[8]int64)(dst)
		eight[0], eight[1], eight[2], eight[3] = key, key+step, key+2*step, key+3*step
		eight[4], eight[5], eight[6], eight[7] = next, next+step, next+2*step, next+3*step
		key += 8 * step
	}
	for i := range dst {
		dst[i] = key
		key += step
	}
}

// used returns how many keys were issued.
func (c *chunk) used() int64 { return min(atomic.LoadInt64(&c.taken)-c.before, c.span.Count) }

// seal makes the remaining keys unusable and returns how many keys were issued.
func (c *chunk) seal() int64 {
	return min(atomic.SwapInt64(&c.taken, c.before+c.span.Count)-c.before, c.span.Count)
}
