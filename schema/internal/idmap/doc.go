// SPDX-License-Identifier: Apache-2.0

// Package idmap turns the ids that rows have on the source of a migration into those
// that they have on the shards, and back.
//
// A [Numbering] keeps ids, computes them, or takes them from a generator. Ids from a generator
// are stored in a [Table] of the source, which a [Writer] extends. [Table.LookUp] and
// [Writer.Dictionary] return a [Dictionary] of many ids at once.
//
// # Promise
//
// One id has one counterpart, whatever is killed: a pair is committed on the source, by
// the runner that leads, before any row is written with it. An id without one is
// [ErrNoID]. A Numbering, a Table and a Writer are safe for concurrent use; a Wanted and
// a Dictionary are for one goroutine.
package idmap
