// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// uid is UidGenerator's layout with another epoch, one that lies before the
// first moment of a synctest bubble, 2000-01-01.
func uid() keygen.Layout {
	return keygen.Layout{
		Epoch:  time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:   time.Second,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 31}, {Kind: keygen.Worker, Bits: 19}, {Kind: keygen.Sequence, Bits: 13}},
	}
}

const (
	perTick  = 8192
	capacity = perTick << 3
)

// fresh gives a worker id that nobody had before.
type fresh int64

func (f fresh) Acquire(context.Context, keygen.Layout) (keygen.Lease, error) { return f, nil }
func (f fresh) ID() int64                                                    { return int64(f) }
func (f fresh) NotBefore() int64                                             { return 0 }

// unknown gives leases that have an end and no beginning.
type unknown struct{ keygen.Assigner }

func (u unknown) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	lease, err := u.Assigner.Acquire(ctx, l)
	if err != nil {
		return nil, err
	}
	return endOnly{lease.(keygen.Window)}, nil
}

type endOnly struct{ keygen.Window }

func (endOnly) NotBefore() int64 { return keygen.UnknownHistory }

// startAt is a clock that runs from a moment on.
func startAt(at time.Time) func() time.Time {
	began := time.Now()
	return func() time.Time { return at.Add(time.Since(began)) }
}

// fromTheFirst lets sequences start with 0 where a test counts ids.
func fromTheFirst(int64) int64 { return 0 }

