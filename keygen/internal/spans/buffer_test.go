// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
	"github.com/shardid/shardid/keygen/keygentest"
)

// counter is a source in memory that tests slow down, break and set back.
type counter struct {
	mu    sync.Mutex
	next  int64
	calls int
	delay time.Duration
	err   error
}

func (c *counter) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	var delay time.Duration
	c.set(func(c *counter) { c.calls++; delay = c.delay })
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return keygen.Span{}, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return keygen.Span{}, c.err
	}
	s := keygen.Span{First: c.next, Count: n, Step: 1}
	c.next += n
	return s, nil
}

func (c *counter) set(change func(*counter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *counter) count() (calls int) {
	c.set(func(c *counter) { calls = c.calls })
	return calls
}

func buffer(t *testing.T, s keygen.Source, size int64) *spans.Buffer {
	t.Helper()
	return open(t, double(s, size))
}

// double is the configuration of Leaf's double buffer.
func double(s keygen.Source, size int64) spans.Config {
	return spans.Config{
		Name: "test", Spans: 2, Padding: 45, MaxWait: 10 * time.Second, CallTimeout: 3 * time.Second,
		Reserve: func(ctx context.Context, _ spans.Pace) (keygen.Span, error) { return s.Reserve(ctx, size) },
	}
}

func open(t *testing.T, cfg spans.Config) *spans.Buffer {
	t.Helper()
	b := spans.New(cfg)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func next(t *testing.T, b *spans.Buffer) int64 {
	t.Helper()
	id, err := b.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestConformance(t *testing.T) {
	for _, size := range []int64{1, 2, 10, 1000} {
		shared := &counter{next: 1}
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return buffer(t, shared, size) })
	}
}

func TestKeysOfASteppedSpanLieAStepApart(t *testing.T) {
	b := buffer(t, stepped{}, 4)
	ids := make([]int64, 4)
	if err := b.Fill(t.Context(), ids); err != nil || !slices.Equal(ids, []int64{3, 10, 17, 24}) {
		t.Errorf("%v, %v", ids, err)
	}
}

type stepped struct{}

func (stepped) Reserve(_ context.Context, n int64) (keygen.Span, error) {
	return keygen.Span{First: 3, Count: n, Step: 7}, nil
}

func TestTheNextSpanIsFetchedWhenATenthIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := buffer(t, src, 100)
		for range 10 {
			next(t, b)
		}
		synctest.Wait()
		if src.count() != 1 {
			t.Errorf("%d reservations after ten of a hundred keys", src.count())
		}
		next(t, b)
		synctest.Wait()
		if src.count() != 2 || b.Stats().Remaining != 189 {
			t.Errorf("%d reservations after eleven keys, %d remain", src.count(), b.Stats().Remaining)
		}
	})
}

func TestNobodyGetsAnErrorWhileAHealthySourceIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1, delay: 30 * time.Millisecond}
		b := buffer(t, src, 10)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 100 {
					next(t, b)
				}
			})
		}
		wg.Wait()
		if s := b.Stats(); s.Issued != 1600 || s.Failures != 0 || src.count() > 162 {
			t.Errorf("%+v with %d reservations", s, src.count())
		}
	})
}

func TestOnlyOneReservationIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1, delay: time.Second}
		b := buffer(t, src, 1000)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { next(t, b) })
		}
		wg.Wait()
		if src.count() != 1 {
			t.Errorf("50 callers caused %d reservations", src.count())
		}
	})
}

func TestAnOutageIsBridgedByTheKeysInMemoryAndThenWaitedOut(t *testing.T) {
	down := errors.New("connection refused")
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := buffer(t, src, 100)
		for range 50 {
			next(t, b)
		}
		synctest.Wait()
		src.set(func(c *counter) { c.err = down })
		for range 150 { // the rest of this span and the prefetched one
			next(t, b)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := b.Next(ctx)
		if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, down) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("waited %v", took)
		}
		if s := b.Stats(); !errors.Is(s.LastError, down) || s.FailedReserves == 0 || s.Remaining != 0 {
			t.Errorf("%+v", s)
		}
		time.AfterFunc(5*time.Second, func() { src.set(func(c *counter) { c.err = nil }) })
		if id := next(t, b); id != 201 { // waits for the source to come back
			t.Errorf("went on with %d", id)
		}
		if err := b.Stats().LastError; err != nil {
			t.Errorf("still %v", err)
		}
	})
}

func TestDuringAnOutageTheSourceIsAskedAgainBeforeTheKeysInMemoryAreUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := buffer(t, src, 1000)
		next(t, b)
		synctest.Wait()
		src.set(func(c *counter) { c.err = &keygen.SetupError{Err: errors.New("no such table"), Cure: "create it"} })
		for range 990 {
			next(t, b)
			synctest.Wait()
		}
		if n := src.count(); n < 3 || n > 1+10 { // once a half
			t.Errorf("%d reservations after 991 of a thousand keys", n)
		}
		src.set(func(c *counter) { c.err = nil })
		for range 9 { // all that are left
			next(t, b)
			synctest.Wait()
		}
		if s := b.Stats(); s.Waits != 1 || s.LastError != nil { // the first call's
			t.Errorf("%+v", s)
		}
	})
}

func TestMaxWaitEndsAWaitWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buffer(t, &counter{err: errors.New("down")}, 100)
		begin := time.Now()
		if _, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrStarved) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("waited %v", took)
		}
	})
}

func TestACallThatGivesUpBeforeTheSourceHasAnsweredSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := buffer(t, src, 10)
		for range 10 {
			next(t, b)
		}
		synctest.Wait() // the span ahead is there
		src.set(func(c *counter) { c.delay = time.Hour })
		for range 10 {
			next(t, b)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := b.Next(ctx)
		if want := "the source was asked 1.5s ago and has not answered"; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	})
}

func TestAHungReservationIsCutOffAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1, delay: time.Hour}
		b := buffer(t, src, 100)
		go func() {
			time.Sleep(time.Second)
			src.set(func(c *counter) { c.delay = 0 })
		}()
		begin := time.Now()
		next(t, b)
		if took := time.Since(begin); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestARetryPausesLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{err: errors.New("down")}
		b := buffer(t, src, 100)
		_, _ = b.Next(t.Context())
		time.Sleep(50 * time.Second)
		if src.count() < 25 || src.count() > 70 {
			t.Errorf("%d attempts in a minute", src.count())
		}
	})
}

func TestASpanBelowEarlierKeysIsRefusedAndNotIssued(t *testing.T) {
	src := &counter{next: 1001}
	b := buffer(t, src, 10)
	ids := make([]int64, 20)
	if err := b.Fill(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	src.set(func(c *counter) { c.next = 1 })
	var err error
	for range 40 { // what was prefetched before is still good
		var id int64
		if id, err = b.Next(t.Context()); err != nil {
			break
		}
		if id <= 1020 {
			t.Fatalf("issued %d again", id)
		}
	}
	if !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("got %v", err)
	}
	src.set(func(c *counter) { c.next = 5000 }) // somebody mended it
	if id := next(t, b); id != 5000 {
		t.Errorf("went on with %d", id)
	}
}

func TestAnUnknownTagFailsAtOnceAndIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1, err: keygen.ErrUnknownTag}
		b := buffer(t, src, 10)
		begin := time.Now()
		for range 2 {
			if _, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrUnknownTag) {
				t.Errorf("got %v", err)
			}
		}
		if time.Since(begin) != 0 || src.count() != 2 {
			t.Errorf("%d calls in %v", src.count(), time.Since(begin))
		}
		src.set(func(c *counter) { c.err = nil })
		next(t, b)
	})
}

func TestImpossibleSpansAreRefused(t *testing.T) {
	for _, s := range []keygen.Span{
		{}, {First: 0, Count: 5, Step: 1}, {First: -5, Count: 10, Step: 1}, {First: 1, Count: 0, Step: 1}, {First: 1, Count: 1, Step: 0},
		{First: math.MaxInt64, Count: 2, Step: 1}, {First: 1, Count: math.MaxInt64, Step: 2},
	} {
		b := buffer(t, fixed(s), 10)
		if id, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) || id != 0 {
			t.Errorf("%+v: %d, %v", s, id, err)
		}
	}
}

type fixed keygen.Span

func (f fixed) Reserve(context.Context, int64) (keygen.Span, error) { return keygen.Span(f), nil }

func TestTheLargestInt64CanBeIssued(t *testing.T) {
	b := buffer(t, fixed{First: math.MaxInt64 - 1, Count: 2, Step: 1}, 2)
	if next(t, b) != math.MaxInt64-1 || next(t, b) != math.MaxInt64 {
		t.Error("the end of the range went wrong")
	}
	if id, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("%d, %v", id, err)
	}
}

func TestCloseEndsTheReservationUnderWayAndThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buffer(t, &counter{next: 1, delay: time.Hour}, 10)
		failed := make(chan error)
		go func() {
			_, err := b.Next(context.Background())
			failed <- err
		}()
		synctest.Wait()
		_ = b.Close()
		if err := <-failed; !errors.Is(err, keygen.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestStatsCountEveryKeyOnce(t *testing.T) {
	b := buffer(t, &counter{next: 1}, 7)
	if err := b.Fill(t.Context(), make([]int64, 30)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		next(t, b)
	}
	if s := b.Stats(); s.Issued != 35 {
		t.Errorf("%+v", s)
	}
	_ = b.Close()
	if s := b.Stats(); s.Issued != 35 || s.Remaining != 0 {
		t.Errorf("after Close %+v", s)
	}
}
