// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"math"
	"testing"
)

func TestTheSlotsOfAShardAreDrawnInFewParts(t *testing.T) {
	const slots = 1<<16 - 1 // no multiple of the number of parts
	var even Shard
	for n := 0; n < slots; n += 2 {
		even.Runs = append(even.Runs, Run{n, n})
	}
	parts := bars(even, slots)
	next, held := 0, 0.
	for _, b := range parts {
		if b.First != next || b.Share < .49 || b.Share > .51 {
			t.Fatalf("%+v after %d", b, next-1)
		}
		next, held = b.Last+1, held+b.Share*float64(b.Width())
	}
	if len(parts) != mostBars || next != slots || math.Abs(held-float64(even.Held())) > 1e-6 {
		t.Errorf("%d parts up to %d hold %v of %d slots", len(parts), next, held, even.Held())
	}
}

func TestNumbersAreFormattedForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", -1234567: "-1\u202f234\u202f567", math.MinInt64: "-9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f808"} {
		if got, err := count(n); got != want || err != nil {
			t.Errorf("%d is written %q, %v", n, got, err)
		}
	}
	for s, want := range map[float64]string{0: "0s", 1.5e-5: "15µs", .0123: "12.3ms", 4.321: "4.32s", 75: "1m15s", 200000: "2 d 7 h", 1e300: "11574 d 1 h"} {
		if got := seconds(s); got != want {
			t.Errorf("%v s are written %q, not %q", s, got, want)
		}
	}
	for l, want := range map[Lease]string{{Left: 5, Held: true}: "5s", {Left: 5}: "released, free in 5s", {Left: -5, Held: true}: "ended 5s ago, not released", {Left: -5}: "free for 5s"} {
		if got := leaseLeft(l); got != want {
			t.Errorf("%+v is written %q", l, got)
		}
	}
}
