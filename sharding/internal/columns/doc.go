// SPDX-License-Identifier: Apache-2.0

// Package columns reads from a database what the planner must know about the columns of a table: their
// types and collations, how the database compares their values, which of them are unique, and which
// values the database sets itself.
//
// It caches nothing, and starts no goroutine. A read takes one to a few queries, one after another,
// on the pool or connection that the caller passes. It returns the errors of the database; those of a
// table that does not exist are dialect.NoTable.
package columns
