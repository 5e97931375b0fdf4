// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestTheClockOfARedisIsSet(t *testing.T) {
	r, clock := server.RunRedisOnClock(t)
	c := r.Open(t)
	for _, off := range []time.Duration{0, time.Hour, -24 * time.Hour} {
		clock.Step(t, off)
		now, err := c.Time(t.Context()).Result()
		if d := time.Since(now) + off; err != nil || d.Abs() > time.Minute {
			t.Errorf("off by %v: %v, %v", off, now, err)
		}
		clock.Step(t, -off)
	}
}

// windows are the leases that were given, each up to the highest ceiling that was acknowledged.
type windows map[int64][]workerid.Entry

func (l windows) note(e workerid.Entry) {
	of := l[e.Worker]
	if n := len(of); n > 0 && of[n-1].Generation == e.Generation {
		of[n-1].Ceiling = max(of[n-1].Ceiling, e.Ceiling)
		return
	}
	l[e.Worker] = append(of, e)
}

// overlap returns two leases of a worker id that share a tick.
func (l windows) overlap() (a, b workerid.Entry, found bool) {
	for _, of := range l {
		for i := 1; i < len(of); i++ {
			if of[i].NotBefore < of[i-1].Ceiling {
				return of[i-1], of[i], true
			}
		}
	}
	return a, b, false
}

// Owners take, renew, return and forget leases while the clock of Redis goes forth and
// back by about an hour. Whoever gets none is told why.
func TestLeasesOfARedisWhoseClockStepsShareNoTick(t *testing.T) {
	r, clock := server.RunRedisOnClock(t)
	l := redisLeases(t, r.Open(t))
	if err := l.Create(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	type held struct {
		claim workerid.Claim
		entry workerid.Entry
	}
	given, full, lost := windows{}, 0, 0
	var holders []held
	draw := rand.New(rand.NewPCG(1, 2)) // the same in each run
	for n := range 600 {
		if n%20 == 19 {
			clock.Step(t, time.Duration(draw.Int64N(int64(2*time.Hour)))-45*time.Minute)
		}
		if draw.IntN(3) == 0 || len(holders) == 0 {
			c := claim(fmt.Sprint("owner", n))
			if c.Sticky = n%2 == 0; c.Sticky { // a process that was killed and starts again
				c.Holder = fmt.Sprint("10.0.0.7:", n%10)
			}
			e, err := l.Take(t.Context(), c)
			switch {
			case err == nil:
				given.note(e)
				holders = append(holders, held{c, e})
			case errors.Is(err, keygen.ErrNoWorker):
				full++
			default:
				t.Fatal(err)
			}
			continue
		}
		i := draw.IntN(len(holders))
		h := &holders[i]
		switch draw.IntN(4) {
		case 0: // its process is killed
		case 1:
			if err := l.Return(t.Context(), h.claim, h.entry, h.entry.Ceiling); err != nil {
				t.Fatal(err)
			}
		default:
			ceiling, err := l.Renew(t.Context(), h.claim, h.entry)
			if err == nil {
				h.entry.Ceiling = max(h.entry.Ceiling, ceiling)
				given.note(h.entry)
				continue
			}
			if !errors.Is(err, keygen.ErrWorkerLost) {
				t.Fatal(err)
			}
			lost++
		}
		holders = append(holders[:i], holders[i+1:]...)
	}
	total := 0
	for _, of := range given {
		total += len(of)
	}
	t.Logf("%d leases of %d worker ids, %d refused, %d lost", total, len(given), full, lost)
	if a, b, found := given.overlap(); found {
		t.Errorf("%+v and %+v share a tick", a, b)
	}
	if total < 2*len(given) || full == 0 || lost == 0 {
		t.Error("the clock was not stepped far enough for worker ids to be given again, to be refused and to be lost")
	}
}

// counted counts the scripts that a client runs.
type counted struct {
	*redis.Client

	n atomic.Int64
}

func (c *counted) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	c.n.Add(1)
	return c.Client.Eval(ctx, script, keys, args...)
}

// The generators go ahead of the clock. While that of Redis is behind, their leases cannot
// be renewed and they wait; afterwards they go on.
func TestAStepOfRedisClockRepeatsNoIDAndStopsNobodyForGood(t *testing.T) {
	r, clock := server.RunRedisOnClock(t)
	client := &counted{Client: r.Open(t)}
	l, err := redisgen.NewLeases(client, "shop:worker")
	if err == nil {
		err = l.Create(t.Context(), "shop")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []*snowflake.Generator
	var stops []func() []int64
	begin := func() {
		assigner, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "shop", Term: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		g, err := start(testwait.Context(t), snowflake.Config{Layout: fewWorkers(), Worker: assigner, Borrow: borrow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		all, stops = append(all, g), append(stops, drawing(t, g))
	}
	begin()
	begin()
	for _, step := range []time.Duration{3 * time.Second, -6 * time.Second, 3 * time.Second, -2 * time.Second, 2 * time.Second} {
		clock.Step(t, step)
		begin()
		asked := client.n.Load()
		testwait.Until(t, "leases are renewed", func() bool { return client.n.Load() > asked+20 })
	}
	for _, g := range all {
		someIDs(t, g, 100)
	}
	var ids []int64
	for _, stop := range stops {
		ids = append(ids, stop()...)
	}
	t.Logf("%d ids of %d generators", len(ids), len(stops))
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d", id, len(ids))
	}
}

// A clock that is wrong by days also ends the keys of counters before their time.
func TestAStepOfRedisClockRepeatsNoNumberOfAPeriod(t *testing.T) {
	for name, steps := range map[string][]time.Duration{
		"hours": {-13 * time.Hour, 13 * time.Hour}, "days": {-240 * time.Hour, 240 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := server.RunRedisOnClock(t)
			now := time.Date(time.Now().Year(), time.Now().Month(), time.Now().Day(), 12, 0, 0, 0, time.UTC) // of the processes
			clock.Step(t, time.Until(now))
			process := func() *periodic.Numbers {
				return openNumbers(t, today(redisPeriods(t, r.Open(t)), func(c *periodic.Config) {
					c.Step, c.Now = 1, func() time.Time { return now }
				}))
			}
			n := process()
			ids := someIDs(t, n.IDs("shop7"), 10)
			for _, step := range steps {
				clock.Step(t, step)
				for _, numbers := range []*periodic.Numbers{n, process()} {
					for {
						id, err := numbers.IDs("shop7").Next(testwait.Context(t))
						if err == nil { // what was reserved before
							ids = append(ids, id)
							continue
						}
						if !errors.Is(err, keygen.ErrClockRollback) {
							t.Errorf("after %v: %v", step, err)
						}
						break
					}
				}
				clock.Step(t, -step)
			}
			started := process()
			id, err := started.IDs("shop7").Next(testwait.Context(t))
			if name == "days" { // Redis has let the counter end
				if !errors.Is(err, keygen.ErrRegressed) {
					t.Errorf("%d, %v", id, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			ids = append(ids, someIDs(t, n.IDs("shop7"), 10)...)
			ids = append(ids, someIDs(t, started.IDs("shop7"), 10)...)
			if id, twice := keygentest.Duplicate(ids); twice {
				t.Errorf("%d came twice, of %d", id, len(ids))
			}
		})
	}
}
