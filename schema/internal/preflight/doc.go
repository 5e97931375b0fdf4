// SPDX-License-Identifier: Apache-2.0

// Package preflight finds, before a migration, what would stop it.
//
// [Inspect] returns a [Finding] for each obstacle. [CheckWriters] and [CheckReplicas] make the one
// check that has to be repeated later: whether rows may change without the triggers and the locks
// of this server.
//
// # Promise
//
// Nothing is changed, except that a temporary table may be made and dropped on a server with
// shards. What the stages of a migration would refuse is found as a Block, with what to do. No
// goroutine is started.
package preflight
