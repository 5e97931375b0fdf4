// SPDX-License-Identifier: Apache-2.0

// Package preview stores, in a table on the source of a migration, what the shards will do
// differently with the statements of an application: which they refuse, which several of
// them answer, and which need a query before.
//
// # Promise
//
// A program that routes its statements collects them in a [sharding.Preview] while the
// source still serves the tables. A [Recorder] of each process writes them into the table
// shardid_preview, one row per statement without its values, so that an operator sees those
// of all processes in one place before the switch: [Read], which `shardid migrate preview`
// prints. [NoteLook] stores that somebody has read them; `shardid migrate cutover` warns
// when nobody has, or when statements that will be refused were found since.
//
// # What it does not do
//
// It plans nothing itself and delays no statement. It knows only statements that a process sent
// while a Recorder was running. Let it run until each job of the application, the monthly ones too,
// has run once.
//
// # Failure modes
//
// If the table cannot be written, the findings stay in memory and are written later. A process that
// is killed loses its findings since the last write. All times are those of the source, because the
// clocks of hosts may differ.
package preview
