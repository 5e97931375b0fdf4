// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/ticket"
)

// redisCounter is a seeded counter. The reply's type is inferred from any of
// go-redis' clients.
func redisCounter(t *testing.T, c redis.UniversalClient, cfg redisgen.Config) *redisgen.Counter {
	t.Helper()
	counter := redisHandle(t, c, cfg)
	if _, err := counter.Seed(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return counter
}

// redisHandle is a counter as another process would open it.
func redisHandle(t *testing.T, c redis.UniversalClient, cfg redisgen.Config) *redisgen.Counter {
	t.Helper()
	counter, err := redisgen.New(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

func redisSegments(t *testing.T, s keygen.Source, step int64) *segment.Generator {
	t.Helper()
	g, err := segment.New(t.Context(), segment.Config{Source: s, Step: step})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// onEachRedis runs a test on one server and on a cluster.
func onEachRedis(t *testing.T, test func(t *testing.T, c redis.UniversalClient)) {
	t.Helper()
	t.Run("one server", func(t *testing.T) { test(t, server.RunRedis(t).Open(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, server.RunRedisCluster(t, 3).Open(t)) })
}

func TestRedisCountersKeepTheContract(t *testing.T) {
	onEachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		for n, cfg := range []redisgen.Config{{Key: "a"}, {Key: "b", Offset: 3, Step: 3}, {Key: "c", Floor: 5000}} {
			t.Run(fmt.Sprint("source ", n), func(t *testing.T) {
				keygentest.Source(t, func(t *testing.T) keygen.Source { return redisCounter(t, c, cfg) })
			})
			t.Run(fmt.Sprint("generator ", n), func(t *testing.T) {
				keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
					return redisSegments(t, redisCounter(t, c, cfg), 5000)
				})
			})
		}
	})
}

// A counter can be shared with programs that send INCRBY themselves.
func TestARedisCounterHoldsTheHighestKeyGiven(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	counter := redisCounter(t, c, redisgen.Config{Key: "ids", Offset: 2, Step: 3})
	for _, want := range []int64{2, 5, 8} {
		span, err := counter.Reserve(t.Context(), 1)
		if err != nil || span.First != want {
			t.Errorf("%+v, %v, want %d", span, err, want)
		}
		if got := c.Get(t.Context(), "ids").Val(); got != strconv.FormatInt(want, 10) {
			t.Errorf("the value is %s after %d", got, want)
		}
	}
	if id := c.IncrBy(t.Context(), "ids", 3).Val(); id != 11 {
		t.Errorf("another program got %d", id)
	}
	if span, err := counter.Reserve(t.Context(), 4); err != nil || span != (keygen.Span{First: 14, Count: 4, Step: 3}) {
		t.Errorf("%+v, %v", span, err)
	}
}

func TestARedisCounterIsExactBeyond53Bits(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	counter := redisCounter(t, c, redisgen.Config{Key: "ids"})
	const far = math.MaxInt64 - 100
	if _, err := counter.Seed(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if span, err := counter.Reserve(t.Context(), 1); err != nil || span.First != far+i {
			t.Errorf("%+v, %v, want %d", span, err, far+i)
		}
	}
	if span, err := counter.Reserve(t.Context(), 1000); !errors.Is(err, keygen.ErrExhausted) {
		t.Errorf("beyond the end: %+v, %v", span, err)
	}
}

func TestSeedRaisesARedisCounterAndNeverLowersIt(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	counter := redisHandle(t, c, redisgen.Config{Key: "ids", Offset: 1, Step: 4, Floor: 50})
	for _, step := range []struct{ seed, want int64 }{{1, 53}, {1, 57}, {60, 61}, {1000, 1001}, {9, 1005}, {99999999999, 100000000001}} {
		if _, err := counter.Seed(t.Context(), step.seed); err != nil {
			t.Fatal(err)
		}
		if span, err := counter.Reserve(t.Context(), 1); err != nil || span.First != step.want {
			t.Errorf("after Seed(%d): %+v, %v, want %d", step.seed, span, err, step.want)
		}
	}
}

func TestACounterThatRedisDoesNotHaveIsRefusedAndNotBegun(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	_, err := segment.New(t.Context(), segment.Config{Source: redisHandle(t, c, redisgen.Config{Key: "ids"})})
	if !errors.Is(err, keygen.ErrUnknownTag) || c.Exists(t.Context(), "ids").Val() != 0 {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}

func TestAKeyThatHoldsNoCounterIsSaidAtOnce(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	c.Set(t.Context(), "text", "abc", 0)
	c.RPush(t.Context(), "list", 1)
	c.Set(t.Context(), "{text}:20261121", "abc", 0)
	serials, err := redisgen.NewSerials(c, redisgen.SerialsConfig{
		Name: "text", Digits: 4, Zone: time.UTC, Now: func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func() error{
		"a counter of text": func() error {
			_, err := redisHandle(t, c, redisgen.Config{Key: "text"}).Reserve(t.Context(), 1000)
			return err
		},
		"a counter of a list": func() error {
			_, err := redisHandle(t, c, redisgen.Config{Key: "list"}).Reserve(t.Context(), 1000)
			return err
		},
		"serials": func() error {
			_, err := serials.Next(t.Context())
			return err
		},
		"seeding serials": func() error { return serials.Seed(t.Context(), 202611210007) },
	} {
		var setup *keygen.SetupError
		if err := ask(); !errors.As(err, &setup) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The rights that the error for a missing one names are enough, and each is needed.
func TestAUserWithTheRightsThatTheErrorNamesCountsInRedis(t *testing.T) {
	r := server.RunRedis(t)
	admin := r.Open(t)
	grant := func(rules ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "app"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	rights := []any{"+eval", "+get", "+set", "+incrby", "+incr", "+expireat", "~ids", "~{order}:*"}
	grant("on", ">secret")
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), Username: "app", Password: "secret", MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	day, err := strconv.ParseInt(time.Now().UTC().Format("20060102"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	all := func() error { // of a process that begins
		counter, serials := redisHandle(t, c, redisgen.Config{Key: "ids"}), redisSerials(t, c, func(*redisgen.SerialsConfig) {})
		_, seed := counter.Seed(t.Context(), 1)
		_, reserve := counter.Reserve(t.Context(), 1)
		_, next := serials.Next(t.Context())
		return errors.Join(seed, reserve, serials.Seed(t.Context(), day*10_000+1), next, admin.FlushAll(t.Context()).Err())
	}
	for missing := range rights {
		grant("resetkeys", "-@all")
		grant(slices.Delete(slices.Clone(rights), missing, missing+1)...)
		var setup *keygen.SetupError
		if err := all(); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "right") {
			t.Errorf("without %s: %v", rights[missing], err)
		}
	}
	grant(rights...)
	if err := all(); err != nil {
		t.Error(err)
	}
}

func TestAValueOfAnotherNumberingIsRefused(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	counter := redisCounter(t, c, redisgen.Config{Key: "ids", Offset: 1, Step: 2})
	c.Set(t.Context(), "ids", 100, 0)
	if span, err := counter.Reserve(t.Context(), 1); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("%+v, %v", span, err)
	}
}

func restart(t *testing.T, r *server.Redis) {
	t.Helper()
	r.Kill()
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNoIDComesTwiceWhenAPersistentRedisIsKilledAgainAndAgain(t *testing.T) {
	r := server.RunRedis(t, server.Persistent()...)
	c := r.Open(t)
	counter := redisCounter(t, c, redisgen.Config{Key: "ids"})
	first, second := redisSegments(t, counter, 3), redisSegments(t, redisHandle(t, r.Open(t), redisgen.Config{Key: "ids"}), 5)
	stopFirst, stopSecond := drawing(t, first), drawing(t, second)
	for range 20 {
		before := c.Get(t.Context(), "ids").Val()
		testwait.Until(t, "progress", func() bool { now, err := c.Get(t.Context(), "ids").Result(); return err == nil && now != before })
		restart(t, r)
	}
	ids := append(stopFirst(), stopSecond()...)
	t.Logf("%d ids over 20 kills", len(ids))
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

func TestARedisThatForgotIsRegressedAndNeverADuplicate(t *testing.T) {
	r := server.RunRedis(t)
	cfg := redisgen.Config{Key: "ids"}
	counter := redisCounter(t, r.Open(t), cfg)
	g := redisSegments(t, counter, 10)
	ids := someIDs(t, g, 5)
	restart(t, r)
	for {
		id, err := g.Next(t.Context())
		if err != nil {
			if !errors.Is(err, keygen.ErrRegressed) || !strings.Contains(err.Error(), "Seed") {
				t.Errorf("got %v", err)
			}
			break
		}
		ids = append(ids, id)
	}

	// Somebody who knows less begins it anew, so that it exists and is behind.
	other := redisHandle(t, r.Open(t), cfg)
	if _, err := other.Seed(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for range 20 { // it stays refused, however often it is tried
		if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
			t.Fatalf("%d, %v from a counter that went back", id, err)
		}
	}
	if _, err := counter.Seed(t.Context(), slices.Max(ids)+100); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, someIDs(t, g, 50)...)
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}

	// A new process has no state except its floor. The first generator ends before: it repeats a
	// refill that the restart interrupts, and would take ids from the counter below.
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	restart(t, r)
	cfg.Floor = slices.Max(ids) + 1
	c := r.Open(t)
	c.Set(t.Context(), "ids", 7, 0)
	late := redisHandle(t, c, cfg)
	for range 3 {
		if span, err := late.Reserve(t.Context(), 1000); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%+v, %v below the floor", span, err)
		}
	}
	if c.Get(t.Context(), "ids").Val() != "7" {
		t.Error("refused attempts moved the counter")
	}
	redisCounter(t, c, cfg)
	if span, err := late.Reserve(t.Context(), 1); err != nil || span.First != cfg.Floor {
		t.Errorf("seeded at the floor of %d: %+v, %v", cfg.Floor, span, err)
	}
}

func TestIndependentRedisMastersGoOnWithoutAKilledOne(t *testing.T) {
	var masters []*server.Redis
	var counters []ticket.Server
	for offset := range int64(3) {
		r := server.RunRedis(t, server.Persistent()...)
		masters = append(masters, r)
		counters = append(counters, redisCounter(t, r.Open(t), redisgen.Config{Key: "ids", Offset: offset + 1, Step: 3}))
	}
	g := openTickets(t, ticket.Config{Servers: counters, Step: 20})
	stop := drawing(t, g)
	progress := func(r *server.Redis) {
		t.Helper()
		c := r.Open(t)
		given := func() int64 { n, _ := c.Get(t.Context(), "ids").Int64(); return n } // 0 while it is down
		before := given()
		testwait.Until(t, "the server gives ids", func() bool { return given() > before })
	}
	for i, r := range masters {
		r.Kill()
		testwait.Until(t, "the failure shows", func() bool { return g.Stats().LastError != nil })
		progress(masters[(i+1)%3])
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the failure is over", func() bool { return g.Stats().LastError == nil })
		progress(r)
	}
	ids := stop()
	t.Logf("%d ids over 3 kills", len(ids))
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

func TestAMasterThatForgotIsPassedOver(t *testing.T) {
	var counters []ticket.Server
	var forgetful *server.Redis
	for offset := range int64(2) {
		forgetful = server.RunRedis(t)
		counters = append(counters, redisCounter(t, forgetful.Open(t), redisgen.Config{Key: "ids", Offset: offset + 1, Step: 2}))
	}
	g := openTickets(t, ticket.Config{Servers: counters, Step: 5})
	ids := someIDs(t, g, 30)
	restart(t, forgetful)
	// It is asked again when the ids of before are used up, or some time after it
	// did not answer.
	var err error
	testwait.Until(t, "the master is found out", func() bool {
		ids = append(ids, someIDs(t, g, 30)...)
		err = g.Stats().LastError
		return errors.Is(err, keygen.ErrRegressed)
	})
	if !strings.Contains(err.Error(), "server 2 of 2") {
		t.Errorf("the stats say %v", err)
	}
	ids = append(ids, someIDs(t, g, 500)...)
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
}

// A day in Kiritimati begins 14 hours before one in Greenwich.
var (
	kiritimati = time.FixedZone("+14", 14*60*60)
	noon       = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func redisSerials(t *testing.T, c redis.UniversalClient, change func(*redisgen.SerialsConfig)) *redisgen.Serials {
	t.Helper()
	cfg := redisgen.SerialsConfig{Name: "order", Digits: 4, Zone: time.UTC}
	change(&cfg)
	s, err := redisgen.NewSerials(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at is a clock that does not advance.
func at(now time.Time) func(*redisgen.SerialsConfig) {
	return func(c *redisgen.SerialsConfig) { c.Now = func() time.Time { return now } }
}

func wantSerial(t *testing.T, s *redisgen.Serials, want int64) {
	t.Helper()
	if got, err := s.Next(t.Context()); err != nil || got != want {
		t.Errorf("%d, %v, want %d", got, err, want)
	}
}

func TestRedisSerialsCountEachDayOfTheirZone(t *testing.T) {
	onEachRedis(t, func(t *testing.T, c redis.UniversalClient) {
		soon := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour) // noon tomorrow, as counters of the past expire at once
		clock := soon
		s := redisSerials(t, c, func(c *redisgen.SerialsConfig) { c.Now = func() time.Time { return clock } })
		day := func(at time.Time) int64 { return int64(at.Year()*10000+int(at.Month())*100+at.Day()) * 10000 }
		wantSerial(t, s, day(soon)+1)
		wantSerial(t, redisSerials(t, c, at(soon)), day(soon)+2)
		wantSerial(t, s, day(soon)+3)
		clock = soon.Add(12*time.Hour - 1)
		wantSerial(t, s, day(soon)+4)
		clock = soon.Add(12 * time.Hour)
		wantSerial(t, s, day(clock)+1)
		if text, err := s.Text().Next(t.Context()); err != nil || text != strconv.FormatInt(day(clock)+2, 10) {
			t.Errorf("%s, %v", text, err)
		}
		east := redisSerials(t, c, func(c *redisgen.SerialsConfig) { at(soon)(c); c.Zone = kiritimati })
		wantSerial(t, east, day(clock)+3)
		clock = soon // a clock that is behind, while the day is kept
		wantSerial(t, s, day(soon)+5)

		ttl := c.ExpireTime(t.Context(), fmt.Sprintf("{order}:%d", day(soon)/10000)).Val()
		if want := soon.Add(60 * time.Hour).Unix(); int64(ttl/time.Second) != want {
			t.Errorf("the counter expires at %v, want %d", ttl, want)
		}
	})
}

func TestRedisSerialsAreRefusedWhenTheDigitsAreUsedUp(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	s := redisSerials(t, c, func(c *redisgen.SerialsConfig) { c.Digits = 1 })
	for range 9 {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if serial, err := s.Next(t.Context()); !errors.Is(err, keygen.ErrLayout) || serial != 0 {
			t.Errorf("%d, %v", serial, err)
		}
	}
	if text, err := s.Text().Next(t.Context()); err == nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRedisSerialsOfADayWhoseCounterWasLostAreRefused(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	today := redisSerials(t, c, func(*redisgen.SerialsConfig) {})
	if _, err := today.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if serial, err := redisSerials(t, c, at(time.Now().AddDate(0, 0, -9))).Next(t.Context()); !errors.Is(err, keygen.ErrClockRollback) {
		t.Errorf("nine days ago: %d, %v", serial, err)
	}
	for _, key := range c.Keys(t.Context(), "{order}:2*").Val() {
		c.Del(t.Context(), key) // as an eviction would
	}
	for name, s := range map[string]*redisgen.Serials{"this process": today, "a new one": redisSerials(t, c, func(*redisgen.SerialsConfig) {})} {
		if serial, err := s.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%s after an eviction: %d, %v", name, serial, err)
		}
	}
}

func TestRedisSerialsNeverComeTwiceFromARedisThatForgot(t *testing.T) {
	r := server.RunRedis(t)
	c := r.Open(t)
	s := redisSerials(t, c, func(c *redisgen.SerialsConfig) { c.Digits = 9 })
	stop := drawing(t, stubborn{s})
	testwait.Until(t, "serials", func() bool { return c.Get(t.Context(), "{order}:newest").Err() == nil })
	before := someIDs(t, s, 100) // so that a process that begins anew is behind
	restart(t, r)
	// go-redis goes on to say for a second that Redis is down.
	testwait.Until(t, "the client is connected again", func() bool { return c.Ping(t.Context()).Err() == nil })
	for range 5 {
		if serial, err := redisSerials(t, c, func(c *redisgen.SerialsConfig) { c.Digits = 9 }).Next(t.Context()); err != nil || serial%1e9 > 5 {
			t.Errorf("%d, %v in a process that knows nothing", serial, err)
		}
		if serial, err := s.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
			t.Errorf("%d, %v from a counter that went back", serial, err)
		}
	}
	ids := append(stop(), before...)
	floor := slices.Max(ids) + 1
	if err := s.Seed(t.Context(), floor-1); err != nil {
		t.Fatal(err)
	}
	wantSerial(t, s, floor)
	late := redisSerials(t, c, func(c *redisgen.SerialsConfig) { c.Digits, c.Floor = 9, floor+1000 })
	if serial, err := late.Next(t.Context()); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("%d, %v below the floor", serial, err)
	}
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

// stubborn retries after every error.
type stubborn struct{ *redisgen.Serials }

func (s stubborn) Next(ctx context.Context) (int64, error) {
	for {
		id, err := s.Serials.Next(ctx)
		if err == nil || ctx.Err() != nil {
			return id, err
		}
	}
}

func TestRedisCallsEndWithTheirContext(t *testing.T) {
	c := server.RunRedis(t).Open(t)
	s, counter := redisSerials(t, c, at(noon)), redisCounter(t, c, redisgen.Config{Key: "ids"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("serials: %v", err)
	}
	if _, err := counter.Seed(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("seed: %v", err)
	}
}
