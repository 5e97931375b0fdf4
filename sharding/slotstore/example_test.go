// SPDX-License-Identifier: Apache-2.0

package slotstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

func Example() {
	if err := moveASlot(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// slot 3 is on main/orders_0
	// switched too early: true
	// slot 3 is on main/orders_1
	// a late write to the old table: slot is moving to another shard
}

func moveASlot(ctx context.Context) error {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // a database in memory is its connection's
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY); CREATE TABLE orders_1 (id INTEGER PRIMARY KEY); INSERT INTO orders_0 VALUES (3), (4)"); err != nil {
		return err
	}
	shards := []sharding.Target{{DB: "main", Table: "orders_0"}, {DB: "main", Table: "orders_1"}}
	first, err := sharding.MapOf(shards[0], shards[0], shards[0], shards[0])
	if err != nil {
		return err
	}
	router, err := sharding.New(sharding.DBs{"main": db}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: first})
	if err != nil {
		return err
	}
	store, err := slotstore.New(ctx, slotstore.Config{Name: "shop", DB: db, Router: router, Shards: map[string][]sharding.Target{"orders": shards}})
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	show := func() {
		target, err := router.Target("orders", 3)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("slot 3 is on", target)
	}
	show()

	// No process follows the map yet, so no step has to wait for Settle.
	if err := store.Copy(ctx, 1, 3); err != nil {
		return err
	}
	err = store.Switch(ctx, 3) // before Fence
	fmt.Println("switched too early:", errors.Is(err, slotstore.ErrState))
	if err := store.Fence(ctx, 3); err != nil {
		return err
	}
	err = store.Bypass(ctx, 3, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders_1 SELECT id FROM orders_0 WHERE id & 3 = 3")
		return err
	})
	if err != nil {
		return err
	}
	if err := store.Switch(ctx, 3); err != nil {
		return err
	}
	follower, err := store.Follow(ctx)
	if err != nil {
		return err
	}
	show()
	_, err = db.ExecContext(ctx, "INSERT INTO orders_0 VALUES (7)")
	fmt.Println("a late write to the old table:", firstLine(sharding.SlotMoving(err)))
	return follower.Close(ctx)
}

// firstLine omits the driver's error.
func firstLine(err error) string {
	for e := err; e != nil; {
		joined, ok := e.(interface{ Unwrap() []error })
		if !ok {
			return e.Error()
		}
		e = joined.Unwrap()[0]
	}
	return "none"
}
