// SPDX-License-Identifier: Apache-2.0

// Package follow brings changes to where their rows belong, from the logs that triggers
// write: before a switch from the source to the shards, after it from the shards to the
// retired tables of the source.
//
// [Streams] has the ways of a job: [Streams.Forward], [Streams.Backward], and
// [Streams.Along] for one whose ends are given. [Stream.Pass] goes through a log once. A
// [Follower] goes through several again and again: [Follower.UntilCaughtUp],
// [Follower.KeepUp], and [CatchUp] before a switch.
//
// # Promise
//
// An entry leaves its log only after its row was read again and committed where it
// belongs, or when no copier has reached it. A row that another one is in the way of
// stays noted, and so does one whose copy is under way. Every transaction checks that its
// runner leads. One goroutine at a time may use the streams of a job, as a row has one
// applier; none is started here.
package follow
