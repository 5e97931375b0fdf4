package spans

import (
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// chunk is a span that callers take keys from. A caller owns the keys whose
// ordinals its addition to taken covered, as far as the span reaches; taken runs
// past the count while callers find the chunk used up.
type chunk struct {
	span keygen.Span
	base int64 // the key with the ordinal 0, which is none

	// alarm is the ordinal, from 1, from which on a taker calls for a fill. It is
	// beyond the end while a fill is under way, or found no room.
	alarm atomic.Int64

	began, ended time.Time // when it came into use and was found used up; guarded by Buffer.mu

	_     [64]byte // keeps the line all callers write apart from the fields they read
	taken atomic.Int64
	_     [56]byte
}

func newChunk(s keygen.Span) *chunk {
	c := &chunk{span: s, base: s.First - s.Step}
	c.disarm()
	return c
}

func (c *chunk) disarm() { c.alarm.Store(c.span.Count + 1) }

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
func (c *chunk) used() int64 { return min(c.taken.Load(), c.span.Count) }

// seal gives up the keys that are left, and returns how many were handed out.
func (c *chunk) seal() int64 { return min(c.taken.Swap(c.span.Count), c.span.Count) }
