// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// composer is a layout with precomputed shifts, for making ids.
type composer struct {
	layout keygen.Layout

	seqBits, seqShift, timeShift uint8
	seqMask                      int64
	end                          int64 // the highest state whose tick fits the time field
	buckets                      int64 // 0 without a bucket field
}

func newComposer(l keygen.Layout) composer {
	s := composer{
		layout:    l,
		seqBits:   uint8(l.Bits(keygen.Sequence)),
		seqShift:  uint8(l.Shift(keygen.Sequence)),
		timeShift: uint8(l.Shift(keygen.Time)),
		seqMask:   int64(1)<<l.Bits(keygen.Sequence) - 1,
		end:       int64(1)<<(l.Bits(keygen.Time)+l.Bits(keygen.Sequence)) - 1,
	}
	if n := l.Bits(keygen.Bucket); n > 0 {
		s.buckets = int64(1) << n
	}
	return s
}

// compose returns the id of a state; otherFields are the bits of the other fields.
func (s *composer) compose(state, otherFields int64) int64 {
	return s.tick(state)<<(s.timeShift&63) | state&s.seqMask<<(s.seqShift&63) | otherFields
}

// composeAll sets dst to the ids of the states from first on. The ids of one tick are evenly
// spaced, so each costs only an addition.
func (s *composer) composeAll(dst []int64, first, otherFields int64) {
	step := int64(1) << (s.seqShift & 63)
	for len(dst) > 0 {
		id := s.compose(first, otherFields)
		n := min(int64(len(dst)), s.seqMask-first&s.seqMask+1)
		for i := range dst[:n] {
			dst[i] = id
			id += step
		}
		dst, first = dst[n:], first+n
	}
}

// tick returns the tick of a state. The shifts of the hot path are masked, because the compiler
// would otherwise add a check for shifts by 64 and more.
func (s *composer) tick(state int64) int64 { return state >> (s.seqBits & 63) }

// worker returns the bits of an id that hold the worker id.
func (s *composer) worker(id int64) int64 {
	var p keygen.Parts
	s.layout.SplitWorker(&p, id)
	return p.Datacenter<<s.layout.Shift(keygen.Datacenter) | p.Worker<<s.layout.Shift(keygen.Worker)
}

// before returns the state just below the first one of a tick, or the layout's end for a tick
// beyond it.
func (s *composer) before(tick int64) int64 {
	if tick > s.end>>s.seqBits {
		return s.end
	}
	return tick<<s.seqBits - 1
}

// checkBucket refuses a bucket that the layout does not have.
func (s *composer) checkBucket(bucket int64) error {
	switch {
	case s.buckets == 0:
		return fmt.Errorf("snowflake: %w: it has no bucket field, which carries the slot of a row; add one at the end of the layout", keygen.ErrLayout)
	case bucket < 0 || bucket >= s.buckets:
		return fmt.Errorf("snowflake: %w: bucket %d is not between 0 and %d", keygen.ErrLayout, bucket, s.buckets-1)
	}
	return nil
}
