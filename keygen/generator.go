package keygen

import (
	"context"
	"fmt"
)

// Generator issues unique keys of type K: int64, string or a byte array.
//
// Implementations are safe for concurrent use. Next returns an error and the
// zero K, or a key and nil; it does not wait beyond ctx.
type Generator[K any] interface {
	Next(ctx context.Context) (K, error)
}

// Filler is the optional ability to issue many keys at once, cheaper than as
// many calls of Next. Use [Fill], which falls back to Next.
//
// On an error no key in dst may be used: the keys already drawn are lost, as
// gaps, and dst's content is unspecified.
type Filler[K any] interface {
	Fill(ctx context.Context, dst []K) error
}

// Func lets a function be a [Generator]. Keys of a nil Func are errors that wrap
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

var errNoGenerator = fmt.Errorf("%w: it is nil; make the generator before keys are asked of it", ErrUnknownGenerator)

// Fill sets every element of dst to a fresh key of g, in one reservation when
// g is a [Filler] and by calling Next otherwise. On an error no key in dst may
// be used.
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

// Bucketed is the optional ability of a generator to put the slot that routes a
// row into the row's id ("gene" bits, 基因法), so that the id alone finds the
// shard. Buckets are numbered from 0.
type Bucketed interface {
	NextIn(ctx context.Context, bucket int64) (int64, error)
	// FillIn sets each dst[i] to an id of buckets[i].
	FillIn(ctx context.Context, dst, buckets []int64) error
}
