// SPDX-License-Identifier: Apache-2.0

package periodic_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/periodic"
)

func TestConformance(t *testing.T) {
	m := newMemory(time.Now)
	cfg := monthly(m, func(c *periodic.Config) { c.Digits = 12 })
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return open(t, cfg).IDs("shop7") })
	keygentest.Keys(t, func(t *testing.T) keygen.Generator[string] { return open(t, cfg).Texts("shop8") })
}

func TestEachKeyAndPeriodCountsFromOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on 1 January 2000
		n := open(t, monthly(newMemory(time.Now), nil))
		for i, want := range []string{"2000-01-000001", "2000-01-000002"} {
			if got := next(t, n, "shop7"); got != want {
				t.Errorf("%d: %s", i, got)
			}
		}
		if got := next(t, n, "shop8"); got != "2000-01-000001" {
			t.Error(got)
		}
		time.Sleep(31 * 24 * time.Hour)
		for _, key := range []string{"shop7", "shop8", ""} {
			if got := next(t, n, key); got != "2000-02-000001" {
				t.Error(got)
			}
		}
	})
}

func TestPeriodsBeginInTheirZone(t *testing.T) {
	zone := time.FixedZone("CST", 8*60*60)
	for _, c := range []struct {
		period periodic.Period
		digits int
		at     time.Time
		text   string
		id     int64
	}{
		{periodic.Day, 4, time.Date(2026, 11, 20, 15, 59, 59, 0, time.UTC), "2026-11-20-0001", 202611200001},
		{periodic.Day, 4, time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC), "2026-11-21-0001", 202611210001},
		{periodic.Month, 6, time.Date(2026, 11, 30, 16, 0, 0, 0, time.UTC), "2026-12-000001", 202612000001},
		{periodic.Month, 6, time.Date(2026, 12, 31, 16, 0, 0, 0, time.UTC), "2027-01-000001", 202701000001},
		{periodic.Year, 3, time.Date(2026, 12, 31, 15, 0, 0, 0, time.UTC), "2026-001", 2026001},
		{periodic.Year, 14, time.Date(2026, 12, 31, 16, 0, 0, 0, time.UTC), "2027-00000000000001", 202700000000000001},
	} {
		now := func() time.Time { return c.at }
		n := open(t, periodic.Config{Counters: newMemory(now), Name: "order", Period: c.period, Zone: zone, Digits: c.digits, Now: now})
		number, err := n.Next(t.Context(), "shop7")
		if err != nil || number.String() != c.text || number.Int64() != c.id || number.Count != 1 {
			t.Errorf("%v: %v is %d, %v; want %s", c.at, number, number.Int64(), err, c.text)
		}
	}
}

// A day may have 23 or 25 hours.
func TestADayEndsAtMidnightWhenTheClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var clock atomic.Pointer[time.Time]
	set := func(t time.Time) { clock.Store(&t) }
	set(time.Date(2026, 10, 25, 0, 30, 0, 0, berlin)) // the day has 25 hours
	now := func() time.Time { return *clock.Load() }
	n := open(t, periodic.Config{Counters: newMemory(now), Name: "order", Period: periodic.Day, Zone: berlin, Digits: 3, Now: now})
	for _, want := range []string{"2026-10-25-001", "2026-10-25-002", "2026-10-26-001"} {
		if got := next(t, n, ""); got != want {
			t.Errorf("at %v: %s, want %s", now(), got, want)
		}
		set(now().Add(12*time.Hour + 15*time.Minute))
	}
}

