// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

func TestAnIntervalHasAnEndOnBothSides(t *testing.T) {
	r := sharding.Interval(noon, noon.Add(10*time.Hour), 3*time.Hour).WithPrecision(time.Nanosecond)
	if r.Slots() != 4 {
		t.Errorf("%d slots", r.Slots())
	}
	for after, want := range map[time.Duration]sharding.Slot{0: 0, 3*time.Hour - 1: 0, 3 * time.Hour: 1, 9 * time.Hour: 3, 10*time.Hour - 1: 3} {
		at := noon.Add(after)
		for _, key := range []any{at, &at, at.In(time.FixedZone("east", 7200)), sql.NullTime{Time: at, Valid: true}} {
			if got := slot(t, r, key); got != want {
				t.Errorf("%v after the start (%T): slot %d, want %d", after, key, got, want)
			}
		}
	}
	for _, key := range []any{noon.Add(-1), noon.Add(10 * time.Hour), time.Time{}, noon.AddDate(9999, 0, 0)} {
		if s, err := r.Slot(key); !errors.Is(err, sharding.ErrNoSlot) {
			t.Errorf("%v gives slot %d, error %v", key, s, err)
		}
	}
	for _, key := range []any{"2026-06-01 12:00:00", 5, nil, sql.NullTime{}, (*time.Time)(nil)} {
		if s, err := r.Slot(key); !errors.Is(err, sharding.ErrKeyType) {
			t.Errorf("%v gives slot %d, error %v", key, s, err)
		}
	}
}

// berlin has clocks that show 02:30 twice on 25 October 2026.
func berlin(tb testing.TB) *time.Location {
	tb.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		tb.Fatal(err)
	}
	return zone
}

// MySQL stores 23:59:59.9997 in DATETIME(3) as midnight, MariaDB as 23:59:59.999.
func TestATimeThatAColumnWouldRoundOverABorderIsRefused(t *testing.T) {
	midnight := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(midnight, midnight.AddDate(0, 0, 3), 24*time.Hour)
	for unit, takes := range map[time.Duration][]time.Duration{ // which times before a border are taken
		0:                {time.Second, time.Second + 1, time.Hour - 1},
		time.Second:      {time.Second, time.Second + 1},
		time.Millisecond: {time.Millisecond, time.Millisecond + 1, 999 * time.Millisecond},
		time.Microsecond: {time.Microsecond, 300 * time.Microsecond, time.Microsecond + 1},
		time.Nanosecond:  {1, 999},
		24 * time.Hour:   {24 * time.Hour},
	} {
		rule := rule.WithPrecision(unit)
		for day := range 3 {
			border := midnight.AddDate(0, 0, day+1)
			for _, before := range takes {
				if got := slot(t, rule, border.Add(-before)); int(got) != day {
					t.Errorf("%v: %v before the end of day %d is in slot %d", unit, before, day, got)
				}
			}
			if unit == time.Nanosecond {
				continue
			}
			for _, before := range []time.Duration{1, rule.Precision() - 1, rule.Precision() / 2} {
				if s, err := rule.Slot(border.Add(-before)); !errors.Is(err, sharding.ErrKeyType) {
					t.Errorf("%v: %v before a border: slot %d, error %v", unit, before, s, err)
				}
			}
		}
	}
	if s, err := rule.Slot(midnight.Add(-1)); !errors.Is(err, sharding.ErrKeyType) {
		t.Errorf("a time that may be rounded to the first piece: slot %d, error %v", s, err)
	}
}

// However a database rounds a time within the unit of its column, the result is in the piece of the
// key, or the key was refused. Keys of whole units are never refused. The column's unit may be a
// fraction of the rule's.
func TestNoRoundingLeavesThePieceOfAnAcceptedKey(t *testing.T) {
	units := []time.Duration{time.Second, 100 * time.Millisecond, time.Millisecond, time.Microsecond}
	for range 20000 {
		unit := units[rand.IntN(len(units))]
		kept := min(units[rand.IntN(len(units))], unit)
		from := noon.Add(time.Duration(rand.Int64N(int64(time.Hour))))
		rule := sharding.Interval(from, from.Add(time.Hour), time.Duration(rand.IntN(60)+1)*time.Second).WithPrecision(unit)
		border := from.Add(time.Duration(rand.IntN(60)) * time.Minute)
		key := border.Add(time.Duration(rand.Int64N(int64(4*unit))) - 2*unit)
		got, err := rule.Slot(key)
		for _, stored := range []time.Time{key.Truncate(kept), key.Round(kept), key.Truncate(kept).Add(kept), key.Round(time.Microsecond).Round(kept)} {
			if stored.Equal(key.Truncate(kept).Add(kept)) && key.Truncate(kept).Equal(key) {
				continue // nobody rounds what is whole
			}
			where, errStored := rule.Slot(stored)
			if err == nil && (errStored != nil || where != got) {
				t.Fatalf("%v in a column of %v: %v is in slot %d, and stored as %v in %d (%v)", unit, kept, key, got, stored, where, errStored)
			}
			if kept == unit && errors.Is(errStored, sharding.ErrKeyType) {
				t.Fatalf("%v: %v is whole, and refused: %v", unit, stored, errStored)
			}
		}
	}
}

