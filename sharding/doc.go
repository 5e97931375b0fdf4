// SPDX-License-Identifier: Apache-2.0

// Package sharding computes the location of a row: it maps a sharding key to the database and the
// physical table that hold the row. It knows neither SQL nor an ORM; shardsql, gormplugin and
// sqlxhook are adapters on top of it.
//
// # Promise
//
// The same key always leads to the same [Target], whatever Go type carries it: int64(5), uint32(5),
// a named integer, "5" and []byte("5") are the same key. A key that cannot be placed with certainty
// is an error, never a guess: the package fails closed.
//
// # Terms
//
//   - The sharding key is the column that decides where a row is: usually the
//     primary key, the owner, or the key of the parent row.
//   - A [Rule] turns a key into a [Slot], a logical bucket.
//   - A [Map] turns a slot into a [Target]: one number gives both the database
//     and the table, so every target is reachable. (Taking key % databases and
//     key % tables separately reaches only their least common multiple.)
//   - A [Router] holds the rule and the map of every sharded table (分库分表), and
//     a [Snapshot] is its state at one moment.
//   - A [Hint] in a context chooses the shards of statements without a sharding key.
//
// # Which rule
//
//   - [Low]: ids of this module's generators; the slot is id % 1024.
//     [Bits] if the slot is in other bits of the id.
//   - [Mod]: other integers that are evenly distributed.
//   - [Hash], [HashText]: keys that are not evenly distributed; the slot cannot be
//     computed by hand or by the database.
//   - [OffsetStep], [Epochs]: ids that several servers number in turn, and systems
//     that get servers without moving rows.
//   - [Ranges], [List], [Interval]: by age, tenant, or country; you balance the shards.
//   - [Compat], [CompatText]: tables filled by go-gorm/sharding. [Func]: anything else.
//
// # How columns convert keys
//
// A database converts the values that it stores and compares. Two keys that it treats as equal must
// therefore have the same slot. Rules refuse keys for which that cannot be guaranteed:
//
//   - Columns of integers read 3 from "3 ", "3e0" and "3.0". Rules of integers accept text
//     only as a decimal number of 64 bits, which may have a sign and leading zeros
//     ([Hash] accepts neither); TRUE, floats and decimals with a fraction are refused.
//
//   - Columns of texts compare 5 with '5', '05' and '5abc'. Rules of texts refuse
//     integers, and those that hash refuse a string that ends with a space. Upper and lower
//     case, accents and the forms of Unicode depend on the column: its collation must
//     compare bytes.
//
//   - Columns of times round or truncate. DATETIME cannot distinguish the two hours with
//     the same clock time at the end of daylight saving time. [Interval] needs the
//     precision and the zone, and refuses times that may be rounded across a border.
//
//   - Columns of the type UUID take several spellings of a key, and PostgreSQL's date and timestamp
//     a time in any zone. shardsql passes to the rule the form in which they return the key: small
//     letters with dashes, and the clock time as UTC, or the time in UTC where pgx sends that (default_query_exec_mode=exec).
//     Do the same where you call a [Router] yourself, and in models
//     whose ids carry the slot of the key: an id for another form is refused with [ErrMisplaced].
//
// A rule does not see its column. gormplugin.Check, schema.Doctor and the inspection of a migration
// compare the two, and find columns that lose rows (floats, ENUM, a collation that ignores case,
// DATETIME with a rule for DATETIME(3), and so on). They use the settings of the connections that
// they are given: sql_mode, time_zone, loc and parseTime must be the same in all programs. Values
// of single statements are not checked: SQLite converts a text of an integer above int64 to a
// float.
//
// # How statements are routed
//
// Package shardsql, which gormplugin uses and on which sqlx runs, routes by the text that the
// database will execute. It refuses a statement if it cannot prove where the statement's rows are.
// m slots means a condition that allows several slots (IN, OR, a range).
//
//	statement        key = one slot   m slots                  no key             broadcast table
//	SELECT rows      one query        split, merged in order   all shards *       one copy
//	COUNT SUM AVG    one              combined                 all shards *       one copy
//	MIN MAX
//	GROUP BY,        one              combined, else           all shards *       one copy
//	DISTINCT, UNION                   ErrUnmergeable
//	join in a group  same slot        per shard, if joined     all shards *, if   local copy
//	                                  by the key, else         joined by the key
//	                                  ErrUnmergeable
//	FOR UPDATE       one, primary     per shard **             all shards * **    one copy
//	INSERT           one              –                        ErrMissingKey      all databases
//	INSERT batch     one              grouped **               ErrMissingKey      all databases
//	upsert           one              grouped **               ErrMissingKey      all databases
//	UPDATE, DELETE   one              per shard **             ErrMissingKey ***  all databases
//	the same, and                                              a search, then
//	FOR UPDATE, by a                                           the row's shard *
//	unique value or
//	a parent's id
//	key changed      ErrKeyChange, unless it can be proven that it keeps its slot
//
// * within [FanOut]'s limits ([ErrTooManyShards]); [ErrMissingKey] if [Table].OnMissing is [Refuse]
// and the context does not have [AllShards]. ** over several databases only with [Atomic] or
// [BestEffort], otherwise [ErrCrossDatabase]. *** a write never goes to all targets unless the
// context has [AllShards].
//
// A condition on a column of [Table].Lookups leads to the shards that its lookup table names, and
// costs one more query. A write that would leave such a table without a value is refused with
// [ErrLookup].
//
// An UPDATE may set the sharding key, or a column of Also, only to a value of the same slot, and
// its condition, or the search for its row, must prove that.
//
// Tables of one group are joined by their keys, by columns of Also that lead to slots in all rows, or by columns of
// [Table].Parents. Joins with tables of other groups are refused with [ErrCrossShard]. DDL, TRUNCATE and statements
// that cannot be parsed are refused with [ErrRawTable] if they name a sharded table.
//
// Not supported: joins of rows in different slots, and moving rows without the knowledge of the
// application.
//
// # Growing
//
//   - Ids numbered by servers: [EpochRule.Add] adds servers, and [EpochRule.Check]
//     checks that no server makes ids of another one.
//   - Slots: begin with 1024 slots on few targets. [Map.Rebalance] chooses the few slots
//     that must move, [Plan] lists the moves, and package slotstore moves them while
//     the application runs. [Router.Swap] replaces maps while statements run.
//   - Ids that carry the slot: [Router.NextID], with [Table].Also. [Audit] shows
//     whether the ids of a production table spread evenly.
//
// # While a table is migrated
//
// With the option [Migration], the route rows of package schema/migrate name the database that
// serves a table. While that is the source, the table's only target is the source's table
// ([Table.Origin]): statements need no key, and the database still numbers the rows. When a switch
// or a rollback closes the table,
//
//   - a statement outside of transactions waits until another database serves the table. It is
//     planned and sent again there ([Router.Moved]); its caller sees a pause.
//   - a statement in a transaction fails with [ErrRouteMoved]: roll the transaction back and
//     run it again ([Router.Closed]).
//
// No query precedes a statement. That is safe because a switch closes the old table, by renaming
// it, before the route row names the new database.
//
// # Failure modes
//
// [New] reports all mistakes of a configuration at once. The errors of a Router are [RouteError]s,
// which name the table and the column and say what to do. A Router is safe for concurrent use. It
// neither opens nor closes the *sql.DBs that it was given.
package sharding