// Clocks are set forward over midnight in Havana, Santiago and on the Azores, and were
// set back over it, or over the day before, elsewhere. Apia had no 30 December 2011.
func TestADayBeginsWithItsFirstMomentWhereMidnightIsMissingOrComesTwice(t *testing.T) {
	for _, c := range []struct{ zone, from, to, day string }{
		{"America/Havana", "2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z", "2026-03-07"},
		{"America/Havana", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "2026-03-08"}, // from one o'clock on
		{"America/Havana", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-01"}, // 00:00 to 01:00 comes twice
		{"America/Santiago", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z", "2026-09-06"},
		{"America/Santiago", "2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z", "2026-04-04"}, // 23:00 to 24:00 comes twice
		{"Atlantic/Azores", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-29"},
		{"Asia/Beirut", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z", "2026-03-29"},
		{"Africa/Cairo", "2026-10-28T21:00:00Z", "2026-10-29T22:00:00Z", "2026-10-29"},
		{"Asia/Amman", "2021-10-28T21:00:00Z", "2021-10-29T22:00:00Z", "2021-10-29"},       // 00:00 to 01:00 comes twice
		{"America/St_Johns", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z", "2010-11-07"}, // 00:01 became 23:01 of the day before
		{"Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-29"},
		{"Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "2011-12-31"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, to := at(t, c.from), at(t, c.to)
		for now := from; now.Before(to); now = now.Add(59 * time.Second) {
			if text := numberAt(t, periodic.Day, zone, now); text != c.day+"-001" {
				t.Errorf("%s: at %v the number is %s", c.zone, now.In(zone), text)
				break
			}
		}
		for _, now := range []time.Time{from.Add(-1), to} {
			if text := numberAt(t, periodic.Day, zone, now); strings.HasPrefix(text, c.day) {
				t.Errorf("%s: at %v the number is %s", c.zone, now.In(zone), text)
			}
		}
	}
}

// Zones that changed their clocks near midnight, by hours, half hours and a day.
func TestPeriodsFollowEachOtherWithoutAGapThroughAllChangesOfClocks(t *testing.T) {
	for _, name := range []string{
		"Africa/Cairo", "Africa/Casablanca", "America/Asuncion", "America/Havana", "America/Nuuk", "America/Santiago", "America/Sao_Paulo",
		"America/Scoresbysund", "America/St_Johns", "Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Damascus", "Asia/Gaza", "Asia/Pyongyang",
		"Asia/Tehran", "Atlantic/Azores", "Australia/Lord_Howe", "Europe/Berlin", "Pacific/Apia", "Pacific/Kwajalein",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		changes := 0
		for change := time.Date(1975, 1, 1, 0, 0, 0, 0, zone); change.Year() < 2038; changes++ {
			for _, p := range []periodic.Period{periodic.Day, periodic.Month, periodic.Year} {
				follow(t, p, change.AddDate(0, 0, -2), change.AddDate(0, 0, 3))
			}
			_, next := change.ZoneBounds()
			if next.IsZero() {
				break
			}
			change = next
		}
		if changes == 0 {
			t.Errorf("%s never changed its clocks", name)
		}
	}
}

// follow goes from period to period.
func follow(t *testing.T, p periodic.Period, at, end time.Time) {
	t.Helper()
	name, from, to := p.Bounds(at)
	for to.Before(end) {
		for _, inside := range []time.Time{from, to.Add(-1)} {
			if again, _, _ := p.Bounds(inside); again != name || !strings.HasPrefix(inside.Format(time.DateOnly), name) {
				t.Errorf("%v is of %s, which begins at %v and ends at %v", inside, again, from, to)
			}
		}
		next, begin, until := p.Bounds(to)
		if !begin.Equal(to) || next <= name {
			t.Fatalf("%s ends at %v, and %s begins at %v", name, to, next, begin)
		}
		name, from, to = next, begin, until
	}
}

// In Asunción the clocks were set forward with the beginning of a month.
func TestAMonthBeginsWithItsFirstMomentWhereMidnightIsMissing(t *testing.T) {
	asuncion, err := time.LoadLocation("America/Asuncion")
	if err != nil {
		t.Fatal(err)
	}
	for now, want := range map[string]string{
		"2017-10-01T03:59:59.999Z": "2017-09-001", "2017-10-01T04:00:00Z": "2017-10-001", "2017-11-01T02:59:59.999Z": "2017-10-001", "2017-11-01T03:00:00Z": "2017-11-001",
	} {
		if text := numberAt(t, periodic.Month, asuncion, at(t, now)); text != want {
			t.Errorf("at %s the number is %s, want %s", now, text, want)
		}
	}
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// numberAt is the first number of a process and of counters whose clocks agree exactly.
func numberAt(t *testing.T, p periodic.Period, zone *time.Location, at time.Time) string {
	t.Helper()
	now := func() time.Time { return at }
	n := open(t, periodic.Config{Counters: newMemory(now), Name: "order", Period: p, Zone: zone, Digits: 3, Skew: time.Nanosecond, Now: now})
	defer func() { _ = n.Close() }()
	return next(t, n, "")
}

func TestNumbersCostARoundTripForASegment(t *testing.T) {
	m := newMemory(time.Now)
	n := open(t, monthly(m, nil))
	for range 20_000 {
		next(t, n, "shop7")
	}
	if calls := m.reservations(); calls > 40 {
		t.Errorf("20,000 numbers cost %d reservations", calls)
	}
}

func TestTheDigitsBoundThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, monthly(newMemory(time.Now), func(c *periodic.Config) { c.Digits = 2 }))
		for range 98 {
			next(t, n, "")
		}
		if got := next(t, n, ""); got != "2000-01-99" {
			t.Error(got)
		}
		if number, err := n.Next(t.Context(), ""); !errors.Is(err, keygen.ErrExhausted) {
			t.Errorf("%v, %v", number, err)
		}
		time.Sleep(31 * 24 * time.Hour)
		if got := next(t, n, ""); got != "2000-02-01" {
			t.Error(got)
		}
	})
}

// Callers of processes whose clocks differ draw while the month changes.
func TestThePeriodChangesUnderLoadOfClocksThatDisagreeWithoutADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		var mu sync.Mutex
		seen := map[string]int{}
		draw := func(n *periodic.Numbers, r *rand.Rand) {
			last := ""
			for range 4000 {
				key := []string{"shop7", "shop8"}[r.IntN(2)]
				number, err := n.Next(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[key+" "+number.String()]++
				mu.Unlock()
				if number.Period < last {
					t.Errorf("%s after a number of %s", number, last)
				}
				last = number.Period
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			}
		}
		time.Sleep(31*24*time.Hour - 20*time.Second)
		var wg sync.WaitGroup
		for i, ahead := range []time.Duration{0, 10 * time.Second, -10 * time.Second} {
			n := open(t, monthly(m, func(c *periodic.Config) { c.Now = func() time.Time { return time.Now().Add(ahead) } }))
			for caller := range 3 {
				wg.Go(func() { draw(n, rand.New(rand.NewPCG(uint64(i), uint64(caller)))) })
			}
		}
		wg.Wait()
		months := map[string]int{}
		for number, times := range seen {
			months[number[6:13]]++
			if times > 1 {
				t.Errorf("%s was given %d times", number, times)
			}
		}
		if months["2000-01"] == 0 || months["2000-02"] == 0 || len(seen) != 9*4000 {
			t.Errorf("%d numbers, %v", len(seen), months)
		}
	})
}

func TestAClockThatTheCountersDisagreeWithGetsNoNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		time.Sleep(time.Hour) // into January
		for _, off := range []time.Duration{62 * 24 * time.Hour, -24 * time.Hour} {
			n := open(t, monthly(m, func(c *periodic.Config) { c.Now = func() time.Time { return time.Now().Add(off) } }))
			begin := time.Now()
			var setup *keygen.SetupError
			if number, err := n.Next(t.Context(), "shop7"); !errors.Is(err, keygen.ErrClockRollback) || !errors.As(err, &setup) || time.Since(begin) > time.Second {
				t.Errorf("off by %v: %v, %v after %v", off, number, err, time.Since(begin))
			}
		}
		if len(m.last) != 0 {
			t.Errorf("counters were made: %v", m.last)
		}
	})
}

func TestAPeriodNeverGoesBackInAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := &keygentest.WallClock{}
		n := open(t, monthly(newMemory(time.Now), func(c *periodic.Config) { c.Now = wall.Now }))
		time.Sleep(31*24*time.Hour + 10*time.Second)
		if got := next(t, n, ""); got != "2000-02-000001" {
			t.Error(got)
		}
		wall.Step(-30 * time.Second) // into January, by less than the skew
		if got := next(t, n, ""); got != "2000-02-000002" {
			t.Error(got)
		}
		wall.Step(-2 * time.Minute)
		if number, err := n.Next(t.Context(), ""); !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("%v, %v", number, err)
		}
		wall.Step(2 * time.Minute)
		if got := next(t, n, ""); got != "2000-02-000003" {
			t.Error(got)
		}
	})
}

func TestNumbersGoOnFromMemoryWithoutTheCountersAndThenWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		n := open(t, monthly(m, nil))
		for range 5 {
			next(t, n, "")
		}
		synctest.Wait() // until the next segment is there
		m.mu.Lock()
		m.err = errors.New("connection refused")
		m.mu.Unlock()
		for range m.last["order//2000-01"] - 5 {
			next(t, n, "")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if number, err := n.Next(ctx, ""); !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, m.err) {
			t.Errorf("%v, %v", number, err)
		}
		if number, err := n.Next(t.Context(), "another"); !errors.Is(err, m.err) {
			t.Errorf("%v, %v", number, err)
		}
	})
}

