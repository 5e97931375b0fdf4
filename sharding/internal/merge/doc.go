// SPDX-License-Identifier: Apache-2.0

// Package merge combines the rows that several targets return into the rows that one table would
// have returned.
//
// Each constructor takes [Rows] and returns Rows, so a statement's merge is a chain of them:
//
//	rows             Concat, Ordered or Totalled → Running → Distinct → Limited → Cut
//	groups           Concat → Grouped → Filtered (HAVING) → Windowed → Sorted → Limited → Cut
//
// Totalled is for COUNT(*) OVER (), Computed replaces columns of groups before a step that needs them, and Counted ends a
// chain of which only the number of rows is wanted.
//
// Rows are read on demand, at most one ahead from each source. Only Distinct, Grouped, Windowed and
// Sorted hold more. A [Memory] counts the bytes that they hold, and a [MemoryError] ends the result when
// they exceed the limit.
//
// Values are compared as their databases compare them, by the [Type] of the column. A value that is
// not of its column's type is an [ErrValue], and a source whose rows are in another order than that
// of the merge is an [ErrOrder].
//
// The package uses no database, no goroutine and no clock. A call of Next may read many rows. It
// ends when a source returns an error; a source whose context has ended returns one. Rows are not
// safe for concurrent use.
package merge
