// SPDX-License-Identifier: Apache-2.0

// Package demo runs a whole migration on embedded SQLite: an AUTO_INCREMENT database
// becomes a sharded one by package schema/migrate, while an application written with GORM
// and one written with sqlx keep inserting, updating and deleting, from before the first
// row is copied until after the shards have taken over. The applications do not know when
// that happens: a sharding.Migration in their routers sends their statements to the
// database that serves, and makes them wait while none does. Only a transaction that the
// switch has rolled back is repeated.
//
// # Promise
//
// Everything is written into one folder, Result.Dir. An existing database is opened
// read-only and read in one transaction, so that it may be in use; unless it is in WAL
// mode, its writers wait until Run is done. Run migrates a copy of it. The numbers in its
// result are counted: Run reads every row of the source and of every shard, in the order of
// their keys, and compares them value by value; for rows that the applications have
// changed, it compares the acknowledged values. The numbers of copied rows and of inserted
// rows that stay are the same in every run; the number of other changes depends on the time
// it takes.
//
// # Failure modes
//
// A mistake in the Config is an *input.Error, found before anything is written. A migration
// that lost, duplicated or misplaced a row is not an error of Run, but a Result that is not
// Clean. The databases that it writes are throwaway files: SQLite does not wait for the
// disk, so a power failure can corrupt them.
package demo
