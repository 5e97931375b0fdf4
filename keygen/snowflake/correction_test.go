// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// stay issues an id each step for a while, and returns them all.
func stay(t *testing.T, g *snowflake.Generator, lasts, step time.Duration) (ids []int64) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(step) {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// A worker id that is given by hand remembers nothing, so that all rests on the
// clock: a generator that stayed ahead of it would repeat its ids at each restart.
func TestAfterAFastClockWasCorrectedARestartRepeatsNothingOnceThatIsAbsorbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const off = 5 * time.Second
		clock := &keygentest.WallClock{}
		clock.Step(off)
		cfg := snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: workerid.Static(1)}, clock.Now)
		g := open(t, cfg)
		ids := stay(t, g, 3*time.Second, 10*time.Millisecond)
		clock.Step(-off)
		ids = append(ids, stay(t, g, off+2*time.Second, 10*time.Millisecond)...)
		if !slices.IsSorted(ids) {
			t.Error("ids went back")
		}
		if s := g.Stats(); s.LastError != nil {
			t.Errorf("%+v", s)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if first := stay(t, open(t, cfg), time.Second, 10*time.Millisecond)[0]; first <= slices.Max(ids) {
			t.Errorf("%d after the restart, %d before", first, slices.Max(ids))
		}
	})
}

// As many ids are wanted as there are: a second's correction is absorbed after
// two, and half of the layout's ids are there meanwhile.
func TestWhileACorrectionIsAbsorbedHalfOfTheIDsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const off = time.Second
		clock := &keygentest.WallClock{}
		clock.Step(off)
		cfg := snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: workerid.Static(1)}, clock.Now)
		g := open(t, cfg)
		next(t, g)
		clock.Step(-off)
		time.Sleep(1001 * time.Millisecond) // the wall clock is looked at
		next(t, g)
		begin := time.Now()
		ids := make([]int64, 10*4096)
		fill := func(ticks int) {
			for range ticks / 10 {
				if err := g.Fill(t.Context(), ids); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(1000) // what the clock was ahead by
		if took := time.Since(begin); took > 10*time.Millisecond {
			t.Errorf("a burst took %v", took)
		}
		fill(400)
		if took := time.Since(begin).Round(10 * time.Millisecond); took < 790*time.Millisecond || took > 810*time.Millisecond {
			t.Errorf("as many ids as there are in 400 ms took %v", took)
		}
		for time.Since(begin) < 2*off {
			fill(10)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if id, err := open(t, cfg).Next(t.Context()); err != nil || id <= ids[len(ids)-1] {
			t.Errorf("%d after %d, %v", id, ids[len(ids)-1], err)
		}
	})
}

func TestAStopBeforeACorrectionIsAbsorbedIsReportedAndRecorded(t *testing.T) {
	dir := t.TempDir()
	for name, worker := range map[string]keygen.Assigner{
		"static":   workerid.Static(1),
		"backup":   workerid.Backup(1, 2),
		"recorded": workerid.Recorded(filepath.Join(dir, "worker"), workerid.Static(1)),
	} {
		synctest.Test(t, func(t *testing.T) {
			clock := &keygentest.WallClock{}
			clock.Step(time.Minute)
			cfg := snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: worker}, clock.Now)
			g, err := snowflake.New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			last := stay(t, g, time.Second, time.Millisecond)
			clock.Step(-time.Minute)
			time.Sleep(10 * time.Second)
			last = append(last, stay(t, g, time.Second, time.Millisecond)...)
			status, closed := g.Stats().LastError, g.Close()
			if name == "recorded" {
				again := stay(t, open(t, cfg), time.Second, time.Millisecond)
				if status != nil || closed != nil || again[0] <= slices.Max(last) {
					t.Errorf("%v, %v; %d after %d", status, closed, again[0], slices.Max(last))
				}
				return
			}
			if !errors.Is(status, keygen.ErrClockRollback) || !errors.Is(closed, keygen.ErrClockRollback) {
				t.Errorf("%s: %v, %v", name, status, closed)
			}
		})
	}
}

// patient is the longest that a caller has to wait.
const patient = 30 * time.Second

// jump lets the clock be wrong for three seconds while ids are wanted all the
// time, and long afterwards. It returns the ids.
func jump(t *testing.T, g *snowflake.Generator, step func(time.Duration), off time.Duration) (ids []int64) {
	t.Helper()
	longest := time.Duration(0)
	want := func(lasts time.Duration) {
		for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(20 * time.Millisecond) {
			asked := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			id, err := g.Next(ctx)
			cancel()
			if err != nil {
				t.Fatalf("a clock that was off by %v: %v", off, err)
			}
			longest = max(longest, time.Since(asked))
			ids = append(ids, id)
		}
	}
	want(2 * time.Second)
	step(off)
	want(3 * time.Second)
	step(-off)
	want(2 * time.Minute)
	t.Logf("off by %v: waited %v at the most", off, longest)
	if p, err := g.Layout().Parse(ids[len(ids)-1]); err != nil || time.Since(p.Time).Abs() > time.Second {
		t.Errorf("after two minutes an id of %v, at %v; %v", p.Time, time.Now(), err)
	}
	if s := g.Stats(); s.LastError != nil {
		t.Errorf("%+v", s)
	}
	if id, twice := keygentest.Duplicate(slices.Clone(ids)); twice {
		t.Errorf("%d came twice", id)
	}
	return ids
}

