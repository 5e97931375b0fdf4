package snowflake_test

import (
	"context"
	"errors"
	"slices"
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
	renewed atomic.Int64
}

var errDown = errors.New("connection refused")

func (l *flaky) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if l.down.Load() {
		return workerid.Entry{}, errDown
	}
	return l.Ledger.Take(ctx, c)
}

func (l *flaky) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	if l.down.Load() {
		return 0, errDown
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
		if s := g.Stats(); s.Reservations != ledger.renewed.Load() || s.LastError != nil {
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
			g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, ledger)})
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