func open(t testing.TB, cfg cached.Config) *cached.Generator {
	t.Helper()
	if cfg.Layout.Fields == nil {
		cfg.Layout = uid()
	}
	if cfg.Worker == nil {
		cfg.Worker = fresh(1)
	}
	g, err := cached.New(t.Context(), cached.Drawing(cfg, fromTheFirst))
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

func take(t testing.TB, g *cached.Generator, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	if err := g.Fill(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func parse(t testing.TB, g *cached.Generator, id int64) keygen.Parts {
	t.Helper()
	p, err := g.Layout().Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConformance(t *testing.T) {
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, layout := range map[string]keygen.Layout{
		"UidGenerator's": uid(),
		"Twitter's":      keygen.Twitter(),
		"Sony's":         {Epoch: epoch, Unit: time.Millisecond, Fields: []keygen.Field{{Kind: keygen.Time, Bits: 39}, {Kind: keygen.Sequence, Bits: 8}, {Kind: keygen.Worker, Bits: 16}}},
	} {
		t.Run(name, func(t *testing.T) {
			var workers atomic.Int64
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
				return open(t, cached.Config{Layout: layout, Worker: fresh(workers.Add(1))})
			})
		})
	}
}

func TestAnIDOfUidGeneratorsTestsIsReproduced(t *testing.T) {
	g := open(t, cached.Config{
		Layout: keygen.Baidu(), Worker: fresh(21),
		Now: startAt(time.Date(2019, 5, 2, 23, 26, 39, 0, time.FixedZone("", 8*3600))),
	})
	if ids := take(t, g, 2); ids[1] != 3200169789968523265 {
		t.Errorf("%v", ids)
	}
}

func TestIDsAreThoseOfTheLayoutInOrder(t *testing.T) {
	for _, fields := range [][]keygen.Field{
		{{Kind: keygen.Time, Bits: 34}, {Kind: keygen.Worker, Bits: 4}, {Kind: keygen.Sequence, Bits: 3}},
		{{Kind: keygen.Time, Bits: 34}, {Kind: keygen.Sequence, Bits: 3}, {Kind: keygen.Worker, Bits: 4}},
		{{Kind: keygen.Time, Bits: 34}, {Kind: keygen.Datacenter, Bits: 2}, {Kind: keygen.Sequence, Bits: 3}, {Kind: keygen.Worker, Bits: 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := keygen.Layout{Epoch: uid().Epoch, Unit: time.Second, Fields: fields}
			g := open(t, cached.Config{Layout: l, Worker: fresh(11)})
			start := time.Now().UTC()
			for i, id := range take(t, g, 64) {
				want := keygen.Parts{Time: start.Add(time.Duration(i/8) * time.Second), Sequence: int64(i % 8)}
				l.SplitWorker(&want, 11)
				if got := parse(t, g, id); got != want {
					t.Fatalf("id %d is %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

func TestNewRefusesConfigsWhoseIDsCouldRepeatOrNotRise(t *testing.T) {
	with := func(change func(*cached.Config)) cached.Config {
		cfg := cached.Config{Layout: uid(), Worker: fresh(1)}
		change(&cfg)
		return cfg
	}
	fields := func(f ...keygen.Field) func(*cached.Config) {
		return func(c *cached.Config) { c.Layout.Fields = f }
	}
	for name, cfg := range map[string]cached.Config{
		"no layout":            with(func(c *cached.Config) { c.Layout = keygen.Layout{} }),
		"no worker":            with(func(c *cached.Config) { c.Worker = nil }),
		"nil pointer":          with(func(c *cached.Config) { c.Worker = (*workerid.Leased)(nil) }),
		"static worker id":     with(func(c *cached.Config) { c.Worker = workerid.Static(1) }),
		"window of no history": with(func(c *cached.Config) { c.Worker = unknown{leased(t, time.Now, time.Minute)} }),
		"worker id too large":  with(func(c *cached.Config) { c.Worker = fresh(1 << 19) }),
		"BoostPower":           with(func(c *cached.Config) { c.BoostPower = 17 }),
		"negative BoostPower":  with(func(c *cached.Config) { c.BoostPower = -1 }),
		"ring above a day":     with(func(c *cached.Config) { c.Layout.Unit = time.Minute; c.BoostPower = 11 }),
		"PaddingFactor":        with(func(c *cached.Config) { c.PaddingFactor = 100 }),
		"ScheduleInterval":     with(func(c *cached.Config) { c.ScheduleInterval = -1 }),
		"RejectedTake":         with(func(c *cached.Config) { c.RejectedTake = 2 }),
		"worker above time":    with(fields(keygen.Field{Kind: keygen.Worker, Bits: 5}, keygen.Field{Kind: keygen.Time, Bits: 40}, keygen.Field{Kind: keygen.Sequence, Bits: 12})),
		"sequence above time":  with(fields(keygen.Field{Kind: keygen.Sequence, Bits: 12}, keygen.Field{Kind: keygen.Time, Bits: 40}, keygen.Field{Kind: keygen.Worker, Bits: 5})),
		"gene bits":            with(fields(keygen.Field{Kind: keygen.Time, Bits: 40}, keygen.Field{Kind: keygen.Worker, Bits: 5}, keygen.Field{Kind: keygen.Sequence, Bits: 9}, keygen.Field{Kind: keygen.Bucket, Bits: 5})),
		"no worker field":      with(fields(keygen.Field{Kind: keygen.Time, Bits: 40}, keygen.Field{Kind: keygen.Sequence, Bits: 12})),
		"expired":              with(func(c *cached.Config) { c.Layout = keygen.Baidu() }),
		"epoch in the future":  with(func(c *cached.Config) { c.Layout.Epoch = time.Now().Add(time.Hour) }),
		"term below the rings": with(func(c *cached.Config) { c.Worker = leased(t, time.Now, 20*time.Second) }),
	} {
		g, err := cached.New(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s was accepted", name)
			_ = g.Close()
			continue
		}
		t.Logf("%s: %v", name, err)
	}
	if _, err := cached.New(t.Context(), cached.Config{Layout: keygen.Baidu(), Worker: fresh(1)}); !errors.Is(err, keygen.ErrExpired) {
		t.Errorf("UidGenerator's expired layout: %v", err)
	}
}

func TestTheRingIsFullAtFirstAndFilledBelowTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{})
		want := cached.Ring{Capacity: capacity, Threshold: capacity / 2, Tail: capacity, Ahead: 7 * time.Second}
		if got := g.Ring(); got != want {
			t.Errorf("at first %+v, want %+v", got, want)
		}
		take(t, g, capacity/2)
		time.Sleep(6 * time.Second)
		want.Cursor, want.Ahead = capacity/2, time.Second
		if got := g.Ring(); got != want {
			t.Errorf("at the threshold %+v, want %+v", got, want)
		}
		take(t, g, 1)
		synctest.Wait()
		want.Cursor++
		want.Tail += 4 * perTick // the other four places are still in use
		want.Ahead += 4 * time.Second
		if got := g.Ring(); got != want {
			t.Errorf("below the threshold %+v, want %+v", got, want)
		}
	})
}

func TestPaddingFactorAndBoostPowerSetTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{BoostPower: 5, PaddingFactor: 10})
		r := g.Ring()
		if r.Capacity != perTick<<5 || r.Threshold != perTick<<5/10 {
			t.Errorf("%+v", r)
		}
		take(t, g, int(r.Capacity-r.Threshold))
		synctest.Wait()
		if got := g.Ring().Tail; got != r.Tail {
			t.Errorf("filled above the threshold, to %d", got)
		}
		time.Sleep(20 * time.Second)
		take(t, g, 1)
		synctest.Wait()
		if got := g.Ring().Tail; got <= r.Tail {
			t.Errorf("not filled below the threshold: %d", got)
		}
	})
}

func TestTheScheduledFillFillsTheRingAndIsCountedWhenTheRingIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{ScheduleInterval: 3 * time.Second})
		time.Sleep(7 * time.Second)
		if r := g.Ring(); r.RejectedPuts != 2 || r.Tail != capacity {
			t.Errorf("%+v", r)
		}
		take(t, g, perTick+1) // far above the threshold
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if r := g.Ring(); r.RejectedPuts != 2 || r.Tail <= capacity || r.Tail > capacity+perTick {
			t.Errorf("%+v", r)
		}
	})
}

