// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"
	"fmt"
)

// Generator issues unique keys of type K: int64, string or a byte array.
//
// Implementations are safe for concurrent use. Next returns a key and nil, or the zero K and an
// error. It does not wait beyond ctx.
type Generator[K any] interface {
	Next(ctx context.Context) (K, error)
}

// Filler is the optional ability of a Generator to issue many keys at once, which costs less
// than as many calls of Next. Call [Fill], which falls back to Next.
//
// After an error the caller must use no key in dst. The keys that were already drawn become
// gaps.
type Filler[K any] interface {
	Fill(ctx context.Context, dst []K) error
}

// Func adapts a function to a [Generator]. Next of a nil Func returns an error that wraps
// [ErrUnknownGenerator].
type Func[K any] func(ctx context.Context) (K, error)

// Next calls f.
func (f Func[K]) Next(ctx context.Context) (K, error) {
	if f == nil {
		var none K
		return none, errNoGenerator
	}
	return f(ctx)
}

var errNoGenerator = fmt.Errorf("%w: it is nil; make the generator before you ask it for keys", ErrUnknownGenerator)

// Fill sets every element of dst to a new key of g: in one reservation when g is a [Filler], by
// calls of Next otherwise. After an error the caller must use no key in dst.
func Fill[K any](ctx context.Context, g Generator[K], dst []K) error {
	if g == nil {
		return errNoGenerator
	}
	if f, ok := g.(Filler[K]); ok {
		return f.Fill(ctx, dst)
	}
	for i := range dst {
		k, err := g.Next(ctx)
		if err != nil {
			return err
		}
		dst[i] = k
	}
	return nil
}

// Bucketed is the optional ability of a generator to store a row's slot in the row's id ("gene"
// bits, 基因法), so that the id alone determines the shard. Buckets are numbered from 0.
type Bucketed interface {
	NextIn(ctx context.Context, bucket int64) (int64, error)
	// FillIn sets each dst[i] to an id of buckets[i].
	FillIn(ctx context.Context, dst, buckets []int64) error
}
