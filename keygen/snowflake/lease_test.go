// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// flaky is a ledger that tests break.
type flaky struct {
	workerid.Ledger
	down    atomic.Bool
	why     atomic.Pointer[error] // errDown when nil
	renewed atomic.Int64
}

var errDown = errors.New("connection refused")

// fail makes all calls end with err; nil repairs the ledger.
func (l *flaky) fail(err error) {
	l.why.Store(&err)
	l.down.Store(err != nil)
}

func (l *flaky) error() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return errDown
}

func (l *flaky) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if l.down.Load() {
		return workerid.Entry{}, l.error()
	}
	return l.Ledger.Take(ctx, c)
}

func (l *flaky) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	if l.down.Load() {
		return 0, l.error()
	}
	l.renewed.Add(1)
	return l.Ledger.Renew(ctx, c, e)
}

func leased(t *testing.T, l workerid.Ledger) keygen.Assigner {
	t.Helper()
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func next(t *testing.T, g *snowflake.Generator) keygen.Parts {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Layout().Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformanceWithLeasedWorkers(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		return open(t, snowflake.Config{Worker: leased(t, ledger)})
	})
}

func TestALeaseIsRenewedThreeTimesATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		time.Sleep(10 * time.Minute)
		next(t, g)
		if n := ledger.renewed.Load(); n < 55 || n > 65 {
			t.Errorf("%d renewals in ten minutes with a term of 30 s", n)
		}
		s := g.Stats()
		if left := time.Until(s.LeasedUntil); s.Reservations != ledger.renewed.Load() || s.LastError != nil || left < 19*time.Second || left > 30*time.Second {
			t.Errorf("%v left: %+v", left, s)
		}
	})
}

// slow is a ledger that takes its time.
type slow struct {
	workerid.Ledger
	took time.Duration
}

func (l slow) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	time.Sleep(l.took)
	return l.Ledger.Take(ctx, c)
}

func (l slow) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	time.Sleep(l.took)
	return l.Ledger.Renew(ctx, c, e)
}

func TestStatsTellHowLongTheNewestRenewalTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, slow{keygentest.NewMemoryLedger(time.Now), 70 * time.Millisecond})})
		time.Sleep(time.Minute)
		if s := g.Stats(); s.LastReservation != 70*time.Millisecond || s.Reservations == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestALedgerThatIsDownForLessThanATermIsNotNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		for range 5 {
			ledger.down.Store(true)
			for range 18 { // seconds; a renewal was due up to 10 s before
				next(t, g)
				time.Sleep(time.Second)
			}
			ledger.down.Store(false)
			time.Sleep(15 * time.Second)
		}
		if s := g.Stats(); s.Failures != 0 || s.FailedReserves == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestADayWithoutTheLedgerStarvesCallersInTimeAndEndsWithItsReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		before := next(t, g)
		ledger.down.Store(true)
		time.Sleep(24 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		id, err := g.Next(ctx)
		if id != 0 || !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errDown) {
			t.Errorf("%d, %v", id, err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
		ledger.down.Store(false)
		after := next(t, g)
		if after.Worker != before.Worker || time.Since(after.Time).Abs() > time.Minute {
			t.Errorf("%+v, then %+v", before, after)
		}
	})
}

// nextWithin asks for an id with a context that ends after d.
func nextWithin(t *testing.T, g *snowflake.Generator, d time.Duration) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return g.Next(ctx)
}

func TestALedgerThatNeedsSettingUpIsSaidAtOnceWhenTheLeaseIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		gone := &keygen.SetupError{Err: errors.New("no such table"), Cure: "create it"}
		ledger.fail(gone)
		time.Sleep(15 * time.Second)
		next(t, g) // of what is leased already
		time.Sleep(30 * time.Second)
		begin := time.Now()
		if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, gone) || errors.Is(err, keygen.ErrStarved) {
			t.Errorf("%d, %v", id, err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
		ledger.fail(nil)
		time.Sleep(2 * time.Second)
		next(t, g)
	})
}

