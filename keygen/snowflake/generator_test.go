// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// handClock is a clock that tests move.
type handClock struct{ nanos atomic.Int64 }

func newHandClock(at time.Time) *handClock {
	c := &handClock{}
	c.nanos.Store(at.UnixNano())
	return c
}

func (c *handClock) Now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *handClock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

// fresh gives a worker id that nobody had before.
type fresh int64

func (f fresh) Acquire(context.Context, keygen.Layout) (keygen.Lease, error) { return f, nil }
func (f fresh) ID() int64                                                    { return int64(f) }
func (f fresh) NotBefore() int64                                             { return 0 }

// fromTheFirst is cfg with sequences that start with 0, not at random.
func fromTheFirst(cfg snowflake.Config) snowflake.Config {
	return snowflake.Drawing(cfg, func(int64) int64 { return 0 })
}

// millennium is Twitter's layout for the virtual clock, which starts in 2000.
var millennium = func() keygen.Layout {
	l := keygen.Twitter()
	l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}()

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestAnIDHoldsTheTimeWorkerAndSequenceItWasMadeWith(t *testing.T) {
	clock := newHandClock(noon)
	g := open(t, fromTheFirst(snowflake.Config{Worker: fresh(21<<5 | 7), Now: clock.Now}))
	for want := range int64(3) {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parts, err := g.Layout().Parse(id)
		if err != nil {
			t.Fatal(err)
		}
		if parts.Datacenter != 21 || parts.Worker != 7 || parts.Sequence != want || parts.Time.Sub(noon).Abs() > 2*time.Millisecond {
			t.Errorf("%d holds %+v", id, parts)
		}
	}
}

func TestTheSequenceIsNotResetByANewTick(t *testing.T) {
	clock := newHandClock(noon)
	g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now})
	hit := map[int64]int{}
	for range 1500 {
		clock.Advance(1500 * time.Microsecond)
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hit[id%128]++
	}
	if len(hit) != 128 {
		t.Errorf("one id per 1.5 ms falls on %d of 128 residues, want all", len(hit))
	}
	for r, n := range hit {
		if n < 11 || n > 12 {
			t.Errorf("residue %d was hit %d times of 1500/128", r, n)
		}
	}
}

func TestAUsedUpTickCarriesIntoTheNextAndThenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: workerid.Static(1)})
		ids := make([]int64, 50_000)
		begin := time.Now()
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		took := time.Since(begin)
		if !slices.IsSorted(ids) {
			t.Error("ids do not rise")
		}
		if id, twice := keygentest.Duplicate(ids); twice {
			t.Errorf("%d came twice", id)
		}
		// 4096 a millisecond, of which up to two ticks' worth were free at once.
		if least := 10 * time.Millisecond; took < least || took > 13*time.Millisecond {
			t.Errorf("50,000 ids of 4096 a millisecond took %v on the virtual clock", took)
		}
		last, err := g.Layout().Parse(ids[len(ids)-1])
		if err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(last.Time); ahead > time.Millisecond {
			t.Errorf("the last id is %v ahead of the clock", ahead)
		}
	})
}

func TestAStaticWorkerWaitsOutTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := snowflake.Config{Layout: millennium, Worker: workerid.Static(1)}
		var all []int64
		for range 5 { // each run issues all it can, and stops
			g := open(t, cfg)
			ids := make([]int64, 8192)
			if err := g.Fill(t.Context(), ids); err != nil {
				t.Fatal(err)
			}
			_ = g.Close()
			all = append(all, ids...)
		}
		if !slices.IsSorted(all) {
			t.Error("a restart went back")
		}
		if id, twice := keygentest.Duplicate(all); twice {
			t.Errorf("%d came twice", id)
		}
	})
}

func TestIDsGoOnRisingWhenTheClockIsSetBack(t *testing.T) {
	clock := newHandClock(noon)
	g := open(t, fromTheFirst(snowflake.Config{Worker: fresh(1), Now: clock.Now}))
	var last int64
	for i := range 4000 { // 4000 ids do not use up a tick
		if i == 2000 {
			clock.Advance(-time.Microsecond * 900)
		}
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

func TestAClockFarBehindTheLastIDIsRefused(t *testing.T) {
	clock := newHandClock(noon)
	g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now})
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(-time.Hour)
	if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) || id != 0 {
		t.Errorf("got %d, %v; want ErrClockRollback", id, err)
	}
	if err := g.Fill(t.Context(), make([]int64, 2)); !errors.Is(err, keygen.ErrClockRollback) {
		t.Errorf("Fill: %v; want ErrClockRollback", err)
	}
	if s := g.Stats(); s.Issued != 1 || s.Failures != 2 {
		t.Errorf("stats %+v, want 1 issued and 2 failures", s)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newHandClock(noon)
		g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		err := g.Fill(ctx, make([]int64, 20_000)) // the clock stands still
		if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("the wait took %v", took)
		}
	})
}

func TestCloseEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newHandClock(noon)
		g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now})
		failed := make(chan error)
		go func() { failed <- g.Fill(context.Background(), make([]int64, 20_000)) }()
		synctest.Wait()
		_ = g.Close()
		if err := <-failed; !errors.Is(err, keygen.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

func TestALayoutThatHasExpiredOrIsAboutToIsRefusedAtTheStart(t *testing.T) {
	if _, err := snowflake.New(t.Context(), snowflake.Config{Layout: keygen.Baidu(), Worker: fresh(1)}); !errors.Is(err, keygen.ErrExpired) {
		t.Errorf("UidGenerator's expired default: %v", err)
	}
	clock := newHandClock(keygen.Twitter().Expires().Add(-time.Hour))
	if _, err := snowflake.New(t.Context(), snowflake.Config{Worker: fresh(1), Now: clock.Now}); !errors.Is(err, keygen.ErrExpired) {
		t.Errorf("an hour before the end: %v", err)
	}
}

func TestALayoutThatExpiresWhileInUseIsAnErrorAndNeverANegativeID(t *testing.T) {
	clock := newHandClock(keygen.Twitter().Expires().Add(-48 * time.Hour))
	g := open(t, fromTheFirst(snowflake.Config{Worker: fresh(1), Now: clock.Now}))
	clock.Advance(48*time.Hour - time.Millisecond) // the last tick
	ids := make([]int64, 10_000)
	if err := g.Fill(t.Context(), ids[:4000]); err != nil {
		t.Fatal(err)
	}
	if err := g.Fill(t.Context(), ids); !errors.Is(err, keygen.ErrExpired) {
		t.Errorf("past the last tick: %v", err)
	}
	for _, d := range []time.Duration{time.Millisecond, time.Hour, math.MaxInt64 / 4} {
		clock.Advance(d)
		if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrExpired) || id != 0 {
			t.Errorf("%v past the end: %d, %v", d, id, err)
		}
		if err := g.Fill(t.Context(), ids); !errors.Is(err, keygen.ErrExpired) {
			t.Errorf("Fill %v past the end: %v", d, err)
		}
	}
}

func TestSettingsThatAreUnsafeToForgetAreRequired(t *testing.T) {
	if _, err := snowflake.New(t.Context(), snowflake.Config{}); err == nil {
		t.Error("a nil Worker was accepted")
	}
	if _, err := snowflake.New(t.Context(), snowflake.Config{Worker: (*workerid.Leased)(nil)}); err == nil {
		t.Error("a Worker that is a nil pointer was accepted")
	}
	for name, p := range map[string]snowflake.Policy{
		"a nil policy": nil, "a switch to nothing": snowflake.SwitchWorker(nil), "a switch to a nil pointer": snowflake.SwitchWorker((*workerid.Leased)(nil)),
	} {
		cfg := snowflake.Config{Worker: fresh(1), Rollback: []snowflake.Policy{snowflake.Wait(time.Second), p}}
		if _, err := snowflake.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Rollback[1]") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []int64{-1, 1024} {
		if _, err := snowflake.New(t.Context(), snowflake.Config{Worker: fresh(id)}); !errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("worker %d: %v", id, err)
		}
	}
	for name, fields := range map[string][]keygen.Field{
		"no worker": {{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Sequence, Bits: 12}},
		"no time":   {{Kind: keygen.Worker, Bits: 41}, {Kind: keygen.Sequence, Bits: 12}},
		"too wide":  {{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 11}, {Kind: keygen.Sequence, Bits: 12}},
	} {
		l := keygen.Layout{Epoch: noon.AddDate(-1, 0, 0), Unit: time.Millisecond, Fields: fields}
		if _, err := snowflake.New(t.Context(), snowflake.Config{Layout: l, Worker: fresh(1)}); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAClockBeforeTheEpochIsRefused(t *testing.T) {
	clock := newHandClock(time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC))
	if _, err := snowflake.New(t.Context(), snowflake.Config{Worker: fresh(1), Now: clock.Now}); !errors.Is(err, keygen.ErrClockRollback) {
		t.Errorf("got %v", err)
	}
}

func TestStatsCountWhatWasIssued(t *testing.T) {
	g := open(t, snowflake.Config{Worker: workerid.Static(5)})
	for range 100 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Fill(t.Context(), make([]int64, 5000)); err != nil {
		t.Fatal(err)
	}
	if s := g.Stats(); s.Issued != 5100 || s.Worker != 5 || !s.Expires.Equal(keygen.Twitter().Expires()) {
		t.Errorf("%+v", s)
	}
	_ = g.Close()
	if s := g.Stats(); s.Issued != 5100 {
		t.Errorf("after Close: %+v", s)
	}
}
