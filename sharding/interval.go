// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"time"
)

// Interval divides the time between from and to into pieces of length every. The last piece may be
// shorter. Times of the first piece are in slot 0. Interval accepts time.Time and driver.Valuers of
// it, and refuses text, whose time zone is unknown. Times before from, or at to or later, are
// refused with [ErrNoSlot], so to must be extended in time.
//
// A row is found by the time as its column stores it, so the rule must know the column's precision
// ([IntervalRule.WithPrecision], by default a second) and its time zone ([IntervalRule.WithZone],
// by default UTC). Conditions on the column, such as a range of times, then lead to their pieces. On SQLite they lead to
// none, because SQLite compares times as texts: queries go to all shards.
func Interval(from, to time.Time, every time.Duration) IntervalRule {
	return IntervalRule{from: from.Round(0), to: to.Round(0), every: every}.built()
}

// IntervalRule is the rule that [Interval] creates. It is immutable.
type IntervalRule struct {
	from, to  time.Time
	every     time.Duration
	precision time.Duration  // 0 is defaultPrecision
	zone      *time.Location // nil is UTC

	first time.Time // from on the clock of the zone, written as UTC
	span  time.Duration
	wrong error
}

// defaultPrecision is the precision of MySQL's DATETIME and TIMESTAMP.
const defaultPrecision = time.Second

// WithPrecision returns the rule for a column that stores times to this unit: time.Millisecond for
// DATETIME(3), which GORM creates for a time.Time on MySQL and MariaDB; time.Microsecond for
// DATETIME(6) and PostgreSQL's types; time.Nanosecond for SQLite, where the driver writes times as
// texts; 24 hours for DATE. 0 means the default, a second, the precision of DATETIME and TIMESTAMP
// without digits.
//
// Some databases round a finer time (MySQL, PostgreSQL), others truncate it (MariaDB, MySQL with
// TIME_TRUNCATE_FRACTIONAL). The rule accepts a time if both give the same piece, and otherwise
// refuses it with [ErrKeyType]: 23:59:59.9997 in DATETIME(3) may become the next day. Truncate keys
// to the unit, so that all of them are accepted.
//
// The unit must not be longer than a piece, and a day must be a multiple of it. A unit that is a
// multiple of the column's loses no rows, but refuses more times than necessary: the default
// refuses those of the last second of a piece. Any other unit than the column's loses rows.
// schema.Doctor, gormplugin.Check and the inspection of a migration compare the two.
func (r IntervalRule) WithPrecision(unit time.Duration) IntervalRule {
	r.precision = unit
	return r.built()
}

// WithZone returns the rule for columns that store the clock time of a zone: MySQL's DATETIME with
// the driver's loc, TIMESTAMP in a session with a time zone, and DATE. Pieces are then divided by
// clock time, so that pieces of 24 hours are days of the zone. The two hours with the same clock
// time at the end of daylight saving time are in one piece, because the column cannot distinguish
// them. nil means the default, UTC, which is go-sql-driver's default, too; pieces are then divided
// by the time itself.
//
// The zone must have a name: time.Local differs from machine to machine and is refused.
func (r IntervalRule) WithZone(zone *time.Location) IntervalRule {
	r.zone = zone
	return r.built()
}

var _ Rule = IntervalRule{}

// machinesZone has the name of a zone instead of "Local" if the variable TZ names one. A program
// that assigns time.Local has chosen the zone itself.
var machinesZone = time.Local //nolint:gosmopolitan // it is what is refused

// built computes the derived fields, and checks the rule.
func (r IntervalRule) built() IntervalRule {
	r.from, r.to = r.from.In(r.Zone()), r.to.In(r.Zone())
	r.first = r.clock(r.from)
	last := r.clock(r.to)
	r.span = last.Sub(r.first) // at most 292 years; more is cut to that, and refused
	switch unit := r.Precision(); {
	case r.every <= 0 || r.span <= 0 || !r.first.Add(r.span).Equal(last):
		r.wrong = fmt.Errorf("Interval(%v, %v, %v): to must be after from by less than 292 years, and every must be positive", r.from, r.to, r.every)
	case (r.span-1)/r.every >= MaxSlots:
		r.wrong = fmt.Errorf("Interval(%v, %v, %v): has more than %d pieces", r.from, r.to, r.every, MaxSlots)
	case unit <= 0 || (24*time.Hour)%unit != 0 || unit > r.every:
		r.wrong = fmt.Errorf("Interval: the precision is %v; it must divide a day, and must not be longer than a piece of %v; set WithPrecision to the precision of the column", unit, r.every)
	case r.Zone() != time.UTC && (r.Zone() == machinesZone || r.Zone().String() == "Local"):
		r.wrong = errors.New("Interval: the zone is Local, which differs from machine to machine; set WithZone to one from time.LoadLocation")
	default:
		r.wrong = nil
	}
	return r
}

func (r IntervalRule) check() error {
	if r.wrong == nil && r.every == 0 {
		return errors.New("Interval: an IntervalRule must be created with Interval")
	}
	return r.wrong
}

// Slots returns the number of pieces, 0 for an invalid rule.
func (r IntervalRule) Slots() int {
	if r.check() != nil {
		return 0
	}
	return int((r.span-1)/r.every) + 1
}

// Bounds returns the beginning of the first piece and the end of the last.
func (r IntervalRule) Bounds() (from, to time.Time) { return r.from, r.to }

// Precision returns the unit to which the column stores times.
func (r IntervalRule) Precision() time.Duration {
	if r.precision == 0 {
		return defaultPrecision
	}
	return r.precision
}

// Zone returns the zone whose clock time the column stores.
func (r IntervalRule) Zone() *time.Location {
	if r.zone == nil {
		return time.UTC
	}
	return r.zone
}

// Slot returns the piece of a time.
func (r IntervalRule) Slot(key any) (Slot, error) {
	if err := r.check(); err != nil {
		return 0, fmt.Errorf("%w: %w", err, ErrNoSlot)
	}
	at, err := toTime(key)
	if err != nil {
		return 0, err
	}
	unit := r.Precision()
	clock := r.clock(at.Round(0))
	below := clock.Truncate(unit)
	slot, inside := r.piece(below)
	if !below.Equal(clock) {
		if next, also := r.piece(below.Add(unit)); next != slot || also != inside {
			return 0, fmt.Errorf("%v: %w: a column that stores times to %v may round it into the next piece; truncate keys to %[3]v, or set WithPrecision to the precision of the column", at, ErrKeyType, unit)
		}
	}
	if !inside {
		return 0, fmt.Errorf("%v: %w: it is not between %v and %v (extend the rule for later times)", at, ErrNoSlot, r.from, r.to)
	}
	return slot, nil
}

// clock returns the clock time of the zone, as a time in UTC.
func (r IntervalRule) clock(at time.Time) time.Time {
	if r.zone == nil || r.zone == time.UTC {
		return at.UTC()
	}
	at = at.In(r.zone)
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// piece returns the piece of a clock time; inside is false if it has none.
func (r IntervalRule) piece(clock time.Time) (slot Slot, inside bool) {
	since := clock.Sub(r.first)
	if since < 0 || since >= r.span {
		return -1, false
	}
	return Slot(since / r.every), true
}

// toTime reads a key of a column that holds times.
func toTime(key any) (time.Time, error) {
	if at, ok := key.(time.Time); ok {
		return at, nil
	}
	s, err := read(key)
	if err == nil && s.kind != isTime {
		err = s.mistaken("a time.Time is expected")
	}
	return s.time, err
}
