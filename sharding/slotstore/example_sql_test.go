// SPDX-License-Identifier: Apache-2.0

package slotstore_test

import (
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// An expression for a program's own query, for example one that counts the rows of each slot.
func ExampleSlotSQL() {
	fmt.Println(slotstore.SlotSQL(sharding.Low(3), "user_id"))
	// Output: (user_id & 7) true
}
