// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testkit/evenness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/keygentest"
)

// want asks for ids all the time. A caller waits for a few units of the layout at
// the most.
func want(t *testing.T, g *cached.Generator, lasts time.Duration) (ids []int64) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < lasts; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		id, err := g.Next(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestAClockThatIsWrongForThreeSecondsDoesNotBlockCallers(t *testing.T) {
	workers := map[string]func() keygen.Assigner{
		"leased": func() keygen.Assigner { return leased(t, time.Now, term) }, // the ledger's clock is right
		"new":    func() keygen.Assigner { return fresh(1) },
	}
	for name, worker := range workers {
		for _, off := range []time.Duration{10 * time.Second, 29 * time.Second, time.Hour, -time.Hour} {
			for _, ownClock := range []bool{false, true} {
				if ownClock && name == "new" { // is refused as long as the clock is behind the ring
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					clock := &keygentest.WallClock{}
					cfg := cached.Config{Worker: worker(), Now: clock.Now}
					if !ownClock {
						cfg.Now = nil
						cfg = cached.OnWall(cfg, clock.Now)
					}
					g := open(t, cfg)
					ids := want(t, g, 20*time.Second)
					clock.Step(off)
					ids = append(ids, want(t, g, 3*time.Second)...)
					clock.Step(-off)
					ids = append(ids, want(t, g, 2*time.Minute)...)
					if !slices.IsSorted(ids) {
						t.Errorf("%s, off by %v: ids went back", name, off)
					}
					if id, twice := keygentest.Duplicate(ids); twice {
						t.Errorf("%s, off by %v: %d came twice", name, off, id)
					}
					if p := parse(t, g, take(t, g, 1)[0]); name == "leased" && time.Since(p.Time).Abs() > 17*time.Second {
						t.Errorf("off by %v: an id of %v at %v", off, p.Time, time.Now())
					}
					if s := g.Stats(); s.LastError != nil {
						t.Errorf("%s, off by %v: %+v", name, off, s)
					}
				})
			}
		}
	}
}

func TestARingFilledByAFastClockReturnsToTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const off = time.Hour
		clock := &keygentest.WallClock{}
		clock.Step(off)
		g := open(t, cached.OnWall(cached.Config{}, clock.Now))
		ids := want(t, g, 10*time.Second)
		clock.Step(-off)
		ids = append(ids, want(t, g, off+time.Minute)...)
		if !slices.IsSorted(ids) {
			t.Error("ids went back")
		}
		if p := parse(t, g, ids[len(ids)-1]); time.Since(p.Time).Abs() > 17*time.Second {
			t.Errorf("an id of %v at %v", p.Time, time.Now())
		}
	})
}

// uneven returns chi² per degree of freedom of id % shards.
func uneven(ids []int64, shards int64) float64 {
	hits := make([]int, shards)
	for _, id := range ids {
		hits[id%shards]++
	}
	return evenness.Of(hits)
}

func seeded() func(int64) int64 { return rand.New(rand.NewPCG(12, 6)).Int64N }

func TestIDsAreEvenOverTheShardsAtALowRate(t *testing.T) {
	twitter := keygen.Twitter()
	twitter.Epoch = uid().Epoch
	for name, layout := range map[string]keygen.Layout{"UidGenerator's": uid(), "Twitter's": twitter} {
		for _, step := range []time.Duration{500 * time.Millisecond, 7 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, cached.Drawing(cached.Config{Layout: layout}, seeded()))
				ids := make([]int64, 10_000)
				for i := range ids {
					ids[i] = take(t, g, 1)[0]
					time.Sleep(step)
				}
				for _, shards := range []int64{16, 1024} {
					if x := uneven(ids, shards); x > 1.2 {
						t.Errorf("%s, one id per %v, %d shards: chi² per degree of freedom is %.3f, want at most 1.2", name, step, shards, x)
					}
				}
			})
		}
	}
}

func TestProcessesThatIssueOneIDEachFillAllShardsEvenly(t *testing.T) {
	for name, drawn := range map[string]bool{"at random": true, "from the first": false} {
		synctest.Test(t, func(t *testing.T) {
			cfg := cached.Config{Layout: uid(), Worker: fresh(1)}
			if drawn {
				cfg = cached.Drawing(cfg, seeded())
			} else { // the control
				cfg = cached.Drawing(cfg, fromTheFirst)
			}
			ids := make([]int64, 10_000)
			for i := range ids {
				g, err := cached.New(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				ids[i] = take(t, g, 1)[0]
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, shards := range []int64{16, 1024} {
				if x := uneven(ids, shards); drawn != (x < 1.2) {
					t.Errorf("%s, %d shards: chi² per degree of freedom is %.3f", name, shards, x)
				}
			}
		})
	}
}

// Where no tick is left out, none is shortened.
func TestARingUnderLoadHasAllIDsOfItsTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, cached.Drawing(cached.Config{}, seeded()))
		ids := take(t, g, 20*perTick)
		perSecond := map[time.Time]int{}
		for _, id := range ids {
			perSecond[parse(t, g, id).Time]++
		}
		short := 0
		for _, n := range perSecond {
			if n < perTick {
				short++
			}
		}
		if short > 2 { // the first, and the last, which is in use
			t.Errorf("%d of %d ticks have fewer ids than the layout allows", short, len(perSecond))
		}
	})
}
