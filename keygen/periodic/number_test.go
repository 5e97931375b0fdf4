// SPDX-License-Identifier: Apache-2.0

package periodic_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/periodic"
)

func TestNumbersComeBackFromTheirTextsAndFromJSON(t *testing.T) {
	for text, id := range map[string]int64{
		"2026-11-21-0001": 202611210001, "2026-11-000042": 202611000042, "2026-11-21": 20261121, "2026-001": 2026001,
		"2026-99999999999999": 202699999999999999, "9999-12-31-9999999999": 999912319999999999, "2024-02-29-1": 202402291,
	} {
		n, err := periodic.ParseNumber(text)
		if err != nil || n.String() != text || n.Int64() != id {
			t.Errorf("%s is %+v, %d, %v", text, n, n.Int64(), err)
		}
		data, err := json.Marshal(map[string]periodic.Number{"number": n})
		if err != nil || string(data) != `{"number":"`+text+`"}` {
			t.Errorf("%s, %v", data, err)
		}
		back := map[string]periodic.Number{}
		if err := json.Unmarshal(data, &back); err != nil || back["number"] != n {
			t.Errorf("%+v, %v", back, err)
		}
	}
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	given, err := open(t, monthly(newMemory(now), func(c *periodic.Config) { c.Now = now })).Next(t.Context(), "shop7")
	if back, parsed := periodic.ParseNumber(given.String()); err != nil || parsed != nil || back != given {
		t.Errorf("%+v, %v; read again %+v, %v", given, err, back, parsed)
	}
}

func TestTextsThatNoNumberHasAreRefused(t *testing.T) {
	n := periodic.Number{Period: "2026", Count: 1, Digits: 1}
	for _, text := range []string{
		"-", "2026", "2026-", "-1", "1", "2026-0", "2026-000", "2026-+1", "2026--1", "2026-11-x", "2026-13-001", "2026-02-29-001", "2026-1-001",
		"2026-11-1-001", "0999-1", "12026-1", "2026-011-001", " 2026-1", "2026-1 ", "2026-100000000000000", "2026-11-1000000000000", "2026-11-21-10000000000",
		"2026-11-21-1-1", "2026-9223372036854775808", strings.Repeat("2026-", 100),
	} {
		got, err := periodic.ParseNumber(text)
		if !errors.Is(err, keygen.ErrSyntax) || got != (periodic.Number{}) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if err := n.UnmarshalText([]byte(text)); !errors.Is(err, keygen.ErrSyntax) || n.Count != 1 {
			t.Errorf("%q became %+v, %v", text, n, err)
		}
	}
	if _, err := periodic.ParseNumber(""); !errors.Is(err, keygen.ErrSyntax) {
		t.Error(err)
	}
}

func TestAZeroNumberIsAnEmptyTextAndNoID(t *testing.T) {
	var zero periodic.Number
	data, err := json.Marshal(zero)
	if err != nil || string(data) != `""` || zero.Int64() != 0 {
		t.Errorf("%s, %v, %d", data, err, zero.Int64())
	}
	n := periodic.Number{Period: "2026", Count: 1, Digits: 1}
	if err := json.Unmarshal(data, &n); err != nil || n != zero {
		t.Errorf("%+v, %v", n, err)
	}
	for _, n := range []periodic.Number{{Period: "2026-11", Count: 42}, {Period: "x", Count: 1, Digits: 1}, {Period: "2026", Count: math.MaxInt64, Digits: 14}, {Period: "2026", Count: -1, Digits: 3}} {
		if n.Int64() != 0 {
			t.Errorf("%+v is %d", n, n.Int64())
		}
	}
}

func TestAClockWhoseYearHasNotFourDigitsGetsNoNumber(t *testing.T) {
	for _, year := range []int{999, 10000} {
		now := func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
		n, err := open(t, monthly(newMemory(now), func(c *periodic.Config) { c.Now = now })).Next(t.Context(), "shop7")
		if !errors.Is(err, keygen.ErrClockRollback) {
			t.Errorf("%v, %v", n, err)
		}
	}
}
