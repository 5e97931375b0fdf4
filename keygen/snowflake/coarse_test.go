// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// madeAt returns the time in the next id.
func madeAt(t *testing.T, g *snowflake.Generator) time.Time {
	t.Helper()
	return next(t, g).Time
}

func TestACoarseClockKeepsTheTickWhileIDsAreDrawnAndSleepsWhenTheyAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: fresh(1), Coarse: true})
		for range 3 {
			for range 200 {
				if late := time.Since(madeAt(t, g)); late < -2*time.Millisecond || late > 3*time.Millisecond {
					t.Fatalf("an id is %v old", late)
				}
				time.Sleep(700 * time.Microsecond)
			}
			if snowflake.Asleep(g) {
				t.Error("it sleeps while ids are drawn")
			}
			time.Sleep(time.Hour)
			if !snowflake.Asleep(g) {
				t.Error("it is awake after an hour without ids")
			}
		}
	})
}

// An id now and then, longer apart than the keeper stays awake.
func TestIDsOfACoarseClockThatAreRareHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: fresh(1), Coarse: true})
		for i := range 300 {
			if late := time.Since(madeAt(t, g)); late < -2*time.Millisecond || late > 2*time.Millisecond {
				t.Fatalf("an id is %v old", late)
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
	})
}

// The goroutine that updates the tick is stopped for seconds, as when it gets no processor.
// Leases end meanwhile, and worker ids pass to other generators.
func TestIDsOfACoarseClockAreUniqueAndRiseWhileItsGoroutineStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layout := millennium
		layout.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 1}, {Kind: keygen.Sequence, Bits: 6}}
		ledger := keygentest.NewMemoryLedger(time.Now)
		var mu sync.Mutex
		var all []int64
		oldest := time.Duration(0)
		draw := func(g *snowflake.Generator, pause time.Duration, n int) {
			var last int64
			for range n {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				parts, err := layout.Parse(id)
				mu.Lock()
				all = append(all, id)
				oldest = max(oldest, time.Since(parts.Time))
				mu.Unlock()
				if id <= last || err != nil {
					t.Errorf("%d after %d, %v", id, last, err)
				}
				last = id
				time.Sleep(pause)
			}
		}
		for range 6 { // one after the other, so that worker ids are used again
			assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "shop", Term: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			awaitTestSignal := make(chan struct{})
			g, err := snowflake.New(t.Context(), snowflake.Frozen(snowflake.Config{Layout: layout, Worker: assigner, Coarse: true}, awaitTestSignal))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { draw(g, 0, 5000) })
			wg.Go(func() { draw(g, 90*time.Millisecond, 60) }) // alone after a while, for five seconds
			wg.Wait()
			close(awaitTestSignal)
			wg.Go(func() { draw(g, 500*time.Microsecond, 1000) })
			wg.Wait()
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		if id, twice := keygentest.Duplicate(all); twice || len(all) != 6*6060 {
			t.Errorf("%d came twice, of %d", id, len(all))
		}
		if oldest < time.Second {
			t.Errorf("no id was older than %v: the keeper did not stand still", oldest)
		}
		t.Logf("%d ids, the oldest of %v", len(all), oldest)
	})
}

func TestACoarseClockThatIsSetBackRepeatsNothing(t *testing.T) {
	for _, back := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			wall := &keygentest.WallClock{}
			g := open(t, snowflake.OnWall(snowflake.Config{Layout: millennium, Worker: fresh(1), Coarse: true}, wall.Now))
			var ids []int64
			for i := range 5000 {
				if i == 2000 {
					wall.Step(-back)
				}
				id, err := g.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
				time.Sleep(time.Duration(i%3) * time.Millisecond)
			}
			rise := slices.IsSorted(ids)
			if id, twice := keygentest.Duplicate(ids); twice || !rise {
				t.Errorf("back by %v: %d came twice; they rise: %v", back, id, rise)
			}
		})
	}
}

func TestCoarseAndFillTakeFromOneCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: millennium, Worker: fresh(1), Coarse: true})
		var ids []int64
		for i := range 200 {
			batch := make([]int64, 1+i%50)
			if err := g.Fill(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ids = append(append(ids, batch...), id)
		}
		if !slices.IsSorted(ids) {
			t.Error("they do not rise")
		}
		if issued := g.Stats().Issued; issued != int64(len(ids)) {
			t.Errorf("%d issued, %d drawn", issued, len(ids))
		}
	})
}

func TestACoarseClockIsNotForGeneBits(t *testing.T) {
	layout := keygen.Twitter()
	layout.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 8}, {Kind: keygen.Sequence, Bits: 8}, {Kind: keygen.Bucket, Bits: 6}}
	if g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: fresh(1), Coarse: true}); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("%v, %v", g, err)
	}
}

func TestCallsOfACoarseClockWhoseContextsHaveEndedKeepNobodyWaiting(t *testing.T) {
	layout := millennium
	layout.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 39}, {Kind: keygen.Sequence, Bits: 8}, {Kind: keygen.Worker, Bits: 10}}
	synctest.Test(t, func(t *testing.T) {
		g := open(t, snowflake.Config{Layout: layout, Worker: fresh(1), Coarse: true})
		ended, end := context.WithCancel(t.Context())
		end()
		for range 50 {
			for range 2000 { // the ids of eight ticks
				_, _ = g.Next(ended)
			}
			time.Sleep(layout.Unit)
		}
		begin := time.Now()
		id, err := g.Next(t.Context())
		if took := time.Since(begin); err != nil || took > 2*layout.Unit {
			t.Errorf("a call after them: %v after %v", err, took)
		}
		if p, err := layout.Parse(id); err != nil || time.Until(p.Time).Abs() > 2*layout.Unit {
			t.Errorf("an id of %v at %v, %v", p.Time, time.Now().UTC(), err)
		}
	})
}
