// SPDX-License-Identifier: Apache-2.0

// Package sharding says where a row lives: it turns a sharding key into the
// database and the physical table that hold the row. It knows neither SQL nor
// an ORM; gormplugin and sqlxhook are adapters on top of it.
//
// # Promise
//
// The same key always leads to the same [Target], whatever Go type carries it:
// int64(5), uint32(5), a named integer, "5" and []byte("5") agree. A key that
// cannot be placed with certainty is an error, never a guess: the package fails
// closed.
//
// # The words
//
//   - The sharding key is the column that decides, as a rule the primary key or
//     the key of the parent row.
//   - A [Rule] turns a key into a [Slot], a logical bucket.
//   - A [Map] turns a slot into a [Target]: one number gives both the database
//     and the table, so every target is reachable. (Taking key % databases and
//     key % tables separately reaches only their least common multiple.)
//   - A [Router] holds the rule and the map of every sharded table (分库分表), and
//     a [Snapshot] is what it knew at one moment.
//   - A [Hint] in a context says what a statement does not.
//
// # Which rule
//
//   - [Low]: ids of this module's generators; anybody can compute id % 1024.
//     [Bits] when the slot stands elsewhere in the id.
//   - [Mod]: other integers that are even in themselves.
//   - [Hash], [HashText]: keys that are not even; the slot cannot be computed by
//     hand or by the database.
//   - [OffsetStep], [Epochs]: ids numbered by several servers in turn, and systems
//     that gain servers without moving rows.
//   - [Ranges], [List], [Interval]: by age, tenant, or country; you balance them.
//   - [Compat], [CompatText]: tables filled by go-gorm/sharding. [Func]: anything else.
//
// # What the column makes of a key
//
// A database converts what it stores and compares, and a row is looked for by what
// became of its key. Two keys that the database takes for equal therefore have one slot,
// or are refused:
//
//   - Columns of integers read 3 from "3 ", "3e0" and "3.0". Rules of integers take text
//     only as a decimal number of 64 bits, which may have a sign and leading zeros
//     ([Hash] takes neither); TRUE, floats and decimals with a fraction are refused.
//   - Columns of texts compare 5 with '5', '05' and '5abc'. Rules of texts refuse
//     integers, and those that hash refuse text that ends with a space. Upper and lower
//     case, accents and the forms of Unicode are the column's affair: its collation has
//     to compare bytes.
//   - Columns of times round or cut what they do not keep, and DATETIME does not tell the
//     two hours apart in which a clock shows the same when daylight saving time ends.
//     [Interval] has to be told the precision and the zone, and refuses times that may
//     be rounded over a border.
//
// What a rule cannot see is its column: gormplugin.Check, schema.Doctor and the inspection
// of a migration hold the two together, and find what loses rows (floats, ENUM, a collation
// that ignores case, DATETIME under the precision of DATETIME(3), and so on). They look at
// the settings of the connections that they are given: sql_mode, time_zone, loc and
// parseTime are to be the same in all programs. Nobody looks at each statement, and an
// integer above int64 given to SQLite as a text becomes a float.
//
// # What becomes of a statement
//
// Package shardsql, on which gormplugin and sqlx stand, routes by the text that the
// database will execute, and refuses what it cannot prove. m slots means a condition that
// leaves several slots (IN, OR, a range).
//
//	statement        key = one slot   m slots                  no key             broadcast table
//	SELECT rows      one query        split, merged in order   all shards *       one copy
//	COUNT SUM AVG    one              combined                 all shards *       one copy
//	MIN MAX
//	GROUP BY,        one              combined, else           all shards *       one copy
//	DISTINCT, UNION                   ErrUnmergeable
//	join in a group  same slot        per shard, if joined     all shards *, if   local copy
//	                                  by the key, else         joined by the key
//	                                  ErrCrossShard
//	FOR UPDATE       one, primary     per shard **             all shards * **    one copy
//	INSERT           one              –                        ErrMissingKey      all databases
//	INSERT batch     one              grouped **               ErrMissingKey      all databases
//	upsert           one              grouped **               ErrMissingKey      all databases
//	UPDATE, DELETE   one              per shard **             ErrMissingKey ***  all databases
//	key changed      ErrKeyChange, unless it can be proven that it keeps its slot
//
// * within [FanOut]'s limits ([ErrTooManyShards]); [ErrMissingKey] where [Table].OnMissing
// is [Refuse] and the context does not say [AllShards]. ** over several databases with
// [Atomic] or [BestEffort] only, else [ErrCrossDatabase]. *** a write never goes to all targets unless
// the context says [AllShards].
//
// A condition on a column of [Table].Lookups leads to the shards that its lookup table
// names, for one question more. A write that would leave such a table without a value is
// refused with [ErrLookup].
//
// An UPDATE may give the sharding key, or a column of Also, a value of the same
// slot only, which its condition has to prove.
//
// Joins with tables of other groups are refused with [ErrCrossShard]. DDL, TRUNCATE and
// what cannot be read are refused with [ErrRawTable] where they name a sharded table.
//
// Not done at all: joins of rows in different slots, and moving rows behind the
// application's back.
//
// # Growing
//
//   - Ids numbered by servers: [EpochRule.Add] brings in servers and
//     [EpochRule.Check] keeps them from making each other's ids.
//   - Slots: begin with 1024 of them on few targets; [Map.Rebalance] says which few
//     have to move, [Plan] lists the moves, and package slotstore moves them while
//     the application runs. [Router.Swap] exchanges maps under load.
//   - Ids that carry the slot: [Router.NextID], with [Table].Also. [Audit] shows
//     whether the ids of a production table spread evenly.
//
// # While a table is migrated
//
// With the option [Migration] a table is where the route rows of package
// schema/migrate say. While the source serves it, its only target is the source's
// table ([Table.Origin]); statements need no key, and rows get their ids from the
// database, as ever. When a switch or a rollback closes the place of a statement,
//
//   - a single statement outside of transactions waits for the next place and is
//     planned and sent again there ([Router.Moved]), and its caller sees a pause;
//   - one in a transaction fails with [ErrRouteMoved]: the transaction is to be
//     rolled back and run again ([Router.Closed]).
//
// Nothing is asked before a statement: what makes that safe is that the database
// closes the old place, by renaming its tables, before the new one is named.
//
// # Failure modes
//
// [New] reports all mistakes of a configuration at once. After that the errors of
// a Router are [RouteError]s, each of which names the table and the column and
// says what to do. It is safe for concurrent use; it keeps the *sql.DBs it was
// given and neither opens nor closes them.
package sharding