func TestCloseEndsAllKeys(t *testing.T) {
	n, err := periodic.New(monthly(newMemory(time.Now), nil))
	if err != nil {
		t.Fatal(err)
	}
	next(t, n, "shop7")
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"shop7", "shop8"} {
		if number, err := n.Next(t.Context(), key); !errors.Is(err, keygen.ErrClosed) {
			t.Errorf("%v, %v", number, err)
		}
	}
}

func TestWhatNewHasNotMadeRefuses(t *testing.T) {
	var n periodic.Numbers
	if number, err := n.Next(t.Context(), ""); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("%v, %v", number, err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestConfigIsCheckedAndTheErrorNamesTheField(t *testing.T) {
	good := monthly(newMemory(time.Now), nil)
	for want, change := range map[string]func(*periodic.Config){
		"Config.Counters":                      func(c *periodic.Config) { c.Counters = (*memory)(nil) },
		"Config.Name":                          func(c *periodic.Config) { c.Name = "a/b" },
		"Config.Period":                        func(c *periodic.Config) { c.Period = 4 },
		"Config.Zone":                          func(c *periodic.Config) { c.Zone = nil },
		"Config.Digits is 13":                  func(c *periodic.Config) { c.Digits = 13 },
		"Config.Digits is 0":                   func(c *periodic.Config) { c.Digits = 0 },
		"Config.Step is -1":                    func(c *periodic.Config) { c.Step = -1 },
		"Config.Step is 10 and MaxStep 5":      func(c *periodic.Config) { c.MaxStep = 5 },
		"Config.Skew is 2h0m0s; it is at most": func(c *periodic.Config) { c.Skew = 2 * time.Hour },
	} {
		cfg := good
		change(&cfg)
		if n, err := periodic.New(cfg); err == nil || n != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
}

func TestAKeyTakesAboutTwoKilobytes(t *testing.T) {
	n := open(t, monthly(newMemory(time.Now), nil))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	const keys = 5000
	before := heap()
	for i := range keys {
		next(t, n, strconv.Itoa(i))
	}
	if each := (heap() - before) / keys; each > 2500 {
		t.Errorf("a key takes %d bytes", each)
	}
}

func TestCallersOfANewKeyWaitTenSecondsInAllWithoutTheCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		m.err = errors.New("connection refused")
		n := open(t, monthly(m, nil))
		begin := time.Now()
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				number, err := n.Next(context.Background(), "shop7")
				if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, m.err) {
					t.Errorf("%v, %v", number, err)
				}
			})
		}
		callers.Wait()
		if waited := time.Since(begin); waited > 11*time.Second {
			t.Errorf("they waited for %v", waited)
		}
	})
}

func TestACallThatGivesUpDoesNotEndOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(time.Now)
		m.err = errors.New("connection refused")
		n := open(t, monthly(m, nil))
		hasty := func(limit time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if number, err := n.Next(ctx, "shop7"); !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v", number, err)
			}
		}
		var callers sync.WaitGroup
		callers.Go(func() { hasty(time.Second) })
		synctest.Wait() // it asks the counters, the others wait for it
		callers.Go(func() { hasty(time.Second / 2) })
		callers.Go(func() {
			if number, err := n.Next(t.Context(), "shop7"); err != nil || number.Count != 1 {
				t.Errorf("%v, %v", number, err)
			}
		})
		time.Sleep(3 * time.Second)
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		callers.Wait()
	})
}
