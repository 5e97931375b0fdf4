// SPDX-License-Identifier: Apache-2.0

package periodic

import "time"

// Period is the time after which numbers begin at 1 again.
type Period int

// The periods.
const (
	Day Period = iota + 1
	Month
	Year
)

// layouts are the names of periods, in the format of package time. Names of one kind sort
// by time.
var layouts = map[Period]string{Day: "2006-01-02", Month: "2006-01", Year: "2006"}

// span is one day, month or year.
type span struct {
	name     string // "2026-11"
	from, to time.Time
}

// at returns the period of t, in the zone of t.
func (p Period) at(t time.Time) span {
	y, m, d := t.Date()
	for ; ; y, m, d = p.after(y, m, d) {
		if s := p.begun(y, m, d, t.Location()); t.Before(s.to) {
			return s
		}
		// The clocks were set back from the next day into this one.
	}
}

// begun returns the period of a day.
func (p Period) begun(y int, m time.Month, d int, zone *time.Location) span {
	switch p {
	case Month:
		d = 1
	case Year:
		m, d = 1, 1
	}
	name := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Format(layouts[p])
	from := midnight(y, m, d, zone)
	y, m, d = p.after(y, m, d)
	return span{name, from, midnight(y, m, d, zone)}
}

// after returns the same day of the next period.
func (p Period) after(y int, m time.Month, d int) (int, time.Month, int) {
	switch p {
	case Month:
		return y, m + 1, d
	case Year:
		return y + 1, m, d
	}
	return y, m, d + 1
}

// midnight returns the first moment of a day. Where the clocks are set forward over
// midnight, that is the moment of the change; where midnight occurs twice, the first.
func midnight(y int, m time.Month, d int, zone *time.Location) time.Time {
	at := time.Date(y, m, d, 0, 0, 0, 0, zone) // one of the two, or one near the gap
	begin, end := at.ZoneBounds()
	_, offset := at.Zone()
	wall := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	switch late := at.Unix() + int64(offset) - wall; {
	case late < 0:
		return end
	case late > 0:
		return begin
	case !begin.IsZero():
		_, offset = begin.Add(-1).Zone()
		if first := time.Unix(wall-int64(offset), 0).In(zone); first.Before(begin) {
			return first
		}
	}
	return at
}

// maxDigits is how many digits are left for the count, of the 18 that every int64 can have.
func (p Period) maxDigits() int {
	return map[Period]int{Day: 10, Month: 12, Year: 14}[p]
}
