// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"

	"github.com/shardid/shardid/internal/nilness"
)

// Map returns a generator of f(k) for the keys k of g, for example of the texts of ids. If f
// maps different keys to the same result, the result repeats keys. When f fails, the key is
// lost as a gap. When g or f is nil, Next returns an error that wraps [ErrUnknownGenerator].
//
// The result is safe for concurrent use if f is. It does not close g; the owner of g does.
func Map[K, L any](g Generator[K], f func(K) (L, error)) Generator[L] {
	if f == nil || nilness.Is(g) {
		return Func[L](nil)
	}
	return mapped[K, L]{g, f}
}

type mapped[K, L any] struct {
	from Generator[K]
	f    func(K) (L, error)
}

// Next maps the next key.
func (m mapped[K, L]) Next(ctx context.Context) (L, error) {
	k, err := m.from.Next(ctx)
	if err == nil {
		var l L
		if l, err = m.f(k); err == nil {
			return l, nil
		}
	}
	var none L // whatever f returned with its error
	return none, err
}

// Fill draws all keys in one reservation if g can.
func (m mapped[K, L]) Fill(ctx context.Context, dst []L) error {
	keys := make([]K, len(dst))
	if err := Fill(ctx, m.from, keys); err != nil {
		return err
	}
	for i, k := range keys {
		l, err := m.f(k)
		if err != nil {
			return err
		}
		dst[i] = l
	}
	return nil
}
