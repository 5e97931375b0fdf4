// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// times checks a column under Interval, which has a precision and a zone.
func (j columnCheck) times() []Fault {
	rule, ok := j.rule.(sharding.IntervalRule)
	switch j.column.Holds {
	case dialect.HoldsClocks, dialect.HoldsInstants:
	case dialect.HoldsTexts, dialect.HoldsAnything, dialect.HoldsNumbers:
		return j.fault(Error, "times come back as texts, which the rule refuses", "change it to DATETIME")
	default:
		return j.fault(Error, "it stores a time as something else", "change it to DATETIME")
	}
	if !ok {
		return nil
	}
	found := append(j.precision(rule), j.zone(rule)...)
	if !j.column.Parsed {
		found = append(found, j.fault(Warning, "the driver returns times as texts, which the rule refuses", "open the database with parseTime=true")...)
	}
	return found
}

// precision checks the precision. A column stores a time as one of the two neighbouring times that
// it can store. If the rule's unit consists of whole units of the column, no piece ends between
// these two, or the rule has refused the time.
func (j columnCheck) precision(rule sharding.IntervalRule) []Fault {
	kept, said := j.column.Precision, rule.Precision()
	fix := fmt.Sprintf("say WithPrecision(%v) to Interval", kept)
	switch {
	case kept > said || said%kept != 0:
		return j.fault(Error, fmt.Sprintf("the column stores times to %v, but the rule assumes %v: a time may be rounded into another piece than the rule's", kept, said), fix)
	case kept < said:
		found := j.fault(Notice, fmt.Sprintf("the column stores times to %v, but the rule assumes %v: it refuses times less than that before the end of a piece", kept, said), fix+", or truncate keys")
		found[0].Refuses = true
		return found
	}
	return nil
}

// zone checks the time zone of the column. Two clocks with a constant difference distinguish the
// same times, unless only the day is stored.
func (j columnCheck) zone(rule sharding.IntervalRule) []Fault {
	if j.column.Zoneless {
		return j.fault(Warning, "it stores no zone, so shardsql places a row by the clock time that its time.Time shows, and the rule alone by the instant", "change it to timestamp with time zone, or pass all times in UTC")
	}
	var apart time.Duration // difference of the driver's clock and the rule's
	for i, clock := range j.clocks {
		at := sampled(rule)[i]
		_, offset := at.In(rule.Zone()).Zone()
		now := clock.Sent - time.Duration(offset)*time.Second
		if i == 0 {
			apart = now
		}
		if now != apart || now != 0 && j.column.Precision >= 24*time.Hour {
			return j.fault(Error, fmt.Sprintf("the connection writes %v as %v, but the rule divides pieces by the clock of %v",
				at.Format(time.RFC3339), at.Add(clock.Sent).Format(time.DateTime), rule.Zone()),
				"call WithZone of Interval with the driver's loc, or set loc to the rule's zone, in all programs")
		}
	}
	if j.column.Session && j.skips() {
		return j.fault(Warning, "the session's time_zone skips an hour each year that the driver's loc has: its times are refused, or moved to another piece",
			"set the session's time_zone to '+00:00', or to the zone of the driver's loc")
	}
	return nil
}

// skips reports whether the session's clock is set forward at times at which the driver's clock is
// not.
func (j columnCheck) skips() bool {
	varies, differs := false, false
	var first *dialect.Clock
	for i := range j.clocks {
		c := &j.clocks[i]
		if c.Lost {
			continue
		}
		if first == nil {
			first = c
		}
		varies = varies || c.Kept != first.Kept
		differs = differs || c.Kept-first.Kept != c.Sent-first.Sent
	}
	return varies && differs
}

// needsClocks reports whether the stored times depend on the connection, as on MySQL and MariaDB.
func (j columnCheck) needsClocks(d dialect.Dialect) bool {
	return d.Name() == "mysql" && j.is.Keys == sharding.KeysTimes && j.column.Holds == dialect.HoldsClocks
}

func readClocks(ctx context.Context, db dialect.Querier, rule sharding.Rule) ([]dialect.Clock, error) {
	r, ok := rule.(sharding.IntervalRule)
	if !ok {
		return nil, nil
	}
	return dialect.Clocks(ctx, db, sampled(r))
}

// maxSamples is enough for twenty years of months.
const maxSamples = 240

// sampled returns a time of each month between the rule's bounds, up to the limit, and of the year
// after its beginning.
func sampled(rule sharding.IntervalRule) []time.Time {
	from, to := rule.Bounds()
	from = from.UTC().Truncate(24 * time.Hour)
	months := max(12, int(to.Sub(from).Hours()/(24*30))+1)
	step := (months + maxSamples - 1) / maxSamples
	var all []time.Time
	for month := 0; month < months; month += step {
		all = append(all, time.Date(from.Year(), from.Month()+time.Month(month), 1, 12, 0, 0, 0, time.UTC))
	}
	return all
}
