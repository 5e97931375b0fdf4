// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"html/template"
	"strconv"
	"time"
)

// functions are the template functions that format values.
var functions = template.FuncMap{
	"stamp":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") },
	"date":    func(t *time.Time) string { return t.UTC().Format("2006-01-02") },
	"count":   count,
	"rate":    rate,
	"left":    left,
	"seconds": seconds,
	"secs":    wholeSeconds,
	"millis":  func(ms float64) string { return seconds(ms / 1e3) },
	"lease":   leaseLeft,
	"percent": func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) },
	"last":    func(slots int) int { return slots - 1 },
	"bars":    bars,
	"odd":     func(i int) bool { return i%2 == 1 },
}

// count formats a whole number with spaces between its thousands.
func count(n any) (string, error) {
	var text string
	switch n := n.(type) {
	case int64:
		text = strconv.FormatInt(n, 10)
	case uint64:
		text = strconv.FormatUint(n, 10)
	case *int64:
		text = strconv.FormatInt(*n, 10)
	default:
		return "", fmt.Errorf("a %T is counted", n)
	}
	digits := len(text)
	if text[0] == '-' {
		digits--
	}
	grouped := []byte(text[:len(text)-digits])
	for i := len(text) - digits; i < len(text); i++ {
		grouped = append(grouped, text[i])
		if rest := len(text) - 1 - i; rest > 0 && rest%3 == 0 {
			grouped = append(grouped, "\u202f"...) // NARROW NO-BREAK SPACE
		}
	}
	return string(grouped), nil
}

func rate(perSecond float64) string {
	if perSecond == 0 {
		return ""
	}
	return strconv.FormatFloat(perSecond, 'f', 1, 64)
}

func left(s *float64) string {
	if s == nil {
		return "without end"
	}
	return seconds(*s)
}

// wholeSeconds formats a number of seconds, which may be unknown.
func wholeSeconds(s any) (string, error) {
	switch s := s.(type) {
	case int64:
		return seconds(float64(s)), nil
	case *int64:
		return seconds(float64(*s)), nil
	}
	return "", fmt.Errorf("a %T is a number of seconds", s)
}

// seconds formats a duration with about three digits.
func seconds(s float64) string {
	const most = 1e9 // about 30 years
	d := time.Duration(min(max(s, -most), most) * float64(time.Second))
	switch {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

func leaseLeft(l Lease) string {
	switch {
	case l.Left > 0 && l.Held:
		return seconds(l.Left)
	case l.Left > 0:
		return "released, free in " + seconds(l.Left)
	case l.Held:
		return "ended " + seconds(-l.Left) + " ago, not released"
	}
	return "free for " + seconds(-l.Left)
}

// bar is a part of the picture of a shard's slots.
type bar struct {
	Run

	Share float64 // the fraction of the part's slots that the shard has
}

// Width returns the number of slots of the part.
func (b bar) Width() int { return b.Last - b.First + 1 }

// mostBars is the largest number of parts in the picture of a shard, which has no more pixels.
const mostBars = 512

// bars returns the runs of a shard. If there are too many, it returns equal parts of all slots,
// each with the fraction of its slots that the shard has.
func bars(s Shard, slots int) (all []bar) {
	if len(s.Runs) <= mostBars {
		for _, r := range s.Runs {
			all = append(all, bar{r, 1})
		}
		return all
	}
	held := make([]int, mostBars)
	for _, r := range s.Runs {
		for n := r.First; n <= r.Last; n++ {
			held[n*mostBars/slots]++
		}
	}
	for i, n := range held {
		b := bar{Run: Run{(i*slots + mostBars - 1) / mostBars, ((i+1)*slots+mostBars-1)/mostBars - 1}}
		b.Share = float64(n) / float64(b.Width())
		if n > 0 {
			all = append(all, b)
		}
	}
	return all
}
