// SPDX-License-Identifier: Apache-2.0

// Package throttle holds back the copy of a migration while a server has enough to do:
// while a replica is behind, many threads are running, commits take long, or people want
// it slower.
//
// # Promise
//
// [Throttle.Wait] is for migrate.Config.Throttle. It returns when no cause is left, and
// [Throttle.Cause] says in words with figures what it waits for: "replica r1 is 12 s
// behind, at most 5 s". A replica that cannot be asked, that repeats nothing, or that
// has shown no heartbeat yet holds the copy back like one that is behind.
//
// The lag of a replica is what it does not have: a row of the table shardid_beat on the
// source is changed twice a second while a copy asks, and the lag is the age of the first
// change that cannot be read on the replica. So chains of replicas, filters, delayed
// replicas and stopped threads are all measured, and no two clocks are compared. The
// commits of these changes are also those whose time is measured.
//
// # What it does not do
//
// Changes of the application are followed without a throttle: they are as many as the
// application makes, and what is not followed gathers in a log on the source and delays
// the switch. Comparing is not held back either.
//
// # Failure modes
//
// A source that cannot be asked ends Wait with its error, which the copy would meet next.
// Nothing is measured while nobody waits, so a chunk that is under way ends before a
// throttle is felt: smaller chunks are held back sooner. Times are at least so long:
// of a replica that shows nothing for more than half an hour the last half hour is known.
package throttle
