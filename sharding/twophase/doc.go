// SPDX-License-Identifier: Apache-2.0

// Package twophase provides what transactions with [sharding.Atomic] need besides the router.
// [Create] creates a table on every database. A [Resolver] ends the transactions of programs that
// were killed during a COMMIT.
//
// # Promise
//
// A transaction whose commit was decided is committed on all databases. Any other is rolled back on
// all databases. Several resolvers may run at once, also while transactions are being committed.
//
// A resolver ends only prepared transactions of its own databases. Each database has an identity,
// made of its name and its row in shardid_transactions, and the name of each branch contains it.
//
// The promise needs servers that keep what they have committed. A copy that takes over must have received
// everything (semi-synchronous or synchronous replication), and on MySQL and MariaDB it must be read_only
// until it has applied everything: a resolver ends nothing, and returns an error, while it reaches a
// standby or a server that is read_only.
//
// # Rights
//
// MySQL 8.0 shows prepared transactions only to users with XA_RECOVER_ADMIN: GRANT XA_RECOVER_ADMIN
// ON *.* TO the resolver's user. On PostgreSQL the user who prepared a transaction, or a superuser,
// must end it, and max_prepared_transactions must be above 0.
package twophase
