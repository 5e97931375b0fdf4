// SPDX-License-Identifier: Apache-2.0

// Package preflight looks for what would stop a migration or surprise somebody in the
// middle of it.
//
// [Inspect] returns a [Finding] for each. [CheckWriters] and [CheckReplicas] ask the one
// question of them that has to be asked again later: whether rows may change where
// neither a trigger nor a lock of this server is seen.
//
// # Promise
//
// Nothing is changed, but that a server with shards may make a temporary table of its own
// and drop it. What the stages of a migration would refuse is found as a Block, with what
// to do. No goroutine is started.
package preflight
