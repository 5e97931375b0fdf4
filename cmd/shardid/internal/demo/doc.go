// SPDX-License-Identifier: Apache-2.0

// Package demo does the main job of this module on embedded SQLite: an
// AUTO_INCREMENT database becomes a sharded one by package schema/migrate, while
// an application written with GORM and one written with sqlx go on inserting,
// updating and deleting, from before the first row is copied until after the
// shards have taken over. Neither knows when that is: a sharding.Migration in
// their routers leads their statements to the database that serves, and has them
// wait while none does. Only a transaction that the switch has undone begins
// again.
//
// # Promise
//
// Everything is written into one folder, Result.Dir. An existing database is
// opened read-only and read in one transaction, so that it may be in use; unless
// it is in WAL mode its writers wait until Run is done. What is migrated is a copy
// of it. What Run reports it has counted: it reads every row of the source and of
// every shard, in the order of their keys, and compares them value by value,
// where the applications have changed a row with what they were told is stored.
// The numbers of rows that are copied and that stay are the same in every run;
// how much else the applications change depends on how long it takes.
//
// # Failure modes
//
// A mistake in the Config is an *input.Error, found before anything is written.
// A migration that lost, doubled or misplaced a row is no error of Run but a
// Result that is not Clean. The databases that it writes are throwaway files:
// SQLite is told not to wait for the disk, so a power cut can ruin them.
package demo
