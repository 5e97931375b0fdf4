// SPDX-License-Identifier: Apache-2.0

// Package idmap translates the ids that rows have on the source of a migration to the ids
// that they have on the shards, and back.
//
// A [Numbering] keeps ids, computes them, or takes them from a generator. Ids from a generator
// are stored in a [Table] of the source, which a [Writer] extends. [Table.LookUp] and
// [Writer.Dictionary] return a [Dictionary] of many ids at once.
//
// # Promise
//
// An id has one counterpart, also after crashes: the leading runner commits a pair on the
// source before it writes any row with it. For an id without a counterpart the error is
// [ErrNoID]. A Numbering, a Table and a Writer are safe for concurrent use; a Wanted and a
// Dictionary are for one goroutine.
package idmap