func TestAnEmptyRingWaitsForTheClockAndIDsStayWithinTheRingsLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{})
		begin := time.Now()
		ids := make([]int64, 0, 3*capacity)
		for len(ids) < 3*capacity {
			ids = append(ids, take(t, g, 1000)...)
			if ahead := time.Until(parse(t, g, ids[len(ids)-1]).Time); ahead > 8*time.Second {
				t.Fatalf("an id is %v ahead of the clock", ahead)
			}
		}
		if took := time.Since(begin); took < 15*time.Second || took > 17*time.Second {
			t.Errorf("three rings took %v; two of them have to wait for 8 s each", took)
		}
		if r, s := g.Ring(), g.Stats(); r.RejectedTakes == 0 || s.Waits != r.RejectedTakes || s.Failures != 0 {
			t.Errorf("%+v, %+v", r, s)
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

func TestAWaitEndsWithItsContextAndTheErrorNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{})
		take(t, g, capacity)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if id, err := g.Next(ctx); !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) || id != 0 {
			t.Errorf("%d, %v", id, err)
		}
	})
}

func TestFailRejectsATakeFromAnEmptyRingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Config{RejectedTake: cached.Fail})
		take(t, g, capacity)
		begin := time.Now()
		for range 5 {
			if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrStarved) || id != 0 {
				t.Errorf("%d, %v", id, err)
			}
		}
		if r, s := g.Ring(), g.Stats(); !time.Now().Equal(begin) || r.RejectedTakes != 5 || s.Failures != 5 || s.Waits != 0 {
			t.Errorf("after %v %+v, %+v", time.Since(begin), r, s)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		take(t, g, perTick) // filled meanwhile
	})
}

// UidGenerator's take hands one id to two callers when the ring runs dry (#105).
func TestNoIDIsIssuedTwiceWhenTheRingIsEmpty(t *testing.T) {
	l := uid()
	l.Unit, l.Fields = time.Millisecond, []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 5}}
	g := open(t, cached.Config{Layout: l, BoostPower: 1})
	results := make([][]int64, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			for range 1000 {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = append(results[i], id)
			}
		})
	}
	wg.Wait()
	if id, twice := keygentest.Duplicate(slices.Concat(results...)); twice {
		t.Errorf("%d came twice", id)
	}
	if r := g.Ring(); r.RejectedTakes == 0 {
		t.Error("the ring never ran dry, so this tested nothing")
	}
}

// UidGenerator's ring goes on issuing what it was filled with hours ago (#8 #89).
func TestAnIdleOrSlowServiceIssuesNoIDsWithOldTimes(t *testing.T) {
	for _, pause := range []time.Duration{7 * time.Second, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			g := open(t, cached.Config{})
			var last int64
			for range 15 {
				time.Sleep(pause)
				id := take(t, g, 1)[0]
				if old := time.Since(parse(t, g, id).Time); old > 16*time.Second || id <= last {
					t.Fatalf("%d came after %d and is %v old", id, last, old)
				}
				last = id
			}
			if r := g.Ring(); r.Discarded == 0 || r.Tail-r.Cursor > capacity {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestARingOfMillisecondsIsCheckedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := uid()
		l.Unit, l.Fields = time.Millisecond, []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 12}}
		g := open(t, cached.Config{Layout: l})
		time.Sleep(time.Hour)
		if s := g.Stats(); s.Reservations > 3600*8 {
			t.Errorf("%+v", s)
		}
		if old := time.Since(parse(t, g, take(t, g, 1)[0]).Time); old > 2*time.Second {
			t.Errorf("%v old", old)
		}
	})
}

func TestAnEndOfTheTimeFieldIsAnErrorAndNeverANegativeID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := uid()
		l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 25}, {Kind: keygen.Worker, Bits: 24}, {Kind: keygen.Sequence, Bits: 14}} // 63 bits
		l.Epoch = time.Now().Add(25 * time.Hour).Add(-time.Second << 25)
		g := open(t, cached.Config{Layout: l})
		time.Sleep(25*time.Hour - 3*time.Second)
		var last int64
		for {
			id, err := g.Next(t.Context())
			if err != nil {
				if !errors.Is(err, keygen.ErrExpired) || id != 0 {
					t.Errorf("%d, %v", id, err)
				}
				break
			}
			if id <= last {
				t.Fatalf("%d came after %d", id, last)
			}
			last = id
		}
		if last>>14<<14 != math.MaxInt64>>38<<38|1<<14 {
			t.Errorf("the last id is %d", last)
		}
	})
}

func TestAClockSetFarBackIsReportedAndCallersWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock keygentest.WallClock
		g := open(t, cached.Config{Now: clock.Now})
		ids := take(t, g, capacity/2)
		clock.Set(-time.Minute)
		ids = append(ids, take(t, g, capacity/2)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Next(ctx); !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		ids = append(ids, take(t, g, capacity)...)
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

// UidGenerator stops filling for ever when a reject handler throws.
func TestAnObserverThatEndsItsGoroutineStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		g := open(t, cached.Config{Observer: cached.Observer{
			Refill: func(keygen.Span, time.Duration, error) {
				if broken.Load() {
					runtime.Goexit()
				}
			},
		}})
		broken.Store(true)
		take(t, g, capacity)
		for range 3 {
			if id, err := g.Next(t.Context()); err == nil || id != 0 {
				t.Errorf("%d, %v", id, err)
			}
		}
		broken.Store(false)
		take(t, g, capacity)
	})
}
