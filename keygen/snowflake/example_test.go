// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

func ExampleNew() {
	ctx := context.Background()
	ids, err := snowflake.New(ctx, snowflake.Config{Worker: workerid.Static(37)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()

	id, err := ids.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := ids.Layout().Parse(id)
	fmt.Println(parts.Datacenter, parts.Worker, time.Since(parts.Time) < time.Minute, err)
	// Output: 1 5 true <nil>
}

// A leased worker id is safe against pauses, kills and wrong clocks. The ledger is in the
// application's database: a store's Leases.
func ExampleNew_leased() {
	ctx := context.Background()
	ledger := keygentest.NewMemoryLedger(time.Now) // store.Leases() in a program
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // two processes
		ids, err := snowflake.New(ctx, snowflake.Config{Worker: worker, Borrow: time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = ids.Close() }()
		fmt.Println("worker", ids.Stats().Worker)
	}
	// Output:
	// worker 0
	// worker 1
}

// These ids cost an addition and a comparison, for callers that draw millions of them. The
// layout needs enough sequence bits: 24 bits, 16 million ids in a millisecond.
func ExampleNew_coarse() {
	ctx := context.Background()
	layout := keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 36}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 24}},
	}
	ids, err := snowflake.New(ctx, snowflake.Config{Layout: layout, Worker: workerid.Static(5), Coarse: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	last, rising := int64(0), true
	for range 100_000 {
		id, err := ids.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		last, rising = id, rising && id > last
	}
	parts, err := layout.Parse(last)
	fmt.Println(rising, parts.Worker, time.Since(parts.Time) < time.Minute, err)
	// Output: true 5 true <nil>
}

// The generator waits for small steps of the clock. After a large one the process continues
// with the other of its two worker ids.
func ExampleSwitchWorker() {
	ctx := context.Background()
	var step atomic.Int64
	workers := workerid.Backup(5, 5+512)
	ids, err := snowflake.New(ctx, snowflake.Config{
		Worker:   workers,
		Rollback: []snowflake.Policy{snowflake.Wait(5 * time.Millisecond), snowflake.SwitchWorker(workers)},
		Now:      func() time.Time { return time.Now().Add(time.Duration(step.Load())) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()

	for range 2 {
		if _, err := ids.Next(ctx); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("worker", ids.Stats().Worker)
		step.Store(-int64(time.Minute)) // somebody sets the clock back
	}
	// Output:
	// worker 5
	// worker 517
}

// The id of an order carries the slot of its user, so that both lie on one shard.
func ExampleGenerator_NextIn() {
	ctx := context.Background()
	ids, err := snowflake.New(ctx, snowflake.Config{
		Worker: workerid.Static(3),
		Layout: keygen.Layout{
			Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 6}, {Kind: keygen.Sequence, Bits: 6}, {Kind: keygen.Bucket, Bits: 10}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()

	const user = 123_456_789
	order, err := ids.NextIn(ctx, user%1024)
	fmt.Println(order%1024 == user%1024, err)
	// Output: true <nil>
}
