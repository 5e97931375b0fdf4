// SPDX-License-Identifier: Apache-2.0

// Package lookups makes, fills and checks the lookup tables of a router
// ([sharding.Table].Lookups). Package shardsql keeps and asks them.
//
// # A lookup on a table that has rows
//
//  1. Declare it with Building, make its table ([Create], or gormplugin.Migrate), and roll
//     the program out everywhere: from then on every write keeps the lookup table, and no
//     read asks it.
//  2. [Build] enters the rows that were there before, while the application writes. It goes
//     on where it was broken off, and compares everything at the end. A value of a unique
//     lookup that several rows have is told with the key and the shard of each: change all but
//     one of them, and build again.
//  3. Take Building away and roll out again: reads go to one shard by the column, and a
//     second owner of a unique value is refused.
//
// # What may be left over
//
// A program that is killed between two statements leaves an entry without a row, and never
// a row without its entry. [Verify] counts such entries, which do no harm, and [Tidy]
// removes them.
package lookups
