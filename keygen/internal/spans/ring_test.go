// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
	"github.com/shardid/shardid/keygen/keygentest"
)

// eight is the configuration of a ring with eight places of ten keys each.
func eight(s keygen.Source) spans.Config {
	cfg := double(s, 10)
	cfg.Spans, cfg.Padding = 8, 50
	return cfg
}

func fill(t *testing.T, b *spans.Buffer, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	if err := b.Fill(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestARingIsFilledUpWhenFewerRemainThanThePaddingFactorSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := open(t, eight(src))
		if !b.StartFill() {
			t.Error("an empty ring has no room")
		}
		if err := b.Ready(t.Context()); err != nil || src.count() != 8 || b.Stats().Remaining != 80 {
			t.Errorf("%v; %d reservations, %+v", err, src.count(), b.Stats())
		}
		fill(t, b, 40)
		synctest.Wait()
		if src.count() != 8 {
			t.Errorf("filled at the threshold: %d", src.count())
		}
		fill(t, b, 1)
		synctest.Wait()
		if src.count() != 12 || b.Stats().Remaining != 79 {
			t.Errorf("%d reservations, %+v", src.count(), b.Stats())
		}
		if b.StartFill() {
			t.Error("a full ring has room")
		}
		fill(t, b, 40)
		synctest.Wait()
		if src.count() != 16 {
			t.Errorf("a fill that found no room ended the filling: %d", src.count())
		}
	})
}

func TestAFillIsEndedByAnErrorThatNoRetryCuresAndBeginsAgainWhenTheRingIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := open(t, eight(src))
		b.StartFill()
		synctest.Wait()
		src.set(func(c *counter) { c.err = keygen.ErrExpired })
		for range 80 {
			next(t, b)
		}
		synctest.Wait()
		if src.count() > 13 { // one for each of the chunks that came into use
			t.Errorf("%d reservations", src.count())
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrExpired) {
			t.Errorf("got %v", err)
		}
		src.set(func(c *counter) { c.err = nil })
		next(t, b)
		synctest.Wait()
		// The used-up span keeps its place in the ring until the next one takes it,
		// which may be after the fill has ended.
		if got := b.Stats().Remaining; got < 7*10-1 {
			t.Errorf("%d remain after the source came back", got)
		}
	})
}

func TestDiscardGivesUpWholeSpansBelowAKeyAndFillsTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &counter{next: 1}
		b := open(t, eight(src))
		b.StartFill()
		synctest.Wait()
		fill(t, b, 15)
		if lost := b.Discard(41); lost != 25 { // what is left of 11 to 20, and all of 21 to 40
			t.Errorf("%d keys were given up", lost)
		}
		synctest.Wait()
		if s := b.Stats(); s.Issued != 15 || s.Remaining != 80 {
			t.Errorf("%+v", s)
		}
		if lost := b.Discard(41); lost != 0 {
			t.Errorf("%d more keys were given up", lost)
		}
		if id := next(t, b); id != 41 {
			t.Errorf("went on with %d", id)
		}
		src.set(func(c *counter) { c.next = 1000 })
		if lost := b.Discard(1000); lost != 79 {
			t.Errorf("%d keys were given up", lost)
		}
		if id := next(t, b); id != 1000 {
			t.Errorf("went on with %d", id)
		}
	})
}

func TestEveryKeyIsIssuedOrGivenUpOnceWhileCallersDiscardAndFill(t *testing.T) {
	b := open(t, eight(&counter{next: 1}))
	results := make([][]int64, 8)
	var takers, discards sync.WaitGroup
	var done atomic.Bool
	var lost int64
	discards.Go(func() {
		for !done.Load() {
			lost += b.Discard(b.Stats().Issued + lost + 30)
			b.StartFill()
			runtime.Gosched()
		}
	})
	for i := range results {
		takers.Go(func() {
			for len(results[i]) < 20_000 {
				if i%2 == 0 {
					results[i] = append(results[i], next(t, b))
				} else {
					results[i] = append(results[i], fill(t, b, 7)...)
				}
			}
		})
	}
	takers.Wait()
	done.Store(true)
	discards.Wait()
	all := slices.Concat(results...)
	if s := b.Stats(); s.Issued != int64(len(all)) {
		t.Errorf("%d keys were issued, the stats say %+v", len(all), s)
	}
	if id, twice := keygentest.Duplicate(all); twice {
		t.Errorf("%d came twice", id)
	}
	if lost == 0 {
		t.Error("nothing was ever given up, so this tests nothing")
	}
}

func TestFailFastDoesNotWaitButReadyDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := double(&counter{next: 1, delay: time.Second}, 10)
		cfg.FailFast = true
		b := open(t, cfg)
		begin := time.Now()
		if _, err := b.Next(t.Context()); !errors.Is(err, keygen.ErrStarved) || !time.Now().Equal(begin) {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := b.Ready(t.Context()); err != nil || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		next(t, b)
	})
}

func TestReadyEndsWithItsContextOrMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buffer(t, &counter{next: 1, delay: time.Hour}, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, keygen.ErrStarved) {
			t.Errorf("got %v", err)
		}
		begin := time.Now()
		if err := b.Ready(t.Context()); !errors.Is(err, keygen.ErrStarved) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		_ = b.Close()
		if err := b.Ready(t.Context()); !errors.Is(err, keygen.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestASourceThatEndsItsGoroutineIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		src := &counter{next: 1}
		cfg := double(src, 10)
		reserve := cfg.Reserve
		cfg.Reserve = func(ctx context.Context, p spans.Pace) (keygen.Span, error) {
			if !answers.Load() {
				runtime.Goexit()
			}
			return reserve(ctx, p)
		}
		b := open(t, cfg)
		for range 2 {
			if id, err := b.Next(t.Context()); err == nil || id != 0 {
				t.Errorf("%d, %v", id, err)
			}
		}
		answers.Store(true)
		next(t, b)
	})
}

func TestAReservationIsToldHowFastTheSpanBeforeWasUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paces []spans.Pace
		src := &counter{next: 1}
		cfg := double(src, 10)
		cfg.Reserve = func(ctx context.Context, p spans.Pace) (keygen.Span, error) {
			paces = append(paces, p)
			return src.Reserve(ctx, 10)
		}
		b := open(t, cfg)
		for range 20 {
			next(t, b)
			time.Sleep(time.Second)
		}
		src.set(func(c *counter) { c.err = errors.New("down") })
		for range 10 {
			next(t, b)
			time.Sleep(time.Second)
		}
		time.AfterFunc(time.Hour, func() { src.set(func(c *counter) { c.err = nil }) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = b.Next(ctx)
		time.Sleep(2 * time.Hour)
		for range 12 {
			next(t, b)
		}
		synctest.Wait()
		want := spans.Pace{Keys: 10, Took: 10 * time.Second}
		if paces[0] != (spans.Pace{}) || paces[1] != (spans.Pace{}) || paces[2] != want {
			t.Errorf("%v", paces[:3])
		}
		if last := paces[len(paces)-1]; last.Took != 0 && last != want {
			t.Errorf("the outage counts as use: %v", last)
		}
	})
}

func TestAnObserverSeesOneOutageFromItsFirstFailureToTheRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outages, recoveries, refills int
		var lasted time.Duration
		src := &counter{next: 1, err: errors.New("down")}
		cfg := double(src, 10)
		cfg.Observer = spans.Observer{
			Refill:   func(keygen.Span, time.Duration, error) { refills++ },
			Outage:   func(error) { outages++ },
			Recovery: func(d time.Duration) { recoveries++; lasted = d },
		}
		b := open(t, cfg)
		time.AfterFunc(5*time.Second, func() { src.set(func(c *counter) { c.err = nil }) })
		next(t, b)
		synctest.Wait()
		if outages != 1 || recoveries != 1 || lasted < 5*time.Second || lasted > 7*time.Second || refills != src.count() {
			t.Errorf("%d outages, %d recoveries after %v, %d refills for %d calls", outages, recoveries, lasted, refills, src.count())
		}
		src.set(func(c *counter) { c.delay = time.Hour })
		fill(t, b, 9)
		_ = b.Close() // breaks the prefetch off, which is no outage
		if outages != 1 {
			t.Error("Close counts as an outage")
		}
	})
}

func TestTheRateIsAnAverageOverASecondAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := buffer(t, &counter{next: 1}, 1000)
		fill(t, b, 500)
		if now, peak := b.Rate(); now != 0 || peak != 0 {
			t.Errorf("%v, %v within a moment", now, peak)
		}
		time.Sleep(2 * time.Second)
		if now, peak := b.Rate(); now != 250 || peak != 250 {
			t.Errorf("%v, %v", now, peak)
		}
		time.Sleep(10 * time.Second)
		fill(t, b, 100)
		if now, peak := b.Rate(); now != 10 || peak != 250 {
			t.Errorf("%v, %v", now, peak)
		}
	})
}
