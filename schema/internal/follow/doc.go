// SPDX-License-Identifier: Apache-2.0

// Package follow copies changed rows, as noted by triggers in logs, to the other side:
// before a switch from the source to the shards, after it from the shards to the retired
// tables of the source.
//
// [Streams] are the logs of a job with both their sides: [Streams.Forward],
// [Streams.Backward], and [Streams.Along] for given ends. [Stream.Pass] goes through a log
// once. A [Follower] goes through several logs repeatedly: [Follower.UntilCaughtUp],
// [Follower.KeepUp], and [CatchUp] before a switch.
//
// # Promise
//
// An entry is deleted from its log only after its row was read again and committed on the
// other side, or when no copier has reached it. An entry stays while another row blocks its
// row, and while its row is being copied. Every transaction checks that its runner leads.
// One goroutine at a time may use the streams of a job, so that each row has one applier;
// the package starts none.
package follow
