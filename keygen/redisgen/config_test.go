package redisgen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen/redisgen"
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

func TestWhatNoConstructorHasMadeRefuses(t *testing.T) {
	var (
		counter redisgen.Counter
		serials redisgen.Serials
		texts   redisgen.Texts
	)
	_, reserved := counter.Reserve(t.Context(), 1)
	_, seeded := counter.Seed(t.Context(), 1)
	_, next := serials.Next(t.Context())
	_, text := texts.Next(t.Context())
	for name, err := range map[string]error{"Reserve": reserved, "Seed": seeded, "Next": next, "Texts": text, "Serials.Seed": serials.Seed(t.Context(), 1)} {
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
