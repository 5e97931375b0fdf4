// SPDX-License-Identifier: Apache-2.0

// Package owner maintains lookup tables. A lookup table tells which sharding keys own the
// values of a column that does not lead to the shard ([sharding.Lookup]).
//
// The package promises two things, even if processes are killed at any moment. Each row that
// is committed on a shard has an entry. Each value of a unique lookup has one owner. An entry
// without a row may be left over; it does no harm. The exception is [sharding.BestEffort] with a
// sharded lookup table, where two databases may have entries of each other's rows: one of them
// commits a row before the other commits its entry.
//
// # Order
//
// A writer first executes its statement on the shard. Then it enters the values that its
// rows have got ([Reserve]). Then it commits on the shard. The entry is committed in a
// transaction of its own, or together with the row if both lie in one database. After the
// commit the writer removes the entries of values that its rows had before ([Release]). After
// a rollback it removes the entries that it made. A kill between any two of these steps
// leaves an entry without a row, and never a row without an entry.
//
// A reader reads the entries of a value. It sends its statement, with all conditions, to the
// shards of their keys. An entry without a row leads to a shard that has no such row.
//
// # A value that has an owner
//
// A writer that finds the entry of another owner looks for the owner's row on its shard. It
// reads in a way that waits for open transactions ([Table.Has]). The other writer executed
// its statement before it made its entry. So it holds the row lock until it commits or its
// connection ends. If the row exists, the value is taken. If it does not exist, the entry is
// left over, and the writer replaces it.
//
// Between this read and the replacement the old owner may return. So each entry has a claim,
// a random number, which every writer that relies on the entry changes. An entry is replaced
// or removed only if it still has the claim that it had before the read. No writer holds a
// lock on an entry while it waits for a row, unless both are in one transaction.
//
// [TestTheProtocolKeepsEveryRow] tries all orders of the steps of several processes, which
// are killed at any step. It also shows what breaks without each of the rules.
//
// # Vitess
//
// Vitess' consistent lookups hold a transaction on the lookup table open beside the row's
// transaction and commit it before. They open a third transaction for removals. In this
// package entries are written by single statements, so a pool of one connection is enough.
// The claim replaces the lock.
package owner
