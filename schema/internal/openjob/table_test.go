// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
)

func TestATimeThatAColumnKeepsIsOneOfTheRulesZone(t *testing.T) {
	shanghai := time.FixedZone("CST", 8*3600)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	days := sharding.Interval(start, start.AddDate(0, 0, 4), 24*time.Hour)
	for name, test := range map[string]struct {
		rule       sharding.Rule
		typ, value string
		want       any
	}{
		"a DATETIME":             {days, "datetime", "2026-01-02 03:04:05", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		"one of microseconds":    {days, "datetime", "2026-01-02 03:04:05.000006", time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
		"one of another zone":    {days.WithZone(shanghai), "datetime", "2026-01-02 03:04:05", time.Date(2026, 1, 2, 3, 4, 5, 0, shanghai)},
		"a DATE":                 {days, "date", "2026-01-02", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
		"a zero date":            {days, "datetime", "0000-00-00 00:00:00", "0000-00-00 00:00:00"},
		"a TIMESTAMP":            {days, "timestamp", "2026-01-02 03:04:05", "2026-01-02 03:04:05"},
		"a text":                 {days, "varchar", "2026-01-02 03:04:05", "2026-01-02 03:04:05"},
		"a rule that is not one": {sharding.HashText(4), "datetime", "2026-01-02 03:04:05", "2026-01-02 03:04:05"},
	} {
		got := timeOf(test.rule, test.typ, test.value)
		at, isTime := got.(time.Time)
		if want, should := test.want.(time.Time); isTime != should || isTime && !at.Equal(want) || !isTime && got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
