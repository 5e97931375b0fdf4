// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
)

// highs counts in memory.
type highs struct {
	last atomic.Int64
	err  atomic.Pointer[error]
}

func (h *highs) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	if err := ctx.Err(); err != nil {
		return keygen.Span{}, err
	}
	if err := h.err.Load(); err != nil {
		return keygen.Span{}, *err
	}
	return keygen.Span{First: h.last.Add(n) - n + 1, Count: n, Step: 1}, nil
}

func sections(t *testing.T, from keygen.Source, low int) keygen.Source {
	t.Helper()
	s, err := keygen.Sections(from, low)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSectionsKeepTheContractOfSourcesAndGenerators(t *testing.T) {
	h := &highs{}
	keygentest.Source(t, func(t *testing.T) keygen.Source { return sections(t, h, 6) })
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		g, err := segment.New(t.Context(), segment.Config{Source: sections(t, h, 36)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		return g
	})
}

// Section 1 of wuid begins at 2^36.
func TestSectionsAreWUIDs(t *testing.T) {
	s := sections(t, &highs{}, 36)
	for h := range int64(3) {
		span, err := s.Reserve(t.Context(), 1000)
		if want := (keygen.Span{First: (h + 1) << 36, Count: 1 << 36, Step: 1}); err != nil || span != want {
			t.Errorf("%+v, %v; want %+v", span, err, want)
		}
	}
}

// The next section is there before the low bits of the first end, so that an outage in
// between is not felt.
func TestASectionIsRenewedBeforeItsLowBitsEnd(t *testing.T) {
	h := &highs{}
	renewed := make(chan struct{}, 10)
	g, err := segment.New(t.Context(), segment.Config{
		Source:   sections(t, h, 8),
		Observer: segment.Observer{Refill: func(_ keygen.Span, _ time.Duration, _ error) { renewed <- struct{}{} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	<-renewed
	for range 128 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-renewed // while half of the first one is left
	down := errors.New("connection refused")
	h.err.Store(&down)
	for i := range 2*256 - 128 {
		if id, err := g.Next(t.Context()); err != nil || id>>8 != int64(1+(128+i)/256) {
			t.Fatalf("id %d is %d, %v", 128+i, id, err)
		}
	}
}

func TestSectionsEndWithTheHighBits(t *testing.T) {
	h := &highs{}
	h.last.Store(math.MaxInt64>>36 - 1)
	s := sections(t, h, 36)
	span, err := s.Reserve(t.Context(), 1)
	if err != nil || span.Last() != math.MaxInt64 {
		t.Errorf("the last section is %+v, %v", span, err)
	}
	if span, err := s.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("after it: %+v, %v", span, err)
	}
	h.last.Store(-5)
	if span, err := s.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("negative: %+v, %v", span, err)
	}
}

func TestSectionsThatCannotBeAreRefused(t *testing.T) {
	for _, low := range []int{0, -1, 63} {
		if s, err := keygen.Sections(&highs{}, low); err == nil || s != nil {
			t.Errorf("%d low bits: %v", low, err)
		}
	}
	if s, err := keygen.Sections((*highs)(nil), 36); err == nil || s != nil {
		t.Errorf("%v", err)
	}
}
