// SPDX-License-Identifier: Apache-2.0

// Package transfer copies rows from one database to another: it reads them, translates
// their ids, and writes them.
//
// [Read] returns the rows of one statement as [backend.Row], [Convert] translates their ids
// and finds the shard of each, [ByTarget] sorts them, [Store] writes them and [Remove]
// deletes them. A [Budget] limits the memory for rows that the goroutines of a job share:
// [Budget.Portions] reads as many rows at a time as fit.
//
// # Promise
//
// A row is written as it was read, except for its ids, or the error names it. Store writes
// only the rows that it is given: a row that a unique key refuses is returned, and replaces
// no other row. A job holds at most 16 MiB of rows, or a single larger row. A Budget is safe
// for concurrent use.
package transfer
