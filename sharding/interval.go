// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"time"
)

// Interval cuts the time between from and to into pieces of every, the last of
// which may be shorter: times of the first piece are in slot 0. It takes time.Time and
// driver.Valuers of it, and refuses text, whose time zone nobody knows. Times
// before from, or at to and later, are refused with [ErrNoSlot], so that to must
// be moved in time.
//
// A row is looked for by what its column has made of the time, so the rule has to
// know that: how exact the column is ([IntervalRule.WithPrecision], a second unless
// said) and whose clock it keeps ([IntervalRule.WithZone], UTC unless said).
func Interval(from, to time.Time, every time.Duration) IntervalRule {
	return IntervalRule{from: from.Round(0), to: to.Round(0), every: every}.built()
}

// IntervalRule is the rule of [Interval], which makes it; it is immutable.
type IntervalRule struct {
	from, to  time.Time
	every     time.Duration
	precision time.Duration  // 0 is defaultPrecision
	zone      *time.Location // nil is UTC

	first time.Time // from on the clock of the zone, written as UTC
	span  time.Duration
	wrong error
}

// defaultPrecision is that of MySQL's DATETIME and TIMESTAMP.
const defaultPrecision = time.Second

// WithPrecision returns the rule for a column that keeps times to the unit:
// time.Millisecond for DATETIME(3), which GORM makes of a time.Time on MySQL and
// MariaDB, time.Microsecond for DATETIME(6) and PostgreSQL's types, time.Nanosecond for
// SQLite, where the driver writes times as texts, 24 hours for DATE. 0 is the default,
// a second: so exact are DATETIME and TIMESTAMP without digits.
//
// A finer time is rounded by some databases (MySQL, PostgreSQL) and cut by others
// (MariaDB, MySQL with TIME_TRUNCATE_FRACTIONAL). The rule takes it where that makes no
// difference, and refuses it with [ErrKeyType] where its piece ends in between:
// 23:59:59.9997 in DATETIME(3) may become the next day. Truncate keys to the unit to
// have all of them taken.
//
// The unit must not be longer than a piece, and a day a multiple of it. A unit that is a
// multiple of the column's loses nothing: it refuses more times than it must, those of
// the last second of a piece under the default. Any other unit than the column's loses
// rows. schema.Doctor, gormplugin.Check and the inspection of a migration compare the two.
func (r IntervalRule) WithPrecision(unit time.Duration) IntervalRule {
	r.precision = unit
	return r.built()
}

// WithZone returns the rule for columns that keep what the clocks of a zone show, as
// MySQL's DATETIME does with the driver's loc, TIMESTAMP when the session has a zone
// of its own, and DATE. Pieces are then cut by these clocks, so that pieces of 24 hours
// are days of the zone, and both hours that a clock shows when daylight saving time
// ends are in one piece: the column does not tell them apart. nil is the default, UTC,
// which is go-sql-driver's, too; with it pieces are cut by the time itself.
//
// The zone is one by name: time.Local differs from machine to machine and is refused.
func (r IntervalRule) WithZone(zone *time.Location) IntervalRule {
	r.zone = zone
	return r.built()
}

var _ Rule = IntervalRule{}

// machinesZone has the name of a zone, not "Local", where the variable TZ says one. A
// program that sets time.Local by itself has said which zone it is.
var machinesZone = time.Local //nolint:gosmopolitan // it is what is refused

// built computes what follows from the fields, and finds what is wrong with them.
func (r IntervalRule) built() IntervalRule {
	r.from, r.to = r.from.In(r.Zone()), r.to.In(r.Zone())
	r.first = r.clock(r.from)
	last := r.clock(r.to)
	r.span = last.Sub(r.first) // at most 292 years; more is cut to that, and refused
	switch unit := r.Precision(); {
	case r.every <= 0 || r.span <= 0 || !r.first.Add(r.span).Equal(last):
		r.wrong = fmt.Errorf("Interval(%v, %v, %v): to must be after from, by less than 292 years, and every above 0", r.from, r.to, r.every)
	case (r.span-1)/r.every >= MaxSlots:
		r.wrong = fmt.Errorf("Interval(%v, %v, %v): has more than %d pieces", r.from, r.to, r.every, MaxSlots)
	case unit <= 0 || (24*time.Hour)%unit != 0 || unit > r.every:
		r.wrong = fmt.Errorf("Interval: the precision is %v; it must be a part of a day, and not longer than a piece of %v: set WithPrecision to what the column keeps", unit, r.every)
	case r.Zone() != time.UTC && (r.Zone() == machinesZone || r.Zone().String() == "Local"):
		r.wrong = errors.New("Interval: the zone is Local, which differs from machine to machine; set WithZone to one from time.LoadLocation")
	default:
		r.wrong = nil
	}
	return r
}

func (r IntervalRule) check() error {
	if r.wrong == nil && r.every == 0 {
		return errors.New("Interval: an IntervalRule is made by Interval")
	}
	return r.wrong
}

// Slots returns the number of pieces, 0 for a rule that makes no sense.
func (r IntervalRule) Slots() int {
	if r.check() != nil {
		return 0
	}
	return int((r.span-1)/r.every) + 1
}

// Bounds returns the beginning of the first piece and the end of the last.
func (r IntervalRule) Bounds() (from, to time.Time) { return r.from, r.to }

// Precision returns the unit to which the column is taken to keep times.
func (r IntervalRule) Precision() time.Duration {
	if r.precision == 0 {
		return defaultPrecision
	}
	return r.precision
}

// Zone returns the zone whose clock the column is taken to keep.
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
			return 0, fmt.Errorf("%v: %w: a column that keeps times to %v may round it over the border of a piece; truncate keys to %[3]v, or set WithPrecision to what the column keeps", at, ErrKeyType, unit)
		}
	}
	if !inside {
		return 0, fmt.Errorf("%v: %w: it is not between %v and %v", at, ErrNoSlot, r.from, r.to)
	}
	return slot, nil
}

// clock is what the clocks of the zone show, as a time in UTC.
func (r IntervalRule) clock(at time.Time) time.Time {
	if r.zone == nil || r.zone == time.UTC {
		return at.UTC()
	}
	at = at.In(r.zone)
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// piece is that of a time on the clock; inside is false when there is none.
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
