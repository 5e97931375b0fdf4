// SPDX-License-Identifier: Apache-2.0

package redisgen_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestConfigIsCheckedAndTheErrorNamesTheField(t *testing.T) {
	for want, cfg := range map[string]redisgen.Config{
		"Config.Key":         {},
		"Config.Step":        {Key: "k", Step: -1},
		"Config.Offset is 0": {Key: "k", Step: 3},
		"Config.Offset is 4": {Key: "k", Step: 3, Offset: 4},
		"Config.Floor":       {Key: "k", Floor: -1},
	} {
		if _, err := redisgen.New(newStandIn(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
	if _, err := redisgen.New[reply](nil, redisgen.Config{Key: "k"}); err == nil {
		t.Error("no client is no error")
	}
	if _, err := redisgen.New((*standIn)(nil), redisgen.Config{Key: "k"}); err == nil {
		t.Error("a client that is a nil pointer is no error")
	}
	if _, err := redisgen.NewSerials((*standIn)(nil), redisgen.SerialsConfig{Name: "a", Digits: 4, Zone: time.UTC}); err == nil {
		t.Error("a client that is a nil pointer is no error of serials")
	}
}

func TestPeriodsWithoutClientOrPrefixAreRefused(t *testing.T) {
	if _, err := redisgen.NewPeriods((*standIn)(nil), "shop"); err == nil || !strings.Contains(err.Error(), "client is nil") {
		t.Errorf("%v", err)
	}
	for _, prefix := range []string{"", "a{b}"} {
		if _, err := redisgen.NewPeriods(newStandIn(), prefix); err == nil || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	p, err := redisgen.NewPeriods(newStandIn(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for group, n := range map[string]int64{"a{b": 1, "a": 0, "b": -1} {
		if span, err := p.Reserve(t.Context(), group, "2026", time.Now(), time.Now(), n); err == nil {
			t.Errorf("%d of %q: %+v", n, group, span)
		}
	}
	var setup *keygen.SetupError // which no other try mends
	if _, err := p.Reserve(t.Context(), "order/{7}", "2026", time.Now(), time.Now(), 1); !errors.As(err, &setup) {
		t.Error(err)
	}
}

func TestLeasesWithoutClientOrPrefixAreRefused(t *testing.T) {
	if _, err := redisgen.NewLeases((*textStandIn)(nil), "shop"); err == nil || !strings.Contains(err.Error(), "client is nil") {
		t.Errorf("%v", err)
	}
	if _, err := redisgen.NewLeases(&textStandIn{}, ""); err == nil || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("%v", err)
	}
}

// An answer that no script gives is not accepted as a lease.
func TestAnswersThatNoScriptGivesAreErrors(t *testing.T) {
	claim := workerid.Claim{Namespace: "shop", Owner: "a", Most: 3, Layout: keygen.Twitter(), Term: time.Minute}
	for _, answer := range []string{"", "ok", "ok 1", "ok 1 2 3 x", "full", "full x", "lost", "what"} {
		l, err := redisgen.NewLeases(&textStandIn{answer}, "shop")
		if err != nil {
			t.Fatal(err)
		}
		if e, err := l.Take(t.Context(), claim); err == nil {
			t.Errorf("%q was taken for %+v", answer, e)
		}
		if ceiling, err := l.Renew(t.Context(), claim, workerid.Entry{}); err == nil && !strings.HasPrefix(answer, "ok 1") {
			t.Errorf("%q was taken for %d", answer, ceiling)
		}
	}
	l, err := redisgen.NewLeases(&textStandIn{"anonymous"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	var setup *keygen.SetupError
	if _, err := l.Take(t.Context(), claim); !errors.As(err, &setup) {
		t.Errorf("a server without a run_id: %v", err)
	}
}

func TestLeasesNeedUnitsAndEpochsOfWholeMicroseconds(t *testing.T) {
	l, err := redisgen.NewLeases(&textStandIn{"ok 1 1 1 1"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	unit, epoch := keygen.Twitter(), keygen.Twitter()
	unit.Unit = 1500 * time.Nanosecond
	epoch.Epoch = epoch.Epoch.Add(time.Nanosecond)
	for _, layout := range []keygen.Layout{unit, epoch} {
		claim := workerid.Claim{Namespace: "shop", Owner: "a", Most: 3, Layout: layout, Term: time.Minute}
		if _, err := l.Take(t.Context(), claim); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%v", err)
		}
	}
}

func TestWhatNoConstructorHasMadeRefuses(t *testing.T) {
	var (
		counter redisgen.Counter
		serials redisgen.Serials
		texts   redisgen.Texts
		leases  redisgen.Leases
		periods redisgen.Periods
	)
	_, period := periods.Reserve(t.Context(), "a", "2026", time.Now(), time.Now(), 1)
	_, taken := leases.Take(t.Context(), workerid.Claim{Namespace: "a", Owner: "b", Layout: keygen.Twitter()})
	_, reserved := counter.Reserve(t.Context(), 1)
	_, seeded := counter.Seed(t.Context(), 1)
	_, next := serials.Next(t.Context())
	_, text := texts.Next(t.Context())
	for name, err := range map[string]error{"Reserve": reserved, "Seed": seeded, "Next": next, "Texts": text, "Take": taken, "Periods": period, "Create": leases.Create(t.Context(), "a"), "Serials.Seed": serials.Seed(t.Context(), 1)} {
		if err == nil || !strings.Contains(err.Error(), "client is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSerialsConfigIsCheckedAndTheErrorNamesTheField(t *testing.T) {
	for want, cfg := range map[string]redisgen.SerialsConfig{
		"SerialsConfig.Name":   {Name: "a{b}", Digits: 4, Zone: time.UTC},
		"SerialsConfig.Digits": {Name: "a", Digits: 11, Zone: time.UTC},
		"SerialsConfig.Zone":   {Name: "a", Digits: 4},
		"SerialsConfig.Keep":   {Name: "a", Digits: 4, Zone: time.UTC, Keep: time.Minute},
		"SerialsConfig.Floor":  {Name: "a", Digits: 4, Zone: time.UTC, Floor: -1},
	} {
		if _, err := redisgen.NewSerials(newStandIn(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
}

// Groups that are used on one day only, such as one for each customer, must not use memory
// forever.
func TestPeriodsForgetTheGroupsOfPeriodsThatHaveEnded(t *testing.T) {
	p, err := redisgen.NewPeriods(newStandIn(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for day := range 5 {
		from := time.Date(2026, 11, 1+day, 0, 0, 0, 0, time.UTC)
		for customer := range 100 {
			group := fmt.Sprintf("order/%d/%d", day, customer)
			if _, err := p.Reserve(t.Context(), group, from.Format(time.DateOnly), from.Add(-time.Minute), from.Add(24*time.Hour+time.Minute), 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Reserve(t.Context(), "order/all", "2026-11", from.AddDate(0, 0, -day), from.AddDate(0, 1, -day), 1); err != nil {
			t.Fatal(err)
		}
	}
	// The day before may still be asked for by a process whose clock is behind.
	if n := redisgen.KnownGroups(p); n > 201 {
		t.Errorf("%d groups are remembered", n)
	}
}
