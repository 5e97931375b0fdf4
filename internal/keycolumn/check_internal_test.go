// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// verdict abbreviates the faults: "error", "warning", "notice", "collation".
func verdict(rule sharding.Rule, c dialect.Column, clocks ...dialect.Clock) string {
	var all []string
	for _, f := range (columnCheck{name: "k", rule: rule, is: sharding.Describe(rule), column: c, clocks: clocks}).faults() {
		word := map[Severity]string{Error: "error", Warning: "warning", Notice: "notice"}[f.Severity]
		if f.Collation {
			word = "collation"
		}
		if f.Column != "k" || !strings.HasPrefix(f.Message, "k is ") || f.Fix == "" {
			word = f.Message
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

const folds = "utf8mb4_general_ci"

var anything = sharding.Func(2, func(any) (sharding.Slot, error) { return 0, nil })

func TestEachKindOfColumnIsCheckedUnderEachKindOfRule(t *testing.T) {
	hash, low, text, list := sharding.Hash(4), sharding.Low(2), sharding.HashText(4), sharding.List(map[string]sharding.Slot{"de": 0, "fr": 1})
	for _, c := range []struct {
		column                     dialect.Column
		low, hash, text, list, own string
	}{
		{dialect.Column{Holds: dialect.HoldsIntegers}, "", "", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsDecimals}, "", "", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsDecimals, Scale: 2}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsNumbers}, "", "", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsFloats}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsBits}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsYears}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsTexts}, "", "", "", "", ""},
		{dialect.Column{Holds: dialect.HoldsTexts, Loose: true}, "warning", "warning", "", "", ""},
		{dialect.Column{Holds: dialect.HoldsTexts, Collation: folds}, "", "", "collation", "collation", "collation"},
		{dialect.Column{Holds: dialect.HoldsTexts, Lax: true}, "warning", "warning", "warning", "warning", "warning"},
		{dialect.Column{Holds: dialect.HoldsBytes}, "", "", "", "", ""},
		{dialect.Column{Holds: dialect.HoldsPadded}, "", "", "notice", "notice", ""},
		{dialect.Column{Holds: dialect.HoldsMembers, Collation: folds}, "error", "error", "error", "collation", "collation"},
		{dialect.Column{Holds: dialect.HoldsSets}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsClocks}, "error", "error", "error", "error", ""},
		{dialect.Column{Holds: dialect.HoldsForms}, "error", "error", "warning", "warning", ""},
		{dialect.Column{Holds: dialect.HoldsForms, Type: "uuid"}, "error", "error", "notice", "notice", ""},
		{dialect.Column{Holds: dialect.HoldsAnything}, "", "", "", "", ""},
	} {
		for rule, want := range map[*sharding.Rule]string{&low: c.low, &hash: c.hash, &text: c.text, &list: c.list, &anything: c.own} {
			if got := verdict(*rule, c.column); got != want {
				t.Errorf("%s under %s: %q, want %q", c.column.Holds, sharding.Describe(*rule).Kind, got, want)
			}
		}
	}
}

var january = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func daily() sharding.IntervalRule {
	return sharding.Interval(january, january.AddDate(1, 0, 0), 24*time.Hour)
}

