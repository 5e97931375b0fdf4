package sharding_test

import (
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Orders and their items lie side by side: both tables are placed by the
// order's id.
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
	// / sharding: route orders refused: NULL: not an integer sharding key (id)
}
