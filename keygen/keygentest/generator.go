// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// Generator runs the conformance suite of int64 generators; see [Keys] for generators of
// other kinds of keys, or whose keys do not rise. open returns a new generator. Earlier
// generators may still be in use, and none of their ids may be issued again.
func Generator(t *testing.T, open func(t *testing.T) keygen.Generator[int64]) {
	t.Helper()
	t.Run("ids are positive and rise in one goroutine", func(t *testing.T) {
		risesInOneGoroutine(t, open(t))
	})
	t.Run("goroutines never share an id", func(t *testing.T) {
		neverShares(t, open(t))
	})
	t.Run("two generators never share an id", func(t *testing.T) {
		neverShares(t, open(t), open(t))
	})
	t.Run("Fill gives the ids that Next would", func(t *testing.T) {
		fillAgrees(t, open(t))
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

func risesInOneGoroutine(t *testing.T, g keygen.Generator[int64]) {
	t.Helper()
	var last int64
	for range 20_000 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%d came after %d", id, last)
		}
		last = id
	}
}

func fillAgrees(t *testing.T, g keygen.Generator[int64]) {
	t.Helper()
	ids := make([]int64, 0, 3_000)
	for _, size := range []int{1, 2, 997, 1000} {
		batch := make([]int64, size)
		if err := keygen.Fill(t.Context(), g, batch); err != nil {
			t.Fatal(err)
		}
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(append(ids, batch...), id)
	}
	if !slices.IsSorted(ids) || ids[0] < 1 {
		t.Error("ids of Fill and Next do not rise together")
	}
	if id, twice := Duplicate(ids); twice {
		t.Errorf("%d was issued twice", id)
	}
}

// Duplicate returns an id that occurs more than once in ids. It sorts ids.
func Duplicate(ids []int64) (id int64, found bool) {
	slices.Sort(ids)
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return ids[i], true
		}
	}
	return 0, false
}
