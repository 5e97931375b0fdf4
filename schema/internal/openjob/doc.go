// SPDX-License-Identifier: Apache-2.0

// Package openjob describes the job of a migration: the databases, the tables with their
// relations and new ids, and the shards where their rows go.
//
// [Open] reads the databases and returns a [Job]. Its [Tables] have their present definitions,
// under their own names or those after a switch. [Table.Home] returns the [Target] of a
// row, [Job.Capture] the triggers that note its changes, and [Table.SetupDigest] a digest
// of everything on which both depend.
//
// # Promise
//
// Nothing is written. Whatever a migration cannot copy is an error that wraps
// ErrUnsupported, ErrNotReady or ErrConfig of package backend. Two runs with equal digests
// write every row to the same shard under the same id. A Job is for the stages of one run.
// The stage that renames a table sets Table.Name and Target.Sealed, and no other stage runs
// meanwhile.
package openjob
