package keygen

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/nilness"
)

// Sections returns a source whose keys have their high bits from another source and the
// low bits of their own, as wuid makes them: one key of highs is a section of 2^low keys.
// Package segment draws from it, and takes the next section while nine tenths of the
// first are left; so one round trip lasts for billions of keys where low is 36, as in
// wuid. A process leaves what it has of its section, and of the next one, when it ends.
//
// Highs is a counter that may be shared with other programs which make sections of the
// same length: a redisgen.Counter of wuid's key, or sqlstore's WUID, beside wuid itself
// where that has no WithSection, which puts a number of its own above the high bits. From
// 1 to 62 bits are low, and highs has keys of 63-low bits: after the last of them errors
// wrap [ErrExhausted].
func Sections(highs Source, low int) (Source, error) {
	switch {
	case nilness.Is(highs):
		return nil, errors.New("keygen: Sections of a nil source; give the one that the high bits come from")
	case low < 1 || low > 62:
		return nil, fmt.Errorf("keygen: Sections with %d low bits; they are from 1 to 62, and 36 in wuid", low)
	}
	return &sections{highs, low}, nil
}

type sections struct {
	highs Source
	low   int
}

var _ Source = (*sections)(nil)

// Reserve takes one section, however many keys are asked for.
func (s *sections) Reserve(ctx context.Context, n int64) (Span, error) {
	if n < 1 {
		return Span{}, fmt.Errorf("keygen: sections: cannot reserve %d keys", n)
	}
	high, err := s.highs.Reserve(ctx, 1)
	if err != nil {
		return Span{}, fmt.Errorf("keygen: reserve a section: %w", err)
	}
	switch {
	case high.First < 1:
		return Span{}, fmt.Errorf("%w: the source of the high bits gave %d", ErrRegressed, high.First)
	case high.First > math.MaxInt64>>s.low:
		return Span{}, fmt.Errorf("%w: section %d has no room for %d low bits in 63", ErrExhausted, high.First, s.low)
	}
	return Span{First: high.First << s.low, Count: int64(1) << s.low, Step: 1}, nil
}