// A caller that is already waiting gets the error, too.
func TestAWaitEndsWhenTheLedgerTurnsOutToNeedSettingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		ledger.fail(errDown)
		time.Sleep(time.Minute)
		gone := &keygen.SetupError{Err: errors.New("no such table"), Cure: "create it"}
		time.AfterFunc(3*time.Second, func() { ledger.fail(gone) })
		begin := time.Now()
		if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, gone) {
			t.Errorf("%d, %v", id, err)
		}
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestALedgerWhoseClockWasSetBackIsNamedInTheErrorAndInStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		ledger := keygentest.NewMemoryLedger(func() time.Time { return time.Now().Add(-time.Duration(back.Load())) })
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		back.Store(int64(time.Hour))
		time.Sleep(20 * time.Second)
		next(t, g) // of what is leased already
		if s := g.Stats(); !errors.Is(s.LastError, keygen.ErrClockRollback) || s.FailedReserves == 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(20 * time.Second)
		id, err := nextWithin(t, g, time.Second)
		if id != 0 || !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, keygen.ErrClockRollback) || !strings.Contains(err.Error(), "database's server") {
			t.Errorf("%d, %v", id, err)
		}
		time.Sleep(time.Hour) // it has caught up with the lease, but not with this process
		if p := next(t, g); time.Since(p.Time) < 59*time.Minute {
			t.Errorf("an id of %v, which the ledger has not allowed yet", p.Time)
		}
		if s := g.Stats(); !errors.Is(s.LastError, keygen.ErrClockRollback) || !strings.Contains(s.LastError.Error(), "the clock of this process") {
			t.Errorf("%+v", s)
		}
		back.Store(0)
		time.Sleep(15 * time.Second)
		if p := next(t, g); time.Since(p.Time) > time.Second {
			t.Errorf("an id of %v", p.Time)
		}
		if s := g.Stats(); s.LastError != nil {
			t.Errorf("%+v", s)
		}
	})
}

// The lost server's clock may have been ahead of the new one's by a term, and so
// nothing new is issued for a term.
func TestAfterAFailOverIDsGoOnWithinTheOldLeaseAndThenWithANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := keygentest.NewMemoryLedger(time.Now)
		replica := ledger.Copy()
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		old := next(t, g)
		time.Sleep(5 * time.Second)
		begin := time.Now()
		ledger.FailOver(replica)
		time.Sleep(20 * time.Second) // it has been noticed, and the old lease lasts for 5 s
		if p := next(t, g); time.Since(p.Time) > time.Second || p.Worker != old.Worker {
			t.Errorf("%+v after %+v", p, old)
		}
		if s := g.Stats(); s.LastError == nil {
			t.Error("Stats do not say that the worker id is to be used later")
		}
		time.Sleep(7 * time.Second)
		if id, err := nextWithin(t, g, time.Second); id != 0 || !errors.Is(err, keygen.ErrStarved) || !strings.Contains(err.Error(), "failed over") {
			t.Errorf("%d, %v", id, err)
		}
		time.Sleep(15 * time.Second)
		p := next(t, g)
		if p.Time.Before(begin.Add(2 * 30 * time.Second)) {
			t.Errorf("an id of %v, %v after the fail-over", p.Time, p.Time.Sub(begin))
		}
		if s := g.Stats(); s.LastError != nil || s.Issued != 3 {
			t.Errorf("%+v", s)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A generator that is closed before its new lease begins returns that lease.
func TestCloseHandsBackALeaseThatIsNotOpenYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &recorder{Ledger: keygentest.NewMemoryLedger(time.Now)}
		memory := ledger.Ledger.(*keygentest.MemoryLedger)
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		memory.FailOver(memory.Copy())
		time.Sleep(15 * time.Second)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if end := millennium.At(ledger.end.Load()); time.Until(end) < 30*time.Second {
			t.Errorf("handed back at %v, before which leases may have been lost", end)
		}
	})
}

func TestAWorkerIDThatIsLostIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := keygentest.NewMemoryLedger(time.Now)
		ledger := &flaky{Ledger: memory}
		slow := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
		var ids []int64
		take := func(g *snowflake.Generator) {
			id, err := g.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, id)
		}
		take(slow)
		ledger.down.Store(true) // for this one only
		time.Sleep(40 * time.Second)
		other := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, memory)})
		take(other)
		if slow.Stats().Worker != other.Stats().Worker {
			t.Fatal("the expired worker id was not given again")
		}
		ledger.down.Store(false)
		for range 100 {
			take(slow)
			take(other)
		}
		if slow.Stats().Worker == other.Stats().Worker {
			t.Error("two generators hold one worker id")
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
		if s := slow.Stats(); s.Issued != 101 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseHandsTheWorkerIDBackSoThatTheNextHolderGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := keygentest.NewMemoryLedger(time.Now)
		var ids []int64
		begin := time.Now()
		for range 100 {
			g := open(t, fromTheFirst(snowflake.Config{Layout: millennium, Worker: leased(t, ledger)}))
			batch := make([]int64, 100)
			if err := g.Fill(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, batch...)
		}
		if took := time.Since(begin); took > 500*time.Millisecond {
			t.Errorf("a hundred starts took %v", took)
		}
		if !slices.IsSorted(ids) {
			t.Error("ids of later holders are not above those of earlier ones")
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

func TestNothingIsIssuedAboveWhatCloseHandsBack(t *testing.T) {
	for range 200 {
		ledger := &recorder{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.Config{Worker: leased(t, ledger)})
		var last atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					id, err := g.Next(t.Context())
					if err != nil {
						return
					}
					for old := last.Load(); id > old && !last.CompareAndSwap(old, id); old = last.Load() {
					}
				}
			})
		}
		for last.Load() == 0 {
			runtime.Gosched()
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if tick := last.Load() >> 22; tick >= ledger.end.Load() {
			t.Fatalf("an id of tick %d was issued, and the worker id handed back at %d", tick, ledger.end.Load())
		}
	}
}

type recorder struct {
	workerid.Ledger
	end atomic.Int64
}

func (r *recorder) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	r.end.Store(end)
	return r.Ledger.Return(ctx, c, e, end)
}

func TestBorrowingNeedsALeaseAndIsBounded(t *testing.T) {
	if _, err := snowflake.New(t.Context(), snowflake.Config{Worker: fresh(1), Borrow: time.Second}); err == nil {
		t.Error("a worker id without a ceiling may borrow")
	}
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Borrow: time.Second, Worker: leased(t, keygentest.NewMemoryLedger(time.Now))})
		begin := time.Now()
		ids := make([]int64, 4096*1000)
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) > time.Millisecond {
			t.Errorf("a second's worth of ids took %v", time.Since(begin))
		}
		if err := g.Fill(t.Context(), ids[:4096*100]); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 98*time.Millisecond || took > 102*time.Millisecond {
			t.Errorf("a tenth of a second's worth more took %v", took)
		}
	})
}

func TestGeneIDsCarryTheirBucketAndABusyBucketTakesNothingFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := keygen.Layout{
			Epoch: millennium.Epoch, Unit: time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 6}, {Kind: keygen.Sequence, Bits: 6}, {Kind: keygen.Bucket, Bits: 10}},
		}
		g := open(t, snowflake.Config{Layout: layout, Worker: fresh(3)})
		begin := time.Now()
		var ids, buckets []int64
		for b := range int64(1024) {
			for range 64 {
				buckets = append(buckets, b)
			}
		}
		ids = make([]int64, len(buckets))
		if err := g.FillIn(t.Context(), ids, buckets); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) > 2*time.Millisecond {
			t.Errorf("64 ids of each bucket took %v", time.Since(begin))
		}
		for i, id := range ids {
			if id%1024 != buckets[i] {
				t.Fatalf("%d is not of bucket %d", id, buckets[i])
			}
		}
		plain := make([]int64, 3000)
		if err := g.Fill(t.Context(), plain); err != nil {
			t.Fatal(err)
		}
		if id, twice := keygentest.Duplicate(slices.Concat(ids, plain)); twice {
			t.Errorf("%d came twice", id)
		}
		for _, bucket := range []int64{-1, 1024} {
			if _, err := g.NextIn(t.Context(), bucket); !errors.Is(err, keygen.ErrLayout) {
				t.Errorf("bucket %d: %v", bucket, err)
			}
		}
	})
}

// Next cannot be used for ids that have to carry a slot.
func TestALayoutWithoutABucketFieldSaysWhoNeedsOne(t *testing.T) {
	g, err := snowflake.New(t.Context(), snowflake.Config{Worker: fresh(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	_, err = g.NextIn(t.Context(), 3)
	if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "carries the slot") || strings.Contains(err.Error(), "use Next") {
		t.Errorf("got %v", err)
	}
	if err := g.FillIn(t.Context(), make([]int64, 1), []int64{3}); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("got %v", err)
	}
}
