// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// flaky is a ledger that can be down.
type flaky struct {
	workerid.Ledger
	down atomic.Bool
}

var errDown = errors.New("connection refused")

func (f *flaky) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if f.down.Load() {
		return workerid.Entry{}, errDown
	}
	return f.Ledger.Take(ctx, c)
}

func (f *flaky) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	if f.down.Load() {
		return 0, errDown
	}
	return f.Ledger.Renew(ctx, c, e)
}

func (f *flaky) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	if f.down.Load() {
		return errDown
	}
	return f.Ledger.Return(ctx, c, e, end)
}

func newFlaky(now func() time.Time) *flaky {
	return &flaky{Ledger: keygentest.NewMemoryLedger(now)}
}

func leased(t testing.TB, now func() time.Time, term time.Duration) keygen.Assigner {
	t.Helper()
	return leasedFrom(t, newFlaky(now), term)
}

func leasedFrom(t testing.TB, l workerid.Ledger, term time.Duration) keygen.Assigner {
	t.Helper()
	w, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "test", Term: term})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const term = 30 * time.Second

func TestALeaseIsRenewedWhileTheServiceIsIdleAndBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{Worker: leased(t, time.Now, term)})
		for range 10 {
			time.Sleep(time.Hour)
			for range 100 {
				take(t, g, 1000)
				time.Sleep(time.Second)
			}
		}
		s := g.Stats()
		if left := time.Until(s.LeasedUntil); s.Failures != 0 || s.Worker != 0 || s.LastError != nil || left < 19*time.Second || left > term {
			t.Errorf("%v left: %+v", left, s)
		}
	})
}

func TestNoIDIsMadeAtOrAboveTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := newFlaky(time.Now)
		g := open(t, cached.Config{Worker: leasedFrom(t, ledger, term)})
		ceiling := time.Now().Add(term)
		ledger.down.Store(true)
		var last int64
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			id, err := g.Next(ctx)
			cancel()
			if err != nil {
				if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, errDown) {
					t.Errorf("%v", err)
				}
				break
			}
			last = id
		}
		if end := parse(t, g, last).Time.Add(time.Second); !end.Equal(ceiling) {
			t.Errorf("the last id was made for the tick up to %v, the ceiling is %v", end, ceiling)
		}
		if s := g.Stats(); !errors.Is(s.LastError, errDown) {
			t.Errorf("%+v", s)
		}
		ledger.down.Store(false)
		if id := take(t, g, 1)[0]; id <= last {
			t.Errorf("%d came after %d", id, last)
		}
	})
}

func TestALostWorkerIDIsReplacedAndIDsGoOnRising(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := newFlaky(time.Now)
		g := open(t, cached.Config{Worker: leasedFrom(t, ledger, term)})
		ids := take(t, g, 1000)
		ledger.down.Store(true)
		time.Sleep(2 * term)
		ledger.down.Store(false)
		other := open(t, cached.Config{Worker: leasedFrom(t, ledger, term)}) // takes worker id 0, which has expired
		if s := other.Stats(); s.Worker != 0 {
			t.Fatalf("the other process got %d", s.Worker)
		}
		for range 200 {
			ids = append(ids, take(t, g, 1000)...)
			ids = append(ids, take(t, other, 1000)...)
			time.Sleep(500 * time.Millisecond)
		}
		if s := g.Stats(); s.Worker != 1 || s.LastError != nil {
			t.Errorf("%+v", s)
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

func TestALedgerWhoseClockWasSetBackIsNamedInTheErrorAndInStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		g := open(t, cached.Config{Worker: leased(t, func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }, term)})
		back.Store(int64(time.Hour))
		time.Sleep(time.Minute)
		var err error
		for err == nil { // the ids in the ring come first
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err = g.Next(ctx)
			cancel()
		}
		if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, keygen.ErrClockRollback) || !errors.Is(g.Stats().LastError, keygen.ErrClockRollback) {
			t.Errorf("%v, then %v", err, g.Stats().LastError)
		}
		time.Sleep(time.Hour) // the ledger has caught up with the lease, but not with this process
		if p := parse(t, g, take(t, g, 1)[0]); time.Since(p.Time) < 59*time.Minute {
			t.Errorf("an id of %v, which the ledger has not allowed yet", p.Time)
		}
		if err := g.Stats().LastError; !errors.Is(err, keygen.ErrClockRollback) || !strings.Contains(err.Error(), "the clock of this process") {
			t.Errorf("%v", err)
		}
		back.Store(0)
		time.Sleep(time.Minute)
		if p := parse(t, g, take(t, g, 1)[0]); time.Since(p.Time) > 20*time.Second || g.Stats().LastError != nil {
			t.Errorf("an id of %v, %v", p.Time, g.Stats().LastError)
		}
	})
}