func TestAClockThatIsWrongForThreeSecondsBlocksNoLeaseholder(t *testing.T) {
	for _, off := range []time.Duration{7 * time.Second, 20 * time.Second, 29 * time.Second, time.Hour, 100 * time.Hour, -20 * time.Second, -time.Hour} {
		for _, switches := range []bool{false, true} {
			for _, ownClock := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					clock := &keygentest.WallClock{}
					ledger := keygentest.NewMemoryLedger(time.Now) // its clock is right
					cfg := snowflake.Config{Layout: millennium, Worker: leased(t, ledger)}
					if switches {
						cfg.Rollback = []snowflake.Policy{snowflake.SwitchWorker(leased(t, ledger))}
					}
					if ownClock {
						cfg.Now = clock.Now
					} else {
						cfg = snowflake.OnWall(cfg, clock.Now)
					}
					ids := jump(t, open(t, cfg), clock.Step, off)
					if !ownClock && !slices.IsSorted(ids) {
						t.Error("ids went back")
					}
				})
			}
		}
	}
}

func TestAClockThatIsWrongAtTheStartBlocksNoLeaseholder(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			clock := &keygentest.WallClock{}
			clock.Step(off)
			g := open(t, snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: leased(t, keygentest.NewMemoryLedger(time.Now))}, clock.Now))
			if off > patient && !errors.Is(g.Stats().LastError, keygen.ErrClockRollback) {
				t.Errorf("%+v", g.Stats())
			}
			stay(t, g, 3*time.Second, 20*time.Millisecond)
			clock.Step(-off)
			jump(t, g, clock.Step, 0)
		})
	}
}

// As long as the clock is wrong, ids have the ledger's time.
func TestAClockThatStaysWrongIsNamedAndIDsHaveTheLedgersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &keygentest.WallClock{}
		ledger := &flaky{Ledger: keygentest.NewMemoryLedger(time.Now)}
		g := open(t, snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: leased(t, ledger)}, clock.Now))
		clock.Step(24 * time.Hour)
		time.Sleep(15 * time.Second)
		for range 100 {
			if p := next(t, g); time.Since(p.Time).Abs() > 10*time.Millisecond {
				t.Fatalf("an id of %v at %v", p.Time, time.Now())
			}
			time.Sleep(time.Second)
		}
		if s := g.Stats(); !errors.Is(s.LastError, keygen.ErrClockRollback) || s.FailedReserves != 0 || s.Waits != 0 {
			t.Errorf("%+v", s)
		}
		if n := ledger.renewed.Load(); n > 14 {
			t.Errorf("%d renewals in less than two minutes", n)
		}
	})
}

// The monotonic clock stands still while a machine sleeps: the ledger is asked
// which time it is.
func TestAMachineThatSleptAsksTheLedgerAndGoesOnInThePresent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &keygentest.WallClock{}
		ledger := keygentest.NewMemoryLedger(clock.Now)
		g := open(t, snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: leased(t, ledger)}, clock.Now))
		next(t, g)
		clock.Step(8 * time.Hour) // for both, while this process's monotonic clock stood still
		time.Sleep(1100 * time.Millisecond)
		next(t, g) // looks at the wall clock
		time.Sleep(100 * time.Millisecond)
		if p := next(t, g); clock.Now().Sub(p.Time).Abs() > 10*time.Millisecond {
			t.Errorf("an id of %v at %v", p.Time, clock.Now())
		}
		if s := g.Stats(); s.LastError != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A rollback that no policy mends is refused only where nothing else says how far
// ids went.
func TestALeaseholderWhoseClockIsBehindGoesOnUpToItsCeiling(t *testing.T) {
	stepped(t, func(t *testing.T, step func(time.Duration), now func() time.Time) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, keygentest.NewMemoryLedger(time.Now)), Now: now, Rollback: []snowflake.Policy{}})
		before := next(t, g)
		step(-time.Hour)
		begin := time.Now()
		ids := make([]int64, 5*4096)
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 10*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if p := next(t, g); p.Worker != before.Worker || p.Time.Before(before.Time) {
			t.Errorf("%+v after %+v", p, before)
		}
		step(time.Hour)
		time.Sleep(time.Minute) // it is renewed, and no longer ahead of the clock
		begin = time.Now()
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 3*time.Millisecond {
			t.Errorf("five milliseconds' worth of ids took %v: ids run ahead of a clock that is right", took)
		}
	})
}
