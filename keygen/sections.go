// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/nilness"
)

// Sections returns a source whose keys take their high bits from another source and count
// through the low bits, as wuid does. One key of highs is a section of 2^low keys. Package
// segment draws from the source, and reserves the next section when a tenth of the current one
// is used. With 36 low bits, as in wuid, one round trip yields 69 billion keys. When a process
// ends, the rest of its current section and its next one become a gap.
//
// The source highs may be shared with other programs that make sections of the same length: a
// redisgen.Counter of wuid's key, or sqlstore's WUID, beside wuid itself. It must not be shared
// with a wuid that uses WithSection, which sets bits above the high bits. The number of low
// bits is from 1 to 62, and highs has keys of 63-low bits; after the last of them errors wrap
// [ErrExhausted].
func Sections(highs Source, low int) (Source, error) {
	switch {
	case nilness.Is(highs):
		return nil, errors.New("keygen: Sections got a nil source; pass the source of the high bits")
	case low < 1 || low > 62:
		return nil, fmt.Errorf("keygen: Sections got %d low bits; the number must be from 1 to 62, and is 36 in wuid", low)
	}
	return &sections{highs, low}, nil
}

type sections struct {
	highs Source
	low   int
}

var _ Source = (*sections)(nil)

// Reserve reserves one section, whatever n is.
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
		return Span{}, fmt.Errorf("%w: section %d and %d low bits need more than 63 bits", ErrExhausted, high.First, s.low)
	}
	return Span{First: high.First << s.low, Count: int64(1) << s.low, Step: 1}, nil
}
