// SPDX-License-Identifier: Apache-2.0

package redisgen_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/workerid"
)

// standIn answers like the scripts, so that the examples run without a server. An
// application passes the client of go-redis.
type standIn struct {
	mu     sync.Mutex
	values map[string]int64
}

type reply struct{ n int64 }

func (r reply) Int64() (int64, error) { return r.n, nil }

func newStandIn() *standIn { return &standIn{values: map[string]int64{}} }

func (s *standIn) Eval(_ context.Context, script string, keys []string, args ...any) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.Contains(script, "'TIME'"): // of periods
		s.values[keys[0]] += args[3].(int64)
	case strings.Contains(script, "'INCRBY'"):
		s.values[keys[0]] += args[0].(int64)
	case strings.Contains(script, "'INCR'"):
		s.values[keys[0]]++
	}
	return reply{s.values[keys[0]]}
}

// The ids of a table come from a counter in Redis, a thousand per round trip.
func ExampleNew() {
	ctx := context.Background()
	client := newStandIn() // redis.NewClient(…) or redis.NewClusterClient(…)
	counter, err := redisgen.New(client, redisgen.Config{Key: "ids:order"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := counter.Seed(ctx, 1); err != nil { // once
		fmt.Println(err)
		return
	}
	orders, err := segment.New(ctx, segment.Config{Source: counter})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()
	for range 3 {
		id, err := orders.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
	// 3
}

// textStandIn answers the scripts of leases.
type textStandIn struct{ answer string }

type textReply string

func (r textReply) Text() (string, error) { return string(r), nil }

func (s *textStandIn) Eval(context.Context, string, []string, ...any) textReply {
	return textReply(s.answer)
}

// Worker ids are leased in Redis, and a process has the same one after each start.
func ExampleNewLeases() {
	ctx := context.Background()
	layout := keygen.Twitter()
	now := layout.Tick(time.Now())
	client := &textStandIn{fmt.Sprintf("ok 7 1 %d %d", now, now+30_000)} // redis.NewClient(…)
	ledger, err := redisgen.NewLeases(client, "shop:worker")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ledger.Create(ctx, "orders"); err != nil { // once in the life of the application
		fmt.Println(err)
		return
	}
	workers, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "orders", Instance: "10.0.0.7:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := workers.Acquire(ctx, layout) // as snowflake.New does
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.ID())
	// Output: 7
}

// Serials begin with the day, in the time zone of the business.
func ExampleNewSerials() {
	ctx := context.Background()
	serials, err := redisgen.NewSerials(newStandIn(), redisgen.SerialsConfig{
		Name:   "invoice",
		Digits: 6,
		Zone:   time.FixedZone("CST", 8*60*60), // time.LoadLocation("Asia/Shanghai")
		Now:    func() time.Time { return time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	number, err := serials.Next(ctx)
	fmt.Println(number, err)
	text, err := serials.Text().Next(ctx)
	fmt.Println(text, err)
	// Output:
	// 20261121000001 <nil>
	// 20261121000002 <nil>
}

// Orders are numbered from 1 on in each month and each shop; the numbers of a segment
// cost one round trip.
func ExampleNewPeriods() {
	ctx := context.Background()
	counters, err := redisgen.NewPeriods(newStandIn(), "shop") // redis.NewClient(…) or redis.NewClusterClient(…)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := periodic.New(periodic.Config{Counters: counters, Name: "order", Period: periodic.Month, Zone: time.UTC, Digits: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()
	for _, shop := range []string{"shop7", "shop7", "shop8"} {
		number, err := orders.Next(ctx, shop)
		fmt.Println(shop, number.Count, err) // number is 2026-11-000001
	}
	// Output:
	// shop7 1 <nil>
	// shop7 2 <nil>
	// shop8 1 <nil>
}