// A column that stores clock times cannot distinguish the two hours with the same clock time.
func TestBothHoursOfAClockThatIsSetBackAreInOnePiece(t *testing.T) {
	zone := berlin(t)
	from := time.Date(2026, 10, 24, 0, 0, 0, 0, zone)
	hourly := sharding.Interval(from, from.AddDate(0, 0, 3), time.Hour).WithZone(zone)
	first := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC) // 02:30 in summer
	second := first.Add(time.Hour)                          // 02:30 in winter
	if a, b := slot(t, hourly, first), slot(t, hourly, second); a != b || a != 26 {
		t.Errorf("02:30 is in slots %d and %d", a, b)
	}
	if a, b := slot(t, hourly.WithZone(nil), first), slot(t, hourly.WithZone(time.UTC), second); a+1 != b {
		t.Errorf("in UTC, the hours are %d and %d", a, b)
	}
	days := sharding.Interval(from, from.AddDate(0, 0, 3), 24*time.Hour).WithZone(zone)
	if days.Slots() != 3 {
		t.Errorf("%d days", days.Slots())
	}
	for day := range 3 { // the second one has 25 hours
		midnight := from.AddDate(0, 0, day)
		if a, b := slot(t, days, midnight), slot(t, days, midnight.AddDate(0, 0, 1).Add(-time.Second)); int(a) != day || a != b {
			t.Errorf("day %d is in slots %d and %d", day, a, b)
		}
	}
	if _, err := days.Slot(from.AddDate(0, 0, 3)); !errors.Is(err, sharding.ErrNoSlot) {
		t.Error(err)
	}
}

func TestAnIntervalReturnsItsParameters(t *testing.T) {
	zone := berlin(t)
	rule := sharding.Interval(noon, noon.Add(time.Hour), time.Minute)
	if rule.Precision() != time.Second || rule.Zone() != time.UTC {
		t.Errorf("%v, %v", rule.Precision(), rule.Zone())
	}
	rule = rule.WithPrecision(time.Millisecond).WithZone(zone)
	if from, to := rule.Bounds(); rule.Precision() != time.Millisecond || rule.Zone() != zone || !from.Equal(noon) || !to.Equal(noon.Add(time.Hour)) {
		t.Errorf("%v, %v, %v, %v", rule.Precision(), rule.Zone(), from, to)
	}
}

// Tables of a group have equal rules, and each caller loads its zone again.
func TestIntervalsOfOneZoneAreEqual(t *testing.T) {
	table := func(name string) sharding.Table {
		m, err := sharding.Spread([]string{"a"}, 3, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: "at", Group: "g", Map: m, Rule: sharding.Interval(noon, noon.Add(3*time.Hour), time.Hour).WithZone(berlin(t))}
	}
	if _, err := sharding.New(sharding.DBs{"a": new(sql.DB)}, table("orders"), table("items")); err != nil {
		t.Error(err)
	}
}

func TestIntervalsAllocateNothing(t *testing.T) {
	var rule sharding.Rule = sharding.Interval(noon, noon.Add(time.Hour), time.Minute).WithZone(berlin(t))
	var key any = noon.Add(90 * time.Second)
	if n := testing.AllocsPerRun(100, func() { _, _ = rule.Slot(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// With the variable TZ set, time.Local has that zone's name instead of "Local".
func TestTheMachinesZoneIsRefusedWhateverItsName(t *testing.T) {
	if os.Getenv("SHARDID_ZONE_TRIAL") != "" {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if n := sharding.Interval(start, start.AddDate(0, 1, 0), 24*time.Hour).WithZone(time.Local).Slots(); n != 0 {
			t.Errorf("%v: %d slots", time.Local, n)
		}
		return
	}
	for _, tz := range []string{"Asia/Shanghai", "UTC", ""} {
		trial := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		trial.Env = append(os.Environ(), "SHARDID_ZONE_TRIAL=1", "TZ="+tz)
		if out, err := trial.CombinedOutput(); err != nil {
			t.Errorf("TZ=%s: %v\n%s", tz, err, out)
		}
	}
}
