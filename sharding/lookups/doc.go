// SPDX-License-Identifier: Apache-2.0

// Package lookups creates, fills and checks the lookup tables of a router
// ([sharding.Table].Lookups). Package shardsql maintains and reads them.
//
// # A lookup on a table that has rows
//
//  1. Declare the lookup with Building, create its table ([Create], or gormplugin.Migrate), and
//     deploy the program everywhere. From then on every write maintains the lookup table, and no
//     read uses it.
//  2. [Build] enters the existing rows, while the application writes. After an interruption it
//     continues, and at the end it compares everything. If several rows have one value of a unique
//     lookup, it reports the key and the shard of each: change all but one of them, and call
//     Build again.
//  3. Remove Building and deploy again: reads by the column go to one shard, and a
//     second owner of a unique value is refused.
//
// # Entries that may be left over
//
// A program that is killed between two statements leaves an entry without a row, but no row without
// its entry, except in the mode [sharding.BestEffort] with a sharded lookup table. [Verify] counts
// both. Entries without a row do no harm, and [Tidy] deletes them.
package lookups
