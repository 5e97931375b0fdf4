// SPDX-License-Identifier: Apache-2.0

// Package xa commits a transaction on several databases at once, or on none: two-phase
// commit, by XA on MySQL and MariaDB and PREPARE TRANSACTION on PostgreSQL.
//
// The database of the first participant decides. The others prepare their branches; then a
// row that says "committed" is committed together with the first participant's own work
// (the last resource commit of Gray and Reuter, Transaction Processing, 1993, so that the
// first database prepares nothing); then the others commit. [Commit] is the protocol, and
// [Settle] is what anybody may do about a branch that its program has left.
//
// # Promise
//
// Whatever is killed at whatever moment, and whoever settles what is left: as soon as every
// branch has ended, either all participants have committed or none has. An error of
// Commit tells whether the transaction is committed, except [sharding.ErrInDoubt], with which
// that is not known yet. Branches of other programs are never touched: the names of ours contain
// the identity of the database that decides about them.
package xa
