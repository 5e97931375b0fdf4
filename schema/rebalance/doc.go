// SPDX-License-Identifier: Apache-2.0

// Package rebalance gives a sharded table more servers while applications go on
// writing.
//
// A [Mover] moves slots of rows from one shard to another: it carries out what
// [sharding.Plan] lists for a map that package sharding/slotstore keeps. Rows are copied,
// followed by triggers and compared as those of a migration are, and the map switches when
// both shards are equal.
//
// [PlanExpansion] is for tables that servers number by AUTO_INCREMENT: one master
// becomes two, N become 2N, and no row moves. It computes the id from which on the
// servers number in a new [Class], and lists what is to be done where and in which
// order; [Expansion.Apply] sends the statements, and [CheckExpansion] tells whether all
// servers can be trusted with the new epoch. [FindStrays] counts ids that are not of
// their class, also where old connections and a generator take one class each.
//
// # Promise
//
// Slots: at each moment each row is on exactly one shard for those who ask the map, no
// acknowledged write is lost, and a mover that was killed at any point is resumed by the
// next call, on any host. A mover that was thought dead writes nothing once another one has
// taken over. It works on MySQL, MariaDB and SQLite, and on PostgreSQL 15 and newer for tables
// that a migration takes (see package schema/migrate).
//
// Classes: no id is given twice when the steps are done in their order, and nothing is
// changed by planning or checking. It works on MySQL and MariaDB; other databases are
// [ErrUnsupported].
//
// All functions are safe for concurrent use.
package rebalance
