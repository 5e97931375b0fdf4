// SPDX-License-Identifier: Apache-2.0

// Package backend implements the steps of a migration that differ between MariaDB, MySQL,
// PostgreSQL and SQLite.
//
// A [Database] is one database of a job. It provides connections whose settings are pinned
// and read back before use, recognizes the server behind them, and retries what failed for
// a temporary reason. Its [Backend] has the SQL: how a table
// is described, created for a shard, followed by triggers, locked and renamed, and how rows
// are read without loss, inserted and hashed. [RowHash] is equal for equal rows of two
// databases, whatever their collations.
//
// # Promise
//
// Nothing here decides which rows move where or when. Callers request an operation, and it
// has the same effect on every database or is refused with an error that wraps
// [ErrUnsupported], [ErrNotReady] or [ErrSession]. A connection that was used here
// never returns to the application's pool. A Database is safe for concurrent use, a
// [Session] is for one goroutine at a time.
package backend
