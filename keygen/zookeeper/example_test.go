// SPDX-License-Identifier: Apache-2.0

package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// The ids of a table come from the versions of a znode, a thousand with each
// write.
func ExampleNewVersions() {
	ctx := context.Background()
	conn := newStandIn() // zk.Connect(servers, sessionTimeout)
	counter, err := zookeeper.NewVersions(conn, zookeeper.CounterConfig{Path: "/ids/order", Block: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := counter.Seed(ctx, 500_001); err != nil { // once, above the ids in use
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
	// 500001
	// 500002
	// 500003
}

// Transaction ids rise with every write of anybody, so they leave gaps.
func ExampleNewZxids() {
	ctx := context.Background()
	counter, err := zookeeper.NewZxids(newStandIn(), zookeeper.CounterConfig{Path: "/ids/order"})
	if err == nil {
		err = counter.Seed(ctx, 1)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := counter.Reserve(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := counter.Reserve(ctx, 1)
	fmt.Println(first.First > 0, second.First > first.Last(), err)
	// Output: true true <nil>
}

func ExampleNewSequence() {
	ctx := context.Background()
	counter, err := zookeeper.NewSequence(newStandIn(), zookeeper.CounterConfig{Path: "/ids/order"})
	if err == nil {
		err = counter.Seed(ctx, 1)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	span, err := counter.Reserve(ctx, 1)
	fmt.Println(span.First, err)
	// Output: 1 <nil>
}

// A process takes its worker id once its clock has been found right, and reports
// as long as its generator lives.
func ExampleNewWorkers() {
	ctx := context.Background()
	workers, err := zookeeper.NewWorkers(newStandIn(), zookeeper.WorkersConfig{
		Path: "/snowflake/orders",
		Addr: "127.0.0.1:0", // the address and a port of this machine
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = workers.Close() }()
	g, err := snowflake.New(ctx, snowflake.Config{Worker: workers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = g.Close() }()
	id, err := g.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := keygen.Twitter().Parse(id)
	fmt.Println(parts.Worker, err)
	// Output: 0 <nil>
}

// Worker ids can also be leased in ZooKeeper as in a database.
func ExampleNewLeases() {
	leases, err := zookeeper.NewLeases(newStandIn(), "/worker")
	if err != nil {
		fmt.Println(err)
		return
	}
	workers, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: leases, Namespace: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := workers.Acquire(context.Background(), keygen.Twitter())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.ID())
	// Output: 0
}