func TestAColumnOfTimesHasThePrecisionThatTheRuleAssumes(t *testing.T) {
	clock := func(precision time.Duration) dialect.Column {
		return dialect.Column{Holds: dialect.HoldsClocks, Precision: precision, Parsed: true}
	}
	for _, c := range []struct {
		rule   sharding.IntervalRule
		column dialect.Column
		want   string
	}{
		{daily(), clock(time.Second), ""},
		{daily(), clock(time.Millisecond), "notice"}, // refuses more than it must
		{daily(), clock(time.Nanosecond), "notice"},
		{daily().WithPrecision(24 * time.Hour), clock(time.Second), "notice"},
		{daily().WithPrecision(1500 * time.Millisecond), clock(time.Second), "error"}, // 1.5 becomes 2
		{daily().WithPrecision(time.Millisecond), clock(time.Millisecond), ""},
		{daily().WithPrecision(time.Millisecond), clock(time.Second), "error"},
		{daily(), clock(24 * time.Hour), "error"},
		{daily().WithPrecision(24 * time.Hour), clock(24 * time.Hour), ""},
		{daily(), dialect.Column{Holds: dialect.HoldsInstants, Precision: time.Second, Parsed: true}, ""},
		{daily(), dialect.Column{Holds: dialect.HoldsClocks, Precision: time.Second, Parsed: true, Zoneless: true}, "warning"},
		{daily(), dialect.Column{Holds: dialect.HoldsClocks, Precision: time.Second}, "warning"}, // without parseTime
		{daily(), dialect.Column{Holds: dialect.HoldsTexts}, "error"},
		{daily(), dialect.Column{Holds: dialect.HoldsIntegers}, "error"},
		{daily(), dialect.Column{Holds: dialect.HoldsForms}, "error"},
	} {
		if got := verdict(c.rule, c.column); got != c.want {
			t.Errorf("%v under %v: %q, want %q", c.column, c.rule.Precision(), got, c.want)
		}
	}
}

// clocksOf returns the conversions of times by a driver with the zone loc and a session with
// another zone.
func clocksOf(t *testing.T, rule sharding.IntervalRule, loc, session *time.Location) []dialect.Clock {
	t.Helper()
	var all []dialect.Clock
	for _, at := range sampled(rule) {
		_, sent := at.In(loc).Zone()
		_, kept := at.In(session).Zone()
		all = append(all, dialect.Clock{Sent: time.Duration(sent) * time.Second, Kept: time.Duration(kept) * time.Second})
	}
	return all
}

func TestTheClocksOfRuleDriverAndSessionDistinguishTheSameTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	east := time.FixedZone("east", 8*3600)
	for name, c := range map[string]struct {
		rule, loc, session *time.Location
		datetime, stamp    string // verdicts of DATETIME and TIMESTAMP
		date               string
	}{
		"all in UTC":                          {time.UTC, time.UTC, time.UTC, "", "", ""},
		"all in Berlin":                       {berlin, berlin, berlin, "", "", ""},
		"a session in Berlin":                 {time.UTC, time.UTC, berlin, "", "warning", ""},
		"a session without summer":            {berlin, berlin, time.UTC, "", "", ""},
		"a driver in Berlin":                  {time.UTC, berlin, berlin, "error", "error", "error"},
		"a rule in Berlin":                    {berlin, time.UTC, time.UTC, "error", "error", "error"},
		"a driver always eight hours ahead":   {time.UTC, east, time.UTC, "", "", "error"},
		"a driver and a session eight ahead":  {time.UTC, east, east, "", "", "error"},
		"a rule always eight hours ahead":     {east, time.UTC, time.UTC, "", "", "error"},
		"a rule and a driver in the far east": {east, east, time.UTC, "", "", ""},
	} {
		for column, want := range map[dialect.Column]string{
			{Holds: dialect.HoldsClocks, Precision: time.Second, Parsed: true}:                c.datetime,
			{Holds: dialect.HoldsClocks, Precision: time.Second, Parsed: true, Session: true}: c.stamp,
			{Holds: dialect.HoldsClocks, Precision: 24 * time.Hour, Parsed: true}:             c.date,
		} {
			rule := daily().WithPrecision(column.Precision).WithZone(c.rule)
			if got := verdict(rule, column, clocksOf(t, rule, c.loc, c.session)...); got != want {
				t.Errorf("%s, %v, session %t: %q, want %q", name, column.Precision, column.Session, got, want)
			}
		}
	}
}

func TestTimesAreSampledInEachMonthUpToTwentyYears(t *testing.T) {
	for years, want := range map[int]int{1: 13, 10: 122, 100: 203} {
		rule := sharding.Interval(january, january.AddDate(years, 0, 0), 1000*time.Hour)
		if got := len(sampled(rule)); got > maxSamples || got < want-2 || got > want+5 {
			t.Errorf("%d years: %d samples, want about %d", years, got, want)
		}
	}
}
