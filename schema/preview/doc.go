// SPDX-License-Identifier: Apache-2.0

// Package preview keeps, in a table on the source of a migration, what the shards will do
// otherwise with the statements of an application: which they refuse, which several of
// them answer, and before which others are asked.
//
// # Promise
//
// A program that routes its statements collects them in a [sharding.Preview] while the
// source still serves the tables. A [Recorder] of each process writes them into the table
// shardid_preview, one row per statement without its values, so that an operator sees
// those of all processes in one place before the switch: [Read], which `shardid migrate
// preview` prints. [NoteLook] remembers that somebody looked; `shardid migrate cutover`
// warns when nobody has, or when statements that will be refused were found since.
//
// # What it does not do
//
// It plans nothing itself and delays no statement. A statement that no process has sent
// while a Recorder was running is unknown to it: let it run for as long as the rarest job
// of the application needs to come round.
//
// # Failure modes
//
// What cannot be written is kept and written later; a process that is killed loses what it
// found since its last write. Processes on different hosts may have different clocks: all
// times are those of the source.
package preview
