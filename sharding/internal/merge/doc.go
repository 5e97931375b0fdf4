// SPDX-License-Identifier: Apache-2.0

// Package merge combines the rows that several targets return into the rows that one table would
// have returned.
//
// Each constructor takes [Rows] and returns Rows, so a statement's merge is a chain of them:
//
//	rows, ORDER BY, LIMIT     Ordered → Limited → Cut
//	rows in any order         Concat → Limited → Cut
//	DISTINCT, UNION           Concat or Ordered → Distinct → Limited → Cut
//	aggregates, GROUP BY      Concat → Grouped → Filtered (HAVING) → Sorted → Limited → Computed → Cut
//
// Rows are read on demand, at most one ahead from each source. Only Distinct, Sorted and Grouped
// hold more. A [Memory] counts the bytes that they hold, and a [MemoryError] ends the result when
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
