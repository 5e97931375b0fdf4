// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// Keys runs the conformance suite of generators of any kind of key: numbers, texts or
// bytes. It tests only what holds whether or not keys rise. open returns a new generator.
// Earlier generators may still be in use, and none of their keys may be issued again.
func Keys[K comparable](t *testing.T, open func(t *testing.T) keygen.Generator[K]) {
	t.Helper()
	t.Run("goroutines never share a key", func(t *testing.T) {
		neverShares(t, open(t))
	})
	t.Run("two generators never share a key", func(t *testing.T) {
		neverShares(t, open(t), open(t))
	})
	t.Run("Fill sets every key", func(t *testing.T) {
		fillsAll(t, open(t))
	})
	t.Run("Fill of nothing takes nothing", func(t *testing.T) {
		if err := keygen.Fill(t.Context(), open(t), nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("Close is idempotent and ends everything", func(t *testing.T) {
		closes(t, open(t))
	})
}

// neverShares draws from all generators at once, by Next and by Fill, and fails if a key
// occurs twice.
func neverShares[K comparable](t *testing.T, gens ...keygen.Generator[K]) {
	t.Helper()
	const workers, draws = 8, 4_000
	results := make([][]K, workers*len(gens))
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			keys, err := draw(t.Context(), gens[i%len(gens)], draws, i)
			if err != nil {
				t.Error(err)
			}
			results[i] = keys
		})
	}
	wg.Wait()
	keys := slices.Concat(results...)
	if len(keys) != draws*len(results) {
		t.Errorf("got %d keys, want %d", len(keys), draws*len(results))
	}
	areDistinct(t, keys)
}

// draw draws n keys; callers with odd numbers draw batches of changing size.
func draw[K any](ctx context.Context, g keygen.Generator[K], n, caller int) ([]K, error) {
	keys := make([]K, n)
	for done := 0; done < n; {
		size := 1
		if caller%2 == 1 {
			size = min(1+(done*7+caller)%300, n-done)
		}
		if err := keygen.Fill(ctx, g, keys[done:done+size]); err != nil {
			return nil, err
		}
		done += size
	}
	return keys, nil
}

func fillsAll[K comparable](t *testing.T, g keygen.Generator[K]) {
	t.Helper()
	var keys []K
	for _, size := range []int{1, 2, 997, 1000} {
		batch := make([]K, size)
		if err := keygen.Fill(t.Context(), g, batch); err != nil {
			t.Fatal(err)
		}
		key, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		keys = append(append(keys, batch...), key)
	}
	areDistinct(t, keys)
}

// areDistinct also fails for the zero key, which means a missing key.
func areDistinct[K comparable](t *testing.T, keys []K) {
	t.Helper()
	seen := make(map[K]struct{}, len(keys))
	for _, key := range keys {
		if _, twice := seen[key]; twice {
			t.Errorf("%v was issued twice", key)
			return
		}
		if isZero(key) {
			t.Errorf("the key %v was issued", key)
			return
		}
		seen[key] = struct{}{}
	}
}

func isZero[K comparable](key K) bool {
	var zero K
	return key == zero
}

func closes[K comparable](t *testing.T, g keygen.Generator[K]) {
	t.Helper()
	c, ok := g.(interface{ Close() error })
	if !ok {
		return // has nothing to end
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var closed atomic.Bool
	for range 4 {
		wg.Go(func() { useUntilClosed(t, g, &closed) })
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	closed.Store(true)
	wg.Wait()
	if key, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClosed) || !isZero(key) {
		t.Errorf("Next after Close: %v, %v", key, err)
	}
	if err := keygen.Fill(t.Context(), g, make([]K, 3)); !errors.Is(err, keygen.ErrClosed) {
		t.Errorf("Fill after Close: %v", err)
	}
}

func useUntilClosed[K comparable](t *testing.T, g keygen.Generator[K], closed *atomic.Bool) {
	for {
		after := closed.Load()
		key, err := g.Next(t.Context())
		if err != nil {
			if !errors.Is(err, keygen.ErrClosed) || !isZero(key) {
				t.Errorf("Next during Close: %v, %v", key, err)
			}
			return
		}
		if after {
			t.Errorf("Next after Close: %v", key)
			return
		}
	}
}
