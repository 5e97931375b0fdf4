// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

var errDown = errors.New("connection refused")

func TestADayWithoutTheDatabaseIsBridgedAsFarAsTheSegmentsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 100}
		g := open(t, segment.Config{Source: r, Step: 50_000})
		consume(t, g, 1, 20*time.Hour)
		r.set(func(r *row) { r.err = errDown })
		begin := time.Now()
		consume(t, g, 1, time.Duration(g.Stats().Remaining)*time.Second)
		if s := g.Stats(); s.Failures != 0 || s.Remaining != 0 || !errors.Is(s.LastError, errDown) || time.Since(begin) < 12*time.Hour {
			t.Errorf("%v into the outage: %+v", time.Since(begin), s)
		}
		failed := 0
		for time.Since(begin) < 24*time.Hour {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := g.Next(ctx)
			cancel()
			if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, errDown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("without the database: %v", err)
			}
			failed++
			time.Sleep(time.Hour)
		}
		s := g.Stats()
		if s.FailedReserves > 24*3600 || s.Failures != int64(failed) {
			t.Errorf("%+v", s)
		}
		r.set(func(r *row) { r.err = nil })
		back := time.Now()
		if _, err := g.Next(t.Context()); err != nil || time.Since(back) > 2*time.Second {
			t.Errorf("%v, %v after the database came back", err, time.Since(back))
		}
	})
}

func TestStatsTellHowLongTheNewestReservationTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &row{maxID: 1, step: 10, latency: 30 * time.Millisecond}
		g := open(t, segment.Config{Source: r, Step: 10})
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := g.Stats(); s.LastReservation != 30*time.Millisecond {
			t.Errorf("the first took %v", s.LastReservation)
		}
		r.set(func(r *row) { r.latency, r.err = 50*time.Millisecond, errDown })
		before := g.Stats().FailedReserves
		for g.Stats().FailedReserves == before { // a failed one counts, too
			_, _ = g.Next(t.Context())
			time.Sleep(time.Millisecond)
		}
		if s := g.Stats(); s.LastReservation != 50*time.Millisecond || !errors.Is(s.LastError, errDown) {
			t.Errorf("the newest took %v, %v", s.LastReservation, s.LastError)
		}
	})
}

func TestNobodyGetsAnErrorFromAHealthyDatabaseThatIsSlow(t *testing.T) {
	for _, latency := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		for _, step := range []int64{0, 100} {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, segment.Config{Source: &row{maxID: 1, step: 100, latency: latency}, Step: step})
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						for range 5000 {
							if _, err := g.Next(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				if s := g.Stats(); s.Issued != 40_000 || s.Failures != 0 {
					t.Errorf("at %v and step %d: %+v", latency, step, s)
				}
			})
		}
	}
}

func TestATagDoesNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &row{maxID: 1, step: 10}
		stuck, orders := open(t, segment.Config{Source: hung}), open(t, segment.Config{Source: &row{maxID: 1, step: 10}})
		hung.set(func(r *row) { r.latency = time.Hour })
		take(t, stuck, 1)
		begin := time.Now()
		take(t, orders, 100_000)
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v while another tag's database hangs", took)
		}
	})
}

func TestARestoredBackupIsDetected(t *testing.T) {
	r := &row{maxID: 5000, step: 10}
	g := open(t, segment.Config{Source: r})
	take(t, g, 100)
	r.set(func(r *row) { r.maxID = 1 })
	var err error
	for err == nil {
		var id int64
		if id, err = g.Next(t.Context()); err == nil && id < 5100 {
			t.Fatalf("issued %d again", id)
		}
	}
	if !errors.Is(err, keygen.ErrRegressed) {
		t.Error(err)
	}
}

func TestTheObserverSeesStepsWaitsRefillsAndOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits, refills, failures int
		var steps [][2]int64
		var outages []error
		var lasted time.Duration
		r := &row{maxID: 1, step: 100}
		g := open(t, segment.Config{Source: r, Observer: segment.Observer{
			Wait: func(time.Duration, error) { waits++ },
			Refill: func(_ keygen.Span, _ time.Duration, err error) {
				if refills++; err != nil {
					failures++
				}
			},
			Step:     func(from, to int64) { steps = append(steps, [2]int64{from, to}) },
			Outage:   func(err error) { outages = append(outages, err) },
			Recovery: func(d time.Duration) { lasted = d },
		}})
		take(t, g, 150)
		synctest.Wait()
		take(t, g, 60) // 10 of them from the third segment, which has 200
		synctest.Wait()
		if len(steps) != 1 || steps[0] != [2]int64{100, 200} {
			t.Errorf("steps %v", steps)
		}
		r.set(func(r *row) { r.err = errDown })
		take(t, g, int(g.Stats().Remaining))
		time.AfterFunc(5*time.Second, func() { r.set(func(r *row) { r.err = nil }) })
		take(t, g, 1)
		synctest.Wait()
		s := g.Stats()
		if len(outages) != 1 || !errors.Is(outages[0], errDown) || lasted < 5*time.Second || lasted > 7*time.Second {
			t.Errorf("outages %v, the last of %v", outages, lasted)
		}
		if waits != int(s.Waits) || waits == 0 || refills != int(s.Reservations+s.FailedReserves) || failures != int(s.FailedReserves) {
			t.Errorf("%d waits, %d refills, %d of them failed; %+v", waits, refills, failures, s)
		}
	})
}

func TestUsageTellsRatePeakAndTheStepForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, segment.Config{Source: &row{maxID: 1, step: 1000}})
		take(t, g, 500) // a burst within a moment is no rate
		time.Sleep(time.Minute)
		if u := g.Usage(); u.Peak > 10 || u.Step != 1000 {
			t.Errorf("%+v", u)
		}
		consume(t, g, 200, time.Minute)
		g.Usage()
		consume(t, g, 50, time.Minute)
		u := g.Usage()
		if u.Rate < 49 || u.Rate > 51 || u.Peak < 190 || u.Peak > 210 || u.Advice < 600*190 || u.Advice > 600*210 {
			t.Errorf("%+v", u)
		}
	})
}