// The lost server's clock may have been ahead of the new one's by a term, and so
// nothing new is made for a term.
func TestAfterAFailOverIDsAreMadeOfTheOldLeaseAndThenOfANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := keygentest.NewMemoryLedger(time.Now)
		replica := memory.Copy()
		worker := leasedFrom(t, memory, term)
		g := open(t, cached.Config{Worker: worker})
		old := take(t, g, 1)[0]
		time.Sleep(5 * time.Second)
		begin := time.Now()
		memory.FailOver(replica)
		time.Sleep(20 * time.Second) // the generator has noticed it, and the old lease lasts for another 5 s
		ids := take(t, g, perTick)
		if p := parse(t, g, ids[0]); p.Worker != parse(t, g, old).Worker || time.Since(p.Time) > 10*time.Second {
			t.Errorf("%+v", p)
		}
		time.Sleep(20 * time.Second)
		var p keygen.Parts
		for range 20 * perTick {
			if p = parse(t, g, take(t, g, 1)[0]); p.Time.After(begin.Add(50 * time.Second)) {
				break
			}
		}
		if p.Time.Before(begin.Add(2 * term)) {
			t.Errorf("an id of %v, %v after the fail-over", p.Time, p.Time.Sub(begin))
		}
	})
}

func TestARestartNeverRepeatsIDsThatWereMadeAhead(t *testing.T) {
	for _, closes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ledger := newFlaky(time.Now)
			var ids []int64
			workers := map[int64]bool{}
			for range 50 {
				g := open(t, cached.Config{Worker: leasedFrom(t, ledger, term)})
				ids = append(ids, take(t, g, capacity)...)
				workers[g.Stats().Worker] = true
				if closes { // else its lease ends by itself, as a killed one's does
					if err := g.Close(); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(5 * time.Second)
			}
			if closes && len(workers) == 50 {
				t.Error("no worker id was used again, so this tests nothing")
			}
			if id, twice := keygentest.Duplicate(ids); twice {
				t.Errorf("closes=%v: %d came twice", closes, id)
			}
		})
	}
}

func TestALedgerWhoseClockIsAheadIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{Worker: leased(t, func() time.Time { return time.Now().Add(time.Hour) }, term)})
		begin := time.Now()
		id := take(t, g, capacity)[0]
		if ahead := parse(t, g, id).Time.Sub(begin); ahead != time.Hour || !time.Now().Equal(begin) {
			t.Errorf("%v ahead, after %v", ahead, time.Since(begin))
		}
		time.Sleep(10 * time.Minute)
		take(t, g, capacity)
		if s := g.Stats(); s.Failures != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseReturnsAnErrorWhenTheWorkerIDCannotBeReleased(t *testing.T) {
	ledger := newFlaky(time.Now)
	g, err := cached.New(t.Context(), cached.Config{Layout: uid(), Worker: leasedFrom(t, ledger, term)})
	if err != nil {
		t.Fatal(err)
	}
	ledger.down.Store(true)
	for range 2 {
		if err := g.Close(); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
	}
}

// unanswered is an assigner whose database does not answer.
type unanswered struct{}

func (unanswered) Acquire(ctx context.Context, _ keygen.Layout) (keygen.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAStartEndsWhenNobodyAnswersThoughItsContextDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := cached.New(context.Background(), cached.Config{Layout: uid(), Worker: unanswered{}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1m0s") || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
