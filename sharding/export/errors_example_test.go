// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// A table that the other system would place differently is refused.
func Example_errors() {
	tables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	own := sharding.Func(4, func(any) (sharding.Slot, error) { return 0, nil })
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: own, Map: tables})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = export.ShardingSphere(router)
	fmt.Println(errors.Is(err, export.ErrInexact), err)
	// Output:
	// true export: shardingsphere: table orders: no exact equivalent: an INLINE expression cannot compute the rule other; write it as a CLASS_BASED algorithm in Java, or shard by Low, Mod, OffsetStep or Bits
}
