// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen/segment"
)

// consume takes ids evenly for a while, a hundred at a time.
func consume(t *testing.T, g *segment.Generator, perSecond int, lasts time.Duration) {
	t.Helper()
	ids := make([]int64, 100)
	pause := time.Second * time.Duration(len(ids)) / time.Duration(perSecond)
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(pause) {
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheStepFollowsTheDemandUntilASegmentLastsFor15To30Minutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 1000}
		g := open(t, segment.Config{Source: r})
		consume(t, g, 100, 3*time.Hour) // 90,000 in 15 minutes, 180,000 in 30
		if got := r.newest(); got != 128_000 {
			t.Errorf("at 100 ids per second a segment has %d", got)
		}
		want := []int64{1000, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 128_000}
		synctest.Wait()
		if got := r.sizes[:10]; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		consume(t, g, 1000, 3*time.Hour)
		if got := r.newest(); got != 1_000_000 {
			t.Errorf("at 1000 ids per second a segment has %d, not the ceiling", got)
		}
		consume(t, g, 10, 200*time.Hour) // 9,000 in 15 minutes, 18,000 in 30
		if got := r.newest(); got != 15_625 {
			t.Errorf("at 10 ids per second a segment has %d", got)
		}
		consume(t, g, 1, 200*time.Hour)
		if got := r.newest(); got != 1953 && got != 1000 {
			t.Errorf("at 1 id per second a segment has %d", got)
		}
	})
}

func TestTheStepNeverFallsBelowTheRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 1000}
		g := open(t, segment.Config{Source: r})
		consume(t, g, 100, time.Hour)
		for range 3000 {
			take(t, g, 100)
			time.Sleep(2 * time.Hour)
		}
		if got := r.newest(); got != 1000 {
			t.Errorf("an almost idle generator reserves %d", got)
		}
	})
}

func TestMaxStepLimitsTheGrowthButNotTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 1000}
		g := open(t, segment.Config{Source: r, MaxStep: 3000})
		consume(t, g, 1000, time.Minute)
		if got := r.newest(); got != 3000 {
			t.Errorf("the step grew to %d", got)
		}
		r.set(func(r *row) { r.step = 50_000 })
		consume(t, g, 1000, 2*time.Minute)
		if got := r.newest(); got != 50_000 {
			t.Errorf("the row's step is 50000 and %d were reserved", got)
		}
	})
}

func TestAConfiguredStepIsKeptAndNeedsNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 10}
		consume(t, open(t, segment.Config{Source: r, Step: 1000}), 1000, time.Minute)
		synctest.Wait()
		if r.reads != 0 || slices.Max(r.sizes) != 1000 || slices.Min(r.sizes) != 1000 {
			t.Errorf("%d reads, sizes %v", r.reads, r.sizes)
		}
	})
}

func TestAChangeOfTheRowsStepIsSeenWithinAMinute(t *testing.T) {
	for _, step := range []int64{40_000, 10} {
		synctest.Test(t, func(t *testing.T) {
			r := &row{maxID: 1, step: 500}
			g := open(t, segment.Config{Source: r})
			consume(t, g, 100, 59*time.Second)
			r.set(func(r *row) {
				if r.reads != 1 || r.writes < 4 {
					t.Errorf("%d reads of the step for %d segments within a minute", r.reads, r.writes)
				}
				r.step, r.sizes = step, nil
			})
			consume(t, g, 1000, time.Minute)
			synctest.Wait()
			if r.reads != 2 || !slices.Contains(r.sizes, step) {
				t.Errorf("read %d times; segments of %v after a change to %d", r.reads, r.sizes, step)
			}
		})
	}
}

func TestOneIDReservesTwoStepsAtMost(t *testing.T) {
	for _, step := range []int64{1, 2, 9, 10, 1000, 128_000} {
		synctest.Test(t, func(t *testing.T) {
			r := &row{maxID: 1, step: step}
			take(t, open(t, segment.Config{Source: r}), 1)
			time.Sleep(48 * time.Hour)
			synctest.Wait()
			if r.maxID-1 > 2*step {
				t.Errorf("%d ids of step %d were reserved to issue one", r.maxID-1, step)
			}
		})
	}
}

func TestRetriesDoNotEnlargeTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 1000}
		g := open(t, segment.Config{Source: r})
		take(t, g, 1900)
		synctest.Wait()
		take(t, g, 50)
		r.set(func(r *row) { r.err = errors.New("down") })
		take(t, g, 50)
		time.Sleep(time.Hour)
		r.set(func(r *row) { r.err = nil })
		take(t, g, 1)
		synctest.Wait()
		if got := slices.Max(r.sizes); got > 4000 {
			t.Errorf("an hour of retries led to segments of %v", r.sizes)
		}
	})
}
