// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// A second server takes half of the slots.
func ExampleMover() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(growByOneServer(context.Background(), dir), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// user 6 is on first/orders_0
	// user 6 is on second/orders_1
	// 2 slots moved
	// slot is moving to another shard, for those who write to the old table
}

func growByOneServer(ctx context.Context, dir string) error {
	dbs := sharding.DBs{}
	for _, name := range []string{"first", "second"} {
		db, err := sql.Open("sqlite", filepath.Join(dir, name+".db"))
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		dbs[name] = db
	}
	_, err := dbs["first"].ExecContext(ctx, "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL); INSERT INTO orders_0 VALUES (1, 4), (2, 5), (3, 6), (4, 7)")
	if err != nil {
		return err
	}
	targets := []sharding.Target{{DB: "first", Table: "orders_0"}, {DB: "second", Table: "orders_1"}}
	old, err := sharding.MapOf(targets[0], targets[0], targets[0], targets[0])
	if err != nil {
		return err
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: old})
	if err != nil {
		return err
	}
	store, err := slotstore.New(ctx, slotstore.Config{Name: "shop", DB: dbs["first"], Router: router, Shards: map[string][]sharding.Target{"orders": targets}})
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	before, err := router.Target("orders", 6)
	if err != nil {
		return err
	}
	fmt.Println("user 6 is on", before)

	next, err := old.Rebalance(4, targets...)
	if err != nil {
		return err
	}
	plan, err := sharding.Plan(4, old, next)
	if err != nil {
		return err
	}
	mover, err := rebalance.NewMover(rebalance.MoverConfig{Store: store})
	if err != nil {
		return err
	}
	moved, err := mover.Run(ctx, plan...) // again after whatever ended it
	if err != nil {
		return err
	}
	follower, err := store.Follow(ctx) // as every process of the application does
	if err != nil {
		return err
	}
	after, err := router.Target("orders", 6)
	if err != nil {
		return err
	}
	fmt.Println("user 6 is on", after)
	fmt.Println(moved.Slots, "slots moved")
	_, late := dbs["first"].ExecContext(ctx, "INSERT INTO orders_0 VALUES (5, 6)")
	if errors.Is(sharding.SlotMoving(late), sharding.ErrSlotMoving) {
		fmt.Printf("%v, for those who write to the old table\n", sharding.ErrSlotMoving)
	}
	return follower.Close(ctx)
}
