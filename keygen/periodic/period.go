package periodic

import "time"

// Period is how long numbers count on before they begin at 1 again.
type Period int

// The periods.
const (
	Day Period = iota + 1
	Month
	Year
)

// layouts are the names of periods, in the words of package time. Those of one kind
// sort by time.
var layouts = map[Period]string{Day: "2006-01-02", Month: "2006-01", Year: "2006"}

// span is one day, month or year.
type span struct {
	name     string // "2026-11"
	from, to time.Time
}

// at returns the one that t lies in, in the zone of t.
func (p Period) at(t time.Time) span {
	y, m, d := t.Date()
	next := [3]int{0, 0, 1}
	switch p {
	case Month:
		d, next = 1, [3]int{0, 1, 0}
	case Year:
		m, d, next = 1, 1, [3]int{1, 0, 0}
	}
	begin := time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	end := time.Date(y+next[0], m+time.Month(next[1]), d+next[2], 0, 0, 0, 0, t.Location())
	return span{begin.Format(layouts[p]), begin, end}
}

// digits is how many a period's name has.
func (p Period) digits() int {
	return map[Period]int{Day: 8, Month: 6, Year: 4}[p]
}
