package keygentest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// Generator runs the conformance suite of int64 generators. open returns a new
// generator; generators that it returned at other times may still be in use, and
// none of their ids may come again.
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

// neverShares draws from all generators at once, by Next and by Fill, and looks
// for an id that came twice.
func neverShares(t *testing.T, gens ...keygen.Generator[int64]) {
	t.Helper()
	const workers, draws = 8, 4_000
	results := make([][]int64, workers*len(gens))
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			ids, err := draw(t.Context(), gens[i%len(gens)], draws, i)
			if err != nil {
				t.Error(err)
			}
			results[i] = ids
		})
	}
	wg.Wait()
	if ids := slices.Concat(results...); len(ids) != draws*len(results) {
		t.Errorf("got %d ids, want %d", len(ids), draws*len(results))
	} else if id, twice := Duplicate(ids); twice {
		t.Errorf("%d was issued twice", id)
	}
}

// draw takes n ids; odd callers take them in batches of changing size.
func draw(ctx context.Context, g keygen.Generator[int64], n, caller int) ([]int64, error) {
	ids := make([]int64, n)
	for done := 0; done < n; {
		size := 1
		if caller%2 == 1 {
			size = min(1+(done*7+caller)%300, n-done)
		}
		if err := keygen.Fill(ctx, g, ids[done:done+size]); err != nil {
			return nil, err
		}
		done += size
	}
	return ids, nil
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

func closes(t *testing.T, g keygen.Generator[int64]) {
	t.Helper()
	c, ok := g.(interface{ Close() error })
	if !ok {
		return // has nothing to end
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { useUntilClosed(t, g) })
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClosed) || id != 0 {
		t.Errorf("Next after Close: %d, %v", id, err)
	}
	if err := keygen.Fill(t.Context(), g, make([]int64, 3)); !errors.Is(err, keygen.ErrClosed) {
		t.Errorf("Fill after Close: %v", err)
	}
}

func useUntilClosed(t *testing.T, g keygen.Generator[int64]) {
	for {
		if id, err := g.Next(t.Context()); err != nil {
			if !errors.Is(err, keygen.ErrClosed) || id != 0 {
				t.Errorf("Next during Close: %d, %v", id, err)
			}
			return
		}
	}
}

// Duplicate returns an id that is in ids more than once. It sorts ids.
func Duplicate(ids []int64) (id int64, found bool) {
	slices.Sort(ids)
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return ids[i], true
		}
	}
	return 0, false
}
