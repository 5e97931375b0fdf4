// SPDX-License-Identifier: Apache-2.0

// Package compat takes over tables that were sharded with go-gorm/sharding
// (gorm.io/sharding). The same keys lead to the same physical tables, and no row moves.
//
// # Promise
//
// [Import] turns a configuration of that plugin, copied from the application's code, into a
// sharding.Table. The table finds every row that the plugin stored where its algorithm says.
// Import refuses what it cannot take over exactly; the error says what to do.
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
// The table refuses a key that its column would convert, although the plugin has a table
// for it. If the column holds integers, these are texts that are no integers. If the column
// holds texts (Config.TextKey), these are integers and texts that end with a space.
//
// The plugin itself may have put rows into another table: after an update of the key, by SQL
// that it could not parse, or for a negative key. Such rows are not found; schema.Doctor
// lists them. docs/from-go-gorm-sharding.md describes how to move them, and all other steps.
package compat
