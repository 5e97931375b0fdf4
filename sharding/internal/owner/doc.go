// SPDX-License-Identifier: Apache-2.0

// Package owner keeps lookup tables true: which sharding keys own the values of a column
// that does not lead to the shard ([sharding.Lookup]). Its promise: a row that is
// committed on a shard has its entry, whoever is killed when, and a value of a unique
// lookup has one owner. An entry without a row may be left over; it does no harm.
//
// # Order
//
// A writer executes its statement on the shard first, then enters the values that its rows
// have got ([Reserve]), and then commits on the shard. The entry is committed by itself, or
// together with the row where both lie in one database. After the commit it removes the
// entries of values that its rows had ([Release]), and after a rollback those that it made.
// A kill between any two of these steps leaves an entry too many, and never a row without
// one.
//
// A reader asks the entries of a value and sends its statement, with all its conditions, to
// the shards of their keys. An entry without a row leads to a shard that has no such row.
//
// # A value that has an owner
//
// Whoever finds the entry of another owner looks for that owner's row on its shard, by a
// read that waits for transactions under way ([Table.Has]): the other writer has executed
// its statement before it made its entry, so it holds the lock of the row until it commits
// or is gone. If the row is there, the value is taken. If not, the entry is left over, and
// is replaced.
//
// Between the look and the replacement the old owner may come back. So each entry has a
// claim, a random number, which everybody who relies on an entry exchanges: an entry is
// replaced or removed only while it has the claim that it had before the look. No lock is
// held on an entry while a row is waited for, unless both are in one transaction.
//
// [TestTheProtocolKeepsEveryRow] tries all orders of the steps of several processes, which
// are killed anywhere, and what happens without any one of the rules.
//
// # Vitess
//
// Vitess' consistent lookups hold a transaction on the lookup table open beside that of the
// row, commit it before, and open a third one for removals. Here entries are single
// statements, so that a pool of one connection is enough, and the claim stands for the lock.
package owner
