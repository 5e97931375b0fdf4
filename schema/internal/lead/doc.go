// SPDX-License-Identifier: Apache-2.0

// Package lead elects the leading runner of a job, stores the phase and progress of the
// job, and detects tables that are no longer those with which it began.
//
// [Take] makes a runner the [Leader] of a job: it holds the lock on the job and keeps it
// by a heartbeat, and gets an epoch that is higher than any database has seen.
// [Leader.On] runs a function in a transaction that checks the epoch first, and is what
// stages write with. [State] reads what the databases store about a job: its phase, how far
// each table is copied, and the identities that show that a table was truncated, altered,
// restored or moved to another server.
//
// # Promise
//
// A runner that another one has replaced can no longer write: each transaction of a leader, on
// any database, reads the fence there under a lock, and ends with [ErrFenced] if a newer
// runner has raised it. [Leader.Define] is for statements about tables and triggers, which servers commit at
// once: a transaction on a second connection holds the lock on the fence until they have ended. A runner that
// is stopped holds up the next one for a minute at most: the server closes its connections. Every two seconds a leader writes into [RunnerTable] who it is, what it
// does and how fast. If that fails, nothing else does. A table that was changed is
// [ErrChanged], and no table belongs to two jobs. A Leader is safe for concurrent use, except
// Hold. Its two goroutines, the heartbeat and the [Pulse], end in Release, which waits for them.
package lead
