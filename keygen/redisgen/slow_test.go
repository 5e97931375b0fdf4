// SPDX-License-Identifier: Apache-2.0

package redisgen_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/workerid"
)

// silent is a Redis that answers a script after a minute. Its client waits for that whatever
// becomes of the context, as go-redis does up to its ReadTimeout.
type silent struct{ standIn }

func (s *silent) Eval(ctx context.Context, script string, keys []string, args ...any) reply {
	time.Sleep(time.Minute)
	return s.standIn.Eval(ctx, script, keys, args...)
}

func (r reply) Text() (string, error) { return "ok", nil }

func TestACallEndsWithItsContextThoughTheClientWaitsForRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &silent{standIn: standIn{values: map[string]int64{}}}
		serials, serialsErr := redisgen.NewSerials(client, redisgen.SerialsConfig{Name: "order", Digits: 4, Zone: time.UTC})
		counter, counterErr := redisgen.New(client, redisgen.Config{Key: "ids"})
		periods, periodsErr := redisgen.NewPeriods(client, "shop")
		leases, leasesErr := redisgen.NewLeases(client, "shop")
		if err := errors.Join(serialsErr, counterErr, periodsErr, leasesErr); err != nil {
			t.Fatal(err)
		}
		begin, day := time.Now(), time.Now().Add(24*time.Hour)
		claim := workerid.Claim{Namespace: "shop", Owner: "me", Most: 1023, Layout: keygen.Twitter(), Term: time.Minute}
		for name, call := range map[string]func(context.Context) error{
			"a serial":        func(ctx context.Context) error { _, err := serials.Next(ctx); return err },
			"a seeded serial": func(ctx context.Context) error { return serials.Seed(ctx, 20261121_0042) },
			"a span":          func(ctx context.Context) error { _, err := counter.Reserve(ctx, 10); return err },
			"a seed":          func(ctx context.Context) error { _, err := counter.Seed(ctx, 10); return err },
			"a period's span": func(ctx context.Context) error {
				_, err := periods.Reserve(ctx, "a", "2000", begin, day, 1)
				return err
			},
			"a lease": func(ctx context.Context) error { _, err := leases.Take(ctx, claim); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			asked := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(asked) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(asked))
			}
			cancel()
		}
		time.Sleep(time.Hour) // until the client's calls have ended
	})
}

// Only then each answer shows whether the day's counter went back.
func TestOneCallForASerialTalksToRedisAtATimeAlsoWhenItsCallerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serials, err := redisgen.NewSerials(&silent{standIn: standIn{values: map[string]int64{}}}, redisgen.SerialsConfig{Name: "order", Digits: 4, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := serials.Next(ctx); err == nil {
			t.Fatal("it has an answer")
		}
		asked := time.Now()
		serial, err := serials.Next(t.Context())
		if took := time.Since(asked); err != nil || serial%10_000 != 2 || took != 2*time.Minute-time.Second {
			t.Errorf("%d, %v after %v", serial, err, took)
		}
	})
}
