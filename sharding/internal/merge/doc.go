// SPDX-License-Identifier: Apache-2.0

// Package merge makes the rows that several targets return into the rows that one
// table would have returned.
//
// Each constructor takes [Rows] and returns Rows, so a statement's merge is a chain
// of them:
//
//	rows, ORDER BY, LIMIT     Ordered → Limited → Cut
//	rows in any order         Concat → Limited → Cut
//	DISTINCT, UNION           Concat or Ordered → Distinct → Limited → Cut
//	aggregates, GROUP BY      Concat → Grouped → Filtered (HAVING) → Sorted → Limited → Computed → Cut
//
// Rows are read when they are asked for, one from each source at most. Only Distinct,
// Sorted and Grouped hold more; what they hold is counted by a [Memory], and a
// [MemoryError] ends the answer when it is used up.
//
// Values are compared as their databases compare them, by the [Type] of the column.
// A comparison never guesses: a value that is not of its column's type is an
// [ErrValue], and a source whose rows are in another order than that of the merge is
// an [ErrOrder].
//
// The package knows no database, starts no goroutine and reads no clock. A call of
// Next may read many rows; it ends when a source fails, which is how a source ends it
// whose context is done. Rows are not safe for concurrent use.
package merge
