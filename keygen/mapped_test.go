// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shardid/shardid/keygen"
)

func TestMapMapsWhatNextAndFillGive(t *testing.T) {
	g := keygen.Map(keygen.Counting(1, 1), func(id int64) (string, error) { return fmt.Sprint("k", id), nil })
	first, err := g.Next(t.Context())
	if err != nil || first != "k1" {
		t.Errorf("%q, %v", first, err)
	}
	texts := make([]string, 3)
	if err := keygen.Fill(t.Context(), g, texts); err != nil || !slices.Equal(texts, []string{"k2", "k3", "k4"}) {
		t.Errorf("%q, %v", texts, err)
	}
}

func TestMapFillsInOneReservation(t *testing.T) {
	counting := &reservations{Generator: keygen.Counting(1, 1)}
	g := keygen.Map[int64, string](counting, func(id int64) (string, error) { return keygen.ID(id).String(), nil })
	if err := keygen.Fill(t.Context(), g, make([]string, 500)); err != nil || counting.fills != 1 {
		t.Errorf("%d reservations, %v", counting.fills, err)
	}
}

type reservations struct {
	keygen.Generator[int64]
	fills int
}

func (r *reservations) Fill(ctx context.Context, dst []int64) error {
	r.fills++
	return keygen.Fill(ctx, r.Generator, dst)
}

func TestMapHandsOnErrors(t *testing.T) {
	closed := keygen.Func[int64](func(context.Context) (int64, error) { return 0, keygen.ErrClosed })
	odd := errors.New("odd")
	for _, v := range []struct {
		from keygen.Generator[int64]
		f    func(int64) (string, error)
		want error
	}{
		{closed, func(int64) (string, error) { return "never", nil }, keygen.ErrClosed},
		{keygen.Counting(1, 2), func(int64) (string, error) { return "", odd }, odd},
		{keygen.Counting(1, 2), func(int64) (string, error) { return "half a key", odd }, odd},
	} {
		g := keygen.Map(v.from, v.f)
		if text, err := g.Next(t.Context()); !errors.Is(err, v.want) || text != "" {
			t.Errorf("%q, %v; want %v", text, err, v.want)
		}
		if err := keygen.Fill(t.Context(), g, make([]string, 2)); !errors.Is(err, v.want) {
			t.Errorf("Fill: %v; want %v", err, v.want)
		}
	}
}
