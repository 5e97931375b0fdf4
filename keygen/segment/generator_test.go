// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
)

// row is a leaf_alloc row in memory.
type row struct {
	mu            sync.Mutex
	maxID, step   int64
	reads, writes int
	sizes         []int64
	err           error
	latency       time.Duration
}

func (r *row) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	var latency time.Duration
	r.set(func(r *row) { latency = r.latency })
	if latency > 0 {
		select {
		case <-time.After(latency):
		case <-ctx.Done():
			return keygen.Span{}, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return keygen.Span{}, r.err
	}
	r.writes++
	r.sizes = append(r.sizes, n)
	r.maxID += n
	return keygen.Span{First: r.maxID - n, Count: n, Step: 1}, nil
}

func (r *row) Step(context.Context) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	return r.step, r.err
}

func (r *row) set(change func(*row)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// newest returns the size of the newest segment.
func (r *row) newest() (size int64) {
	r.set(func(r *row) { size = r.sizes[len(r.sizes)-1] })
	return size
}

func open(t *testing.T, cfg segment.Config) *segment.Generator {
	t.Helper()
	g, err := segment.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func take(t *testing.T, g *segment.Generator, n int) {
	t.Helper()
	if err := g.Fill(t.Context(), make([]int64, n)); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	shared := &row{maxID: 1, step: 500}
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		return open(t, segment.Config{Source: shared})
	})
}

func TestTheFirstIDIsTheRowsMaxID(t *testing.T) {
	g := open(t, segment.Config{Source: &row{maxID: 5000, step: 10}})
	if id, err := g.Next(t.Context()); err != nil || id != 5000 {
		t.Errorf("%d, %v", id, err)
	}
}

func TestNewFailsWhereIDsCouldNeverCome(t *testing.T) {
	if _, err := segment.New(t.Context(), segment.Config{}); err == nil {
		t.Error("a nil Source was accepted")
	}
	if _, err := segment.New(t.Context(), segment.Config{Source: (*row)(nil)}); err == nil {
		t.Error("a Source that is a nil pointer was accepted")
	}
	for _, cfg := range []segment.Config{{Step: -1}, {MaxStep: -1}, {Step: 5, MaxStep: 5}} {
		cfg.Source = &row{maxID: 1, step: 1}
		if _, err := segment.New(t.Context(), cfg); err == nil {
			t.Errorf("Step %d with MaxStep %d was accepted", cfg.Step, cfg.MaxStep)
		}
	}
	if _, err := segment.New(t.Context(), segment.Config{Source: &row{err: keygen.ErrUnknownTag}}); !errors.Is(err, keygen.ErrUnknownTag) {
		t.Errorf("unknown tag: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := segment.New(ctx, segment.Config{Source: &row{err: down}})
		if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, down) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("database down: %v", err)
		}
	})
}

func TestAStepOfZeroFailsAtOnceAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := segment.New(t.Context(), segment.Config{Source: &row{maxID: 1}})
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || setup.Cure != "set it to 1 or more" || errors.Is(err, keygen.ErrStarved) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

// An error of the source is bridged by the ids in memory, as an outage is.
func TestATableThatIsDroppedShowsAtOnceWhenTheIDsInMemoryAreUsedUp(t *testing.T) {
	gone := &keygen.SetupError{Err: errors.New("no such table"), Cure: "create it"}
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 100}
		g := open(t, segment.Config{Source: r, Step: 100})
		r.set(func(r *row) { r.err = gone })
		begin := time.Now()
		take(t, g, 100)
		if _, err := g.Next(t.Context()); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
		r.set(func(r *row) { r.err = nil })
		if id, err := g.Next(t.Context()); id != 101 || err != nil {
			t.Errorf("%d, %v once the table was there again", id, err)
		}
	})
}

// Other processes may have reserved above it, and after a lost reply the next process would
// reserve the same segment again.
func TestCloseLeavesTheRestOfASegmentAsAGap(t *testing.T) {
	r := &row{maxID: 1, step: 100}
	g := open(t, segment.Config{Source: r})
	take(t, g, 3)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	r.set(func(r *row) {
		if r.maxID != 101 {
			t.Errorf("max_id is %d after a segment of 100 ids from 1", r.maxID)
		}
	})
	again := open(t, segment.Config{Source: r})
	if id, err := again.Next(t.Context()); id != 101 || err != nil {
		t.Errorf("%d, %v after the restart", id, err)
	}
}
