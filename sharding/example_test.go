// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Orders and their items are in the same databases: both tables are sharded by the order's id.
func ExampleNew() {
	east, west := new(sql.DB), new(sql.DB) // from sql.Open

	orders, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%02d")
	if err != nil {
		fmt.Println(err)
		return
	}
	items, err := sharding.Spread([]string{"east", "west"}, 8, "items_%02d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": east, "west": west},
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: orders},
		sharding.Table{Name: "items", Key: "order_id", Rule: sharding.Low(10), Map: items},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(router.Targets("items"))
	// Output:
	// [east/items_00 west/items_01 east/items_02 west/items_03 east/items_04 west/items_05 east/items_06 west/items_07]
}

func ExampleRouter_Target() {
	orders, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%02d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(8), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []any{12, "13", int64(-1), nil} {
		target, err := router.Target("orders", id)
		fmt.Println(target, err)
	}
	// Output:
	// east/orders_04 <nil>
	// west/orders_05 <nil>
	// west/orders_07 <nil>
	// / sharding: route orders refused: NULL: not a sharding key (id)
}

// A key that cannot be placed is refused, and the error says what to do.
func ExampleRouter_TargetBy() {
	orders, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%02d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{
			Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: orders,
			// Ids from a million on were made for their user.
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(10), From: 1_000_000}},
		},
		sharding.Broadcast("regions"), sharding.FanOut(16, 4))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(router.TargetBy("orders", "id", 1_000_003))
	_, err = router.TargetBy("orders", "id", 999)
	fmt.Println(err)
	// Output:
	// west/orders_03 <nil>
	// sharding: route orders refused: no sharding key: 999 is below 1000000; smaller ids carry no slot (id); add a condition on user_id
}

// One server numbers all rows. A second one joins at ids far above its counter. The first keeps its
// old rows, and has all odd ids from there on.
func ExampleEpochRule_Add() {
	rule := sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}})
	first := sharding.Counter{Slot: 0, Next: 7, Offset: 1, Step: 1}

	second := sharding.Epoch{From: 14, Slots: []sharding.Slot{0, 1}}
	if _, err := rule.Add(second, 10, []sharding.Counter{first}); err != nil {
		fmt.Println(err)
	}
	rule, err := rule.Add(second, 5, []sharding.Counter{first})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []int{6, 13, 14, 15} {
		slot, err := rule.Slot(id)
		fmt.Println(id, "is on server", slot, err)
	}
	first.Next = 12
	fmt.Println(rule.Check(5, []sharding.Counter{first, {Slot: 1, Next: 14, Offset: 2, Step: 2}}))
	// Output:
	// sharding: Add: server does not number by the new epoch: slot 0 is at 7 already; begin the epoch at 17 or above
	// 6 is on server 0 <nil>
	// 13 is on server 0 <nil>
	// 14 is on server 1 <nil>
	// 15 is on server 0 <nil>
	// sharding: Check: server does not number by the new epoch: slot 0 is at 12 with offset 1 and step 1, and the epoch begins at 14; stop its inserts until it has offset 1 and step 2
}

// Eight slots on two tables become eight slots on three: only the slots that the third table needs
// move.
func ExampleMap_Rebalance() {
	old, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := old.Rebalance(8, append(old.Targets(), sharding.Target{DB: "west", Table: "orders_2"})...)
	if err != nil {
		fmt.Println(err)
		return
	}
	moves, err := sharding.Plan(8, old, next)
	fmt.Println(moves, err)
	// Output:
	// [slot 6: east/orders_0 → west/orders_2 slot 7: east/orders_1 → west/orders_2] <nil>
}

// If a generator starts each millisecond with the sequence 0, all ids have one slot.
func ExampleAudit() {
	ids := make([]int64, 10_000)
	for i := range ids {
		ids[i] = int64(i) << 12
	}
	for _, rule := range []sharding.Rule{sharding.Low(10), sharding.Hash(1024)} {
		report, err := sharding.Audit(rule, ids)
		fmt.Println(report, err)
	}
	// Output:
	// 10000 ids over 1024 slots: chi² per degree of freedom 10000.000, fullest slot 0 (10000 ids), emptiest slot 1 (0 ids); uneven, 1023 slots are empty: choose a rule that hashes the id, or a generator whose low bits are even <nil>
	// 10000 ids over 1024 slots: chi² per degree of freedom 0.954, fullest slot 263 (22 ids), emptiest slot 119 (2 ids); even <nil>
}
