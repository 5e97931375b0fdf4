package spans

import (
	"sync/atomic"

	"github.com/shardid/shardid/keygen"
)

// chunk is a span that callers take keys from. All fields but taken are
// immutable. A caller owns the keys whose ordinals its addition to taken
// covered, as far as the span reaches; taken runs past count while callers find
// the chunk used up.
type chunk struct {
	span  keygen.Span
	alarm int64 // the ordinal, from 1, whose taker starts the prefetch

	_     [64]byte // keeps the line all callers write apart from the fields they read
	taken atomic.Int64
	_     [56]byte
}

// alarmFraction: the prefetch starts when a tenth of the span is used, as in
// Leaf, which leaves nine tenths of a span for the source to answer in.
const alarmFraction = 10

func newChunk(s keygen.Span) *chunk {
	return &chunk{span: s, alarm: s.Count/alarmFraction + 1}
}

// key returns the key with the given ordinal, from 1.
func (c *chunk) key(ordinal int64) int64 { return c.span.First + (ordinal-1)*c.span.Step }

// used returns how many keys were handed out.
func (c *chunk) used() int64 { return min(c.taken.Load(), c.span.Count) }
