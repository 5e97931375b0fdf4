// SPDX-License-Identifier: Apache-2.0

// Package openjob is what a migration knows of its job: the databases, the tables with
// their relations and new ids, and the shards where their rows go.
//
// [Open] looks at the databases and returns a [Job]. Its [Tables] are described as they
// are now, under their own names or those of after a switch. [Table.Home] says to which
// [Target] a row belongs, [Job.Capture] which triggers note that it changed, and
// [Table.SetupDigest] what decides both.
//
// # Promise
//
// Nothing is written: whatever a database has that a migration could not carry is an
// error that wraps ErrUnsupported, ErrNotReady or ErrConfig of package backend. Two runs
// with one digest bring every row to the same shard under the same id. A Job is for the
// stages of one run; where a table is renamed, the stage that does it sets Table.Name and
// Target.Sealed, and no other stage runs meanwhile.
package openjob
