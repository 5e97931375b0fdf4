package spans

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// chunk is a span that callers take keys from. A caller owns the keys that its
// addition to taken covered, as far as the span reaches; taken runs past the end
// while callers find the chunk used up.
type chunk struct {
	// taken is before plus the ordinal of the newest key that was taken, from 1. Where
	// the keys are one apart that is the key itself, so that Next returns the sum as it is.
	// It stands first, where it is aligned on 32-bit processors too, and by itself in its
	// line, which all callers write. It has no type of sync/atomic, as their methods
	// would make Next too large to be inlined.
	taken  int64
	before int64
	_      [48]byte

	// plain is the sum from which on Next has more to do than to return it: at the alarm,
	// or always where a sum is no key.
	plain atomic.Int64

	// alarm is the ordinal from which on a taker calls for a fill. It is
	// beyond the end while a fill is under way, or found no room.
	alarm atomic.Int64

	span keygen.Span
	base int64 // the key with the ordinal 0, which is none

	began, ended time.Time // when it came into use and was found used up; guarded by Buffer.mu

	_ [96]byte // to 256 bytes, which begin where a line does
}

// room is how far taken may run past the last key of a chunk whose sums are keys.
const room = 1 << 48

func newChunk(s keygen.Span) *chunk {
	c := &chunk{span: s, base: s.First - s.Step}
	if s.Step == 1 && s.Last() <= math.MaxInt64-room {
		c.before = c.base
	}
	c.taken = c.before
	c.disarm()
	return c
}

func (c *chunk) disarm() { c.arm(c.span.Count + 1) }

// arm sets the alarm to an ordinal.
func (c *chunk) arm(ordinal int64) {
	c.alarm.Store(ordinal)
	if c.span.Step == 1 && c.before == c.base {
		c.plain.Store(c.before + ordinal)
	} else {
		c.plain.Store(math.MinInt64)
	}
}

// take takes n keys and returns the ordinal of the last one, which the span may not have.
func (c *chunk) take(n int64) (last int64) { return atomic.AddInt64(&c.taken, n) - c.before }

// key returns the key with the given ordinal, from 1.
func (c *chunk) key(ordinal int64) int64 { return c.base + ordinal*c.span.Step }

// copy sets dst to the keys after the ordinal before, as far as the span
// reaches, and returns how many those are.
func (c *chunk) copy(dst []int64, before int64) int64 {
	n := min(int64(len(dst)), c.span.Count-before)
	if n <= 0 {
		return 0
	}
	progression(dst[:n], c.key(before+1), c.span.Step)
	return n
}

// progression sets dst to key, key+step, and so on. Eight at a time takes half
// the time of one by one, which is most of what a key costs in a large Fill.
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

// used returns how many keys were handed out.
func (c *chunk) used() int64 { return min(atomic.LoadInt64(&c.taken)-c.before, c.span.Count) }

// seal gives up the keys that are left, and returns how many were handed out.
func (c *chunk) seal() int64 {
	return min(atomic.SwapInt64(&c.taken, c.before+c.span.Count)-c.before, c.span.Count)
}
