// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
)

func inStripes[K any](t testing.TB, g keygen.Generator[K], block int) keygen.Generator[K] {
	t.Helper()
	s, err := keygen.Striped(g, block)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStripedKeepsTheContractOfKeys(t *testing.T) {
	source := &highs{}
	for _, block := range []int{2, 256} {
		keygentest.Keys(t, func(t *testing.T) keygen.Generator[int64] {
			g, err := segment.New(t.Context(), segment.Config{Source: source, Step: 5000})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = g.Close() })
			return inStripes[int64](t, g, block)
		})
	}
}

// Keys that a garbage collection discards become gaps.
func TestStripedRepeatsNothingWhenGarbageIsCollected(t *testing.T) {
	g := inStripes(t, keygen.Counting(1, 1), 64)
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var ids []int64
			for i := range 3000 {
				if i%500 == 0 {
					runtime.GC()
				}
				id, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				ids = append(ids, id)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ids...)
		})
	}
	wg.Wait()
	if id, twice := keygentest.Duplicate(all); twice || len(all) != 12_000 {
		t.Errorf("%d came twice, of %d", id, len(all))
	}
}

// On an error of Fill no key may be used, also not those that were set.
func TestStripedUsesNothingOfABlockThatFailed(t *testing.T) {
	broken := true
	failed := errors.New("the third one")
	n := int64(0)
	from := keygen.Func[int64](func(context.Context) (int64, error) {
		if n++; n == 3 && broken {
			return 0, failed
		}
		return n, nil
	})
	g := inStripes[int64](t, from, 4)
	if id, err := g.Next(t.Context()); !errors.Is(err, failed) || id != 0 {
		t.Errorf("%d, %v", id, err)
	}
	broken = false
	var ids []int64
	for range 4 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if slices.Min(ids) != 4 {
		t.Errorf("%v have some of the block that failed, or not all of the next", ids)
	}
}

func TestStripedThatCannotBeIsRefused(t *testing.T) {
	for _, block := range []int{-1, 0, 1, 1<<16 + 1} {
		if g, err := keygen.Striped(keygen.Counting(1, 1), block); err == nil || g != nil {
			t.Errorf("blocks of %d: %v", block, err)
		}
	}
	if _, err := keygen.Striped[int64](nil, 64); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Error(err)
	}
}
