// SPDX-License-Identifier: Apache-2.0

// Package rebalance adds servers to a sharded table while applications go on writing.
//
// A [Mover] moves slots from one shard to another. It executes the moves of [sharding.Plan] on a map
// that package sharding/slotstore keeps. As in a migration, it copies rows, follows their changes by
// triggers and compares both sides. It switches the map when both shards are equal.
//
// [PlanExpansion] is for tables that servers number by AUTO_INCREMENT: one master
// becomes two, N become 2N, and no row moves. It computes the id from which on the
// servers number in a new [Class], and lists the statements, their servers and their order.
// [Expansion.Apply] sends them. [CheckExpansion] tells whether all servers number as the new epoch
// demands. [FindStrays] counts ids that are not of the class of their server.
//
// # Promise
//
// Slots: at each moment the map gives exactly one shard for each row. No acknowledged write is lost, provided that
// the servers keep what they have committed. If another server takes over the new shard before the rows of the old
// one are deleted, these are kept, and Run returns [ErrNotReady].
// After a kill at any point the next call resumes the move, on any host. When another mover has taken
// over, the former one can no longer write. It works on MySQL, MariaDB and SQLite, and on PostgreSQL 15 and newer for tables
// that a migration takes (see package schema/migrate).
//
// Classes: no id is given twice when the steps are done in their order, and nothing is
// changed by planning or checking. It works on MySQL and MariaDB; other databases are
// [ErrUnsupported].
//
// All functions are safe for concurrent use.
package rebalance
