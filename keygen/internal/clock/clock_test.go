// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
	"github.com/shardid/shardid/keygen/keygentest"
)

// layout is Twitter's for the virtual clock, which starts in 2000.
var layout = func() keygen.Layout {
	l := keygen.Twitter()
	l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}()

// wall is a wall clock that tests set.
type wall struct{ keygentest.WallClock }

func (w *wall) tick(l keygen.Layout) int64 { return l.Tick(w.Now()) }

// onWall runs f on a clock whose wall clock f can set.
func onWall(t *testing.T, f func(t *testing.T, w *wall, c *clock.Clock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wall{}
		f(t, w, clock.New(clock.Config{Layout: layout, Wall: w.Now}))
	})
}

func expect(t *testing.T, c *clock.Clock, now, most int64) {
	t.Helper()
	if gotNow, gotMost := c.Read(); gotNow != now || gotMost != most {
		t.Errorf("reads %d and %d, want %d and %d", gotNow, gotMost, now, most)
	}
}

// look lets so much time pass that the next reading looks at the wall clock.
func look(c *clock.Clock) {
	time.Sleep(1001 * time.Millisecond)
	c.Read()
}

func TestAWallClockThatIsSetForwardIsFollowedWithinASecond(t *testing.T) {
	onWall(t, func(t *testing.T, w *wall, c *clock.Clock) {
		before := c.Tick()
		w.Step(time.Hour)
		if c.Tick() != before {
			t.Error("the wall clock is read each time")
		}
		look(c)
		expect(t, c, w.tick(layout), w.tick(layout))
	})
}

func TestAWallClockThatIsSetBackIsFollowedAndTheLatestTimeGoesOnAtHalfTheSpeed(t *testing.T) {
	onWall(t, func(t *testing.T, w *wall, c *clock.Clock) {
		w.Step(time.Hour)
		look(c)
		w.Step(-time.Hour)
		look(c)
		reached := w.tick(layout) + time.Hour.Milliseconds()
		expect(t, c, w.tick(layout), reached)
		last := reached
		for passed := time.Duration(0); passed < 2*time.Hour-time.Minute; passed += 7 * time.Minute {
			time.Sleep(7 * time.Minute)
			now, most := c.Read()
			if want := last + (7*time.Minute).Milliseconds()/2; now != w.tick(layout) || most > want+1 || most < want-1 && most > now {
				t.Fatalf("after %v %d and %d; want %d and %d", passed, now, most, w.tick(layout), want)
			}
			last = most
		}
		time.Sleep(5 * time.Minute)
		expect(t, c, w.tick(layout), w.tick(layout))
	})
}

func TestAProcessThatIsSuspendedBetweenTheReadingsOfTwoClocksDoesNotBelieveThatTheWallClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended time.Duration
		c := clock.New(clock.Config{Layout: layout, Wall: func() time.Time {
			read := time.Now()
			time.Sleep(suspended)
			return read
		}})
		now := func() int64 { return layout.Tick(time.Now()) }
		suspended = 14 * time.Millisecond
		look(c)
		expect(t, c, now(), now())
		suspended = 0
		time.Sleep(3 * time.Millisecond)
		expect(t, c, now(), now())
		look(c)
		expect(t, c, now(), now())
	})
}

func TestTheLatestTimeNeverGoesBackWhateverTheWallClockDoes(t *testing.T) {
	onWall(t, func(t *testing.T, w *wall, c *clock.Clock) {
		last := int64(0)
		for i := range 20_000 {
			switch i % 700 {
			case 100:
				w.Step(3 * time.Second)
			case 250, 600:
				w.Step(-time.Duration(i) * time.Millisecond)
			case 400:
				w.Step(time.Duration(i) * time.Millisecond)
			}
			time.Sleep(13 * time.Millisecond)
			now, most := c.Read()
			if most < last || now > most {
				t.Fatalf("step %d: %d and %d after %d", i, now, most, last)
			}
			last = most
		}
	})
}

