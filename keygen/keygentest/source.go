// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// Source runs the conformance suite of sources. open returns a new handle on the same
// counter each time, as another process would open it.
func Source(t *testing.T, open func(t *testing.T) keygen.Source) {
	t.Helper()
	t.Run("spans hold positive keys and rise", func(t *testing.T) {
		s := open(t)
		var last int64
		for _, n := range []int64{1, 2, 1000, 1} {
			span := reserve(t, s, n)
			if span.First <= last {
				t.Fatalf("%+v came after the key %d", span, last)
			}
			last = span.Last()
		}
	})
	t.Run("spans of several handles never overlap", func(t *testing.T) {
		neverOverlaps(t, open(t), open(t))
	})
	t.Run("a handle opened later goes on above", func(t *testing.T) {
		before := reserve(t, open(t), 10)
		if after := reserve(t, open(t), 10); after.First <= before.Last() {
			t.Errorf("%+v after %+v", after, before)
		}
	})
	t.Run("a reservation of nothing is an error", func(t *testing.T) {
		for _, n := range []int64{0, -1} {
			if span, err := open(t).Reserve(t.Context(), n); err == nil {
				t.Errorf("Reserve(%d) = %+v", n, span)
			}
		}
	})
	t.Run("a context that has ended ends the reservation", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := open(t).Reserve(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
}

func reserve(t *testing.T, s keygen.Source, n int64) keygen.Span {
	t.Helper()
	span, err := s.Reserve(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if span.First < 1 || span.Count < 1 || span.Step < 1 {
		t.Fatalf("Reserve(%d) gave the impossible span %+v", n, span)
	}
	return span
}

func neverOverlaps(t *testing.T, handles ...keygen.Source) {
	t.Helper()
	const workers, draws = 4, 25
	var mu sync.Mutex
	var keys []int64
	var wg sync.WaitGroup
	for i := range workers * len(handles) {
		wg.Go(func() {
			for range draws {
				span, err := handles[i%len(handles)].Reserve(t.Context(), int64(1+i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k := range span.Count {
					keys = append(keys, span.First+k*span.Step)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if key, twice := Duplicate(slices.Clone(keys)); twice {
		t.Errorf("the key %d was reserved twice", key)
	}
}
