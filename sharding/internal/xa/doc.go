// SPDX-License-Identifier: Apache-2.0

// Package xa commits a transaction on several databases at once, or on none: two-phase commit, by
// XA on MySQL and MariaDB and by PREPARE TRANSACTION on PostgreSQL.
//
// The database of the first participant decides. The others prepare their branches. Then a row with
// the decision is committed together with the first participant's own changes (the last resource
// commit of Gray and Reuter, Transaction Processing, 1993, so the first database prepares nothing).
// Then the others commit. [Commit] implements the protocol, and [Settle] ends a branch that its
// program has left.
//
// # Promise
//
// After every branch has ended, either all participants have committed or none has, even if
// processes are killed at any moment and several resolvers run. An error of Commit says whether the
// transaction is committed, except [sharding.ErrInDoubt], with which that is unknown. Branches of
// other programs are never changed: the names of our branches contain the identity of the deciding
// database.
package xa
