// SPDX-License-Identifier: Apache-2.0

// Package proto holds the decisions of a live migration, without any database:
// what to do with an entry of the change log, how far the copy is complete,
// whether a runner may still write, and which phase follows which.
//
// Its tests explore every interleaving of writers, two copiers, an applier, kills and
// fenced runners over these same functions, and show that each rule is needed: without it
// they find a history in which a row is lost. A second model covers rows that lie in the
// shard of another row, and the entries that tell a follower to check them.
//
// # Words
//
// A row is identified by its integer key. A copier takes chunks of keys in ascending order.
// Every key up to low is copied; keys above low and up to hig may be being copied; no
// copier has read keys above hig. A change of a row adds an entry with its key to the log,
// in the same transaction. Runners have epochs: the one with the highest epoch leads, and
// every transaction of a runner checks that its epoch is still the one in the database.
//
// # Why nothing is lost
//
// For every key up to low, the target had the source's row at some moment, and each later
// change has an entry in the log. An entry is deleted only after its row was read again and
// committed on the target, or when its key is above hig, as the copier will read the
// changed row.
package proto
