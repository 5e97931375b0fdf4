// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
)

func TestFillFallsBackToNext(t *testing.T) {
	g := keygen.Counting(10, 5)
	dst := make([]int64, 3)
	if err := keygen.Fill[int64](t.Context(), keygen.Func[int64](g.Next), dst); err != nil || dst[2] != 20 {
		t.Errorf("%v, %v", dst, err)
	}
	if err := keygen.Fill(t.Context(), g, dst); err != nil || dst[0] != 25 || dst[2] != 35 {
		t.Errorf("%v, %v", dst, err)
	}
}

func TestFillReturnsTheFirstError(t *testing.T) {
	calls := 0
	g := keygen.Func[string](func(context.Context) (string, error) {
		if calls++; calls == 2 {
			return "", keygen.ErrClosed
		}
		return "x", nil
	})
	if err := keygen.Fill(t.Context(), g, make([]string, 5)); !errors.Is(err, keygen.ErrClosed) || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestCountingEndsWhereInt64Does(t *testing.T) {
	g := keygen.Counting(math.MaxInt64-2, 2)
	if err := keygen.Fill(t.Context(), g, make([]int64, 3)); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("three of two: %v", err)
	}
	for _, want := range []int64{math.MaxInt64 - 2, math.MaxInt64} {
		if id, err := g.Next(t.Context()); err != nil || id != want {
			t.Errorf("%d, %v", id, err)
		}
	}
	for range 2 {
		if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("beyond the end: %d, %v", id, err)
		}
	}
}

func TestCountingThatWouldRepeatOrGoDownHasNoKeys(t *testing.T) {
	for _, c := range [][2]int64{{1, 0}, {10, -1}, {0, 1}, {-5, 1}, {math.MinInt64, math.MinInt64}} {
		if id, err := keygen.Counting(c[0], c[1]).Next(t.Context()); id != 0 || !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("Counting%v: %d, %v", c, id, err)
		}
	}
}

func TestASetNamesTheGeneratorsItHas(t *testing.T) {
	g := keygen.Counting(1, 1)
	s := keygen.Set{Named: map[string]keygen.Generator[int64]{"order": g, "item": g}}
	if got, err := s.Lookup("order"); err != nil || got != g {
		t.Errorf("%v %v", got, err)
	}
	for _, name := range []string{"", "orders"} {
		_, err := s.Lookup(name)
		if !errors.Is(err, keygen.ErrUnknownGenerator) {
			t.Errorf("%q: %v", name, err)
		} else if want := "[item, order]"; !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not list %s", name, err, want)
		}
	}
	s.Default = g
	if got, err := s.Lookup(""); err != nil || got != g {
		t.Errorf("%v %v", got, err)
	}
}
