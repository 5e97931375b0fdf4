// SPDX-License-Identifier: Apache-2.0

// Package twophase has what transactions with [sharding.Atomic] need beside the router: a
// table on every database, which [Create] makes, and a [Resolver], which ends what programs
// have left that were killed in the midst of a COMMIT.
//
// # Promise
//
// A transaction that nobody has decided for is rolled back everywhere, and one that was is
// committed everywhere. Any number of resolvers may run, beside transactions that are on
// their way. A resolver touches no prepared transaction but those of its own databases: each
// has an identity, which its name and its row in shardid_transactions make, and which is in
// the name of each branch.
//
// # Rights
//
// MySQL 8.0 shows prepared transactions to users with XA_RECOVER_ADMIN: GRANT
// XA_RECOVER_ADMIN ON *.* TO the resolver's user. On PostgreSQL a prepared transaction is
// ended by the user who prepared it, or by a superuser, and max_prepared_transactions has to
// be above 0.
package twophase
