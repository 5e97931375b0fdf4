// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/compat"
)

// The configuration that was given to the plugin becomes a table of a router.
func ExampleImport() {
	orders, err := compat.Import("orders", "shop", compat.Config{
		ShardingKey:         "user_id",
		NumberOfShards:      64,
		PrimaryKeyGenerator: compat.PKSnowflake,
		IDFrom:              1_500_000_000_000_000_000, // older ids came from AUTO_INCREMENT
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := new(sql.DB) // from sql.Open
	router, err := sharding.New(sharding.DBs{"shop": shop}, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(router.Target("orders", 100))
	fmt.Println(router.Target("orders", -1))
	fmt.Println(router.TargetBy("orders", "id", 1541815603604635648))
	// Output:
	// shop/orders_36 <nil>
	// / sharding: route orders refused: -1: no slot for the key: go-gorm/sharding would use a table with the number -1 (user_id); give the rule a slot for it, or correct the key
	// shop/orders_36 <nil>
}
