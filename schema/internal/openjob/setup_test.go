// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

func TestRulesWithBoundsAreKnownByAllOfThem(t *testing.T) {
	list := func(last string) sharding.Rule {
		return sharding.List(map[string]sharding.Slot{"eu": 0, "us": 1, last: 2})
	}
	epochs := func(from int64) sharding.Rule {
		return sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}, sharding.Epoch{From: from, Slots: []sharding.Slot{0, 1, 2}})
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	daily := func() sharding.IntervalRule { return sharding.Interval(start, start.AddDate(0, 0, 9), 24*time.Hour) }
	for name, pair := range map[string][2]func() sharding.Rule{
		"precision": {func() sharding.Rule { return daily() }, func() sharding.Rule { return daily().WithPrecision(time.Millisecond) }},
		"zone":      {func() sharding.Rule { return daily() }, func() sharding.Rule { return daily().WithZone(time.FixedZone("here", 1)) }},
		"ranges":    {func() sharding.Rule { return sharding.Ranges(77, 12345) }, func() sharding.Rule { return sharding.Ranges(77, 12346) }},
		"list":      {func() sharding.Rule { return list("asia") }, func() sharding.Rule { return list("africa") }},
		"epochs":    {func() sharding.Rule { return epochs(12345) }, func() sharding.Rule { return epochs(12346) }},
	} {
		one, again, other := ruleText(pair[0]()), ruleText(pair[0]()), ruleText(pair[1]())
		if one != again || one == other {
			t.Errorf("%s: the same %t, another one the same %t", name, one == again, one == other)
		}
	}
}

// Jobs that are under way have noted it.
func TestTheTextOfARuleStaysAsItWas(t *testing.T) {
	for want, rule := range map[string]sharding.Rule{
		"{Kind:low Slots:1024 Shift:0 Width:10 Offset:0 Step:0} 1023 true 0 true":       sharding.Low(10),
		"{Kind:hash_text Slots:4 Shift:0 Width:0 Offset:0 Step:0} 0 false 0 false":      sharding.HashText(4),
		"{Kind:offset_step Slots:5 Shift:0 Width:0 Offset:2 Step:5} 0 true 0 true":      sharding.OffsetStep(2, 5),
		"{Kind:interval Slots:9 Shift:0 Width:0 Offset:0 Step:0} 0 false 0 false 0 fal": sharding.Interval(time.Unix(0, 0), time.Unix(9, 0), time.Second),
	} {
		if got := ruleText(rule); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got[:len(want)], want)
		}
	}
}
