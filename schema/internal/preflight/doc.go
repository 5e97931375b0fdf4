// SPDX-License-Identifier: Apache-2.0

// Package preflight finds what would stop a migration, before it begins.
//
// [Inspect] returns a [Finding] for each obstacle. [CheckWriters] and [CheckReplicas] make the one
// check that has to be repeated later: whether rows may change without the triggers and the locks
// of this server.
//
// # Promise
//
// Nothing is changed, except that a temporary table may be created and dropped on a server
// with shards. Everything that the stages of a migration would refuse is a finding with the
// severity Block and a fix. No goroutine is started.
package preflight
