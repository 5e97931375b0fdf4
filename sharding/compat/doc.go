// SPDX-License-Identifier: Apache-2.0

// Package compat takes over tables that were sharded with go-gorm/sharding
// (gorm.io/sharding): the same keys lead to the same physical tables, which stay
// where they are.
//
// # Promise
//
// [Import] turns a configuration of that plugin, as it stands in the code, into a
// sharding.Table. Every row that the plugin put where its algorithm says is found
// there. What cannot be taken over exactly is refused with an error that says
// what to do.
//
//	orders, err := compat.Import("orders", "shop", compat.Config{
//		ShardingKey:         "user_id",
//		NumberOfShards:      64,
//		PrimaryKeyGenerator: compat.PKSnowflake,
//	})
//	router, err := sharding.New(sharding.DBs{"shop": db}, orders)
//
// # Failure modes
//
// A key that its column would convert is refused, although the plugin has a table for
// it: texts that are no integers where the column holds integers, and integers, or texts
// that end with a space, where it holds texts (Config.TextKey).
//
// Rows that the plugin itself put into another table (an update of the key, SQL
// that it could not parse, a negative key) are not found; schema.Doctor names
// them. Their way back, and the rest of the move, is in
// docs/from-go-gorm-sharding.md.
package compat
