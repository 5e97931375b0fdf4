// SPDX-License-Identifier: Apache-2.0

// Package backend is what MariaDB, MySQL, PostgreSQL and SQLite do differently in a migration.
//
// A [Database] is one database of a job: it hands out connections whose settings are
// pinned and read back before they are used, recognizes the server behind them, and
// repeats what failed for a reason that passes. Its [Backend] has the SQL: how a table
// is described, made for a shard, followed by triggers, locked and renamed, how rows
// are read without the loss of a bit, inserted and hashed. [RowHash] is equal for equal
// rows of two databases, whatever their collations.
//
// # Promise
//
// Nothing here decides which rows go where or when: callers say what is to be done, and
// it is done the same way on every database, or refused with an error that wraps
// [ErrUnsupported], [ErrNotReady] or [ErrSession]. A connection that was used here
// never returns to the application's pool. A Database is safe for concurrent use, a
// [Session] is for one goroutine at a time.
package backend