func TestUntilCountsTheHalfSpeed(t *testing.T) {
	onWall(t, func(t *testing.T, w *wall, c *clock.Clock) {
		w.Step(10 * time.Second)
		look(c)
		w.Step(-10 * time.Second)
		look(c)
		_, most := c.Read()
		for _, ahead := range []int64{3, 400, 9_000, 30_000} {
			behind, until := c.Behind(most+ahead), c.Until(most+ahead)
			if got := behind.Round(time.Millisecond).Milliseconds(); got > ahead || got < ahead-1 {
				t.Errorf("%d ticks are %v", ahead, behind)
			}
			if want := time.Duration(ahead+min(ahead, 10_000)) * time.Millisecond; want-until > 2*time.Millisecond || until > want {
				t.Errorf("%d ticks take %v, want %v", ahead, until, want)
			}
		}
		want := most + 2000
		time.Sleep(c.Until(want))
		if _, most := c.Read(); most != want {
			t.Errorf("reads %d, want %d", most, want)
		}
		if c.Until(want) != 0 || c.Behind(want) != 0 {
			t.Error("what was reached is waited for")
		}
	})
}

func TestAWallClockFarAheadOfTheLedgersIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, distrusted := &wall{}, 0
		c := clock.New(clock.Config{Layout: layout, Wall: w.Now, Distrusted: func() { distrusted++ }})
		const term = 30 * time.Second
		renew := func() time.Duration {
			return c.Follow(layout.Tick(time.Now().Add(term)), term, time.Now())
		}
		if renew() != 0 {
			t.Error("a clock that is right is not believed")
		}
		w.Step(time.Hour)
		for range 5 {
			look(c)
			expect(t, c, layout.Tick(time.Now()), layout.Tick(time.Now()))
		}
		if distrusted != 1 {
			t.Errorf("%d doubts", distrusted)
		}
		if ahead := renew(); ahead.Round(time.Second) != time.Hour {
			t.Errorf("ahead by %v", ahead)
		}
		w.Step(-time.Hour)
		look(c)
		expect(t, c, layout.Tick(time.Now()), layout.Tick(time.Now()))
		if renew() != 0 {
			t.Error("a clock that is right again is not believed")
		}
		w.Step(time.Hour) // as when the machine slept
		look(c)
		if distrusted != 2 {
			t.Errorf("%d doubts", distrusted)
		}
		c.Follow(layout.Tick(w.Now().Add(term)), term, time.Now()) // the ledger's is there, too
		expect(t, c, w.tick(layout), w.tick(layout))
	})
}

func TestAWallClockThatIsWrongFromTheStartIsReplacedByTheLedgers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wall{}
		w.Step(time.Hour)
		c := clock.New(clock.Config{Layout: layout, Wall: w.Now})
		expect(t, c, w.tick(layout), w.tick(layout))
		const term = 30 * time.Second
		ceiling := layout.Tick(time.Now().Add(term))
		if ahead := c.Follow(ceiling, term, time.Now()); ahead != time.Hour {
			t.Errorf("ahead by %v", ahead)
		}
		expect(t, c, layout.Tick(time.Now()), ceiling) // beyond which no id was made
		c.Unfollow()
		look(c)
		expect(t, c, w.tick(layout), w.tick(layout))
	})
}

func TestAConfiguredClockIsReadUnchangedUnlessTheLedgerDisagrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wall{}
		c := clock.New(clock.Config{Layout: layout, Now: w.Now})
		for _, d := range []time.Duration{time.Hour, -2 * time.Hour} {
			w.Step(d)
			expect(t, c, w.tick(layout), w.tick(layout))
		}
		if d := c.Behind(layout.Tick(time.Now())); d != time.Hour || c.Until(layout.Tick(time.Now())) != d {
			t.Errorf("behind by %v", d)
		}
		const term = 30 * time.Second
		follow := func() time.Duration { return c.Follow(layout.Tick(time.Now().Add(term)), term, time.Now()) }
		if follow() != 0 {
			t.Error("a clock that is behind is not believed")
		}
		expect(t, c, w.tick(layout), w.tick(layout))
		w.Step(2 * time.Hour)
		expect(t, c, layout.Tick(time.Now()), layout.Tick(time.Now()))
		if !c.Time().Equal(time.Now()) || follow() != time.Hour {
			t.Errorf("reads %v", c.Time())
		}
	})
}
