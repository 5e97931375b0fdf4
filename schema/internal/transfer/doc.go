// SPDX-License-Identifier: Apache-2.0

// Package transfer brings rows from one database to another: it reads them, gives them
// the ids of the other side, and writes them.
//
// [Read] returns rows of one statement as [backend.Row], [Convert] turns their ids and
// finds the shard of each, [ByTarget] sorts them, [Store] writes them and [Remove] takes
// them away. A [Room] is what the goroutines of a job share to hold rows in meanwhile:
// [Room.Portions] reads as many at a time as fit.
//
// # Promise
//
// A row arrives as it was read, to the last bit but for its ids, or its error names it.
// Store touches no row but those that it is given: what a unique key refuses is returned,
// not made room for. A job holds at most 16 MiB of rows, or a single one that is larger.
// A Room is safe for concurrent use.
package transfer
