// SPDX-License-Identifier: Apache-2.0

// Package throttle pauses the copy of a migration while a server is overloaded: a replica lags,
// many threads are running, commits take long, or an operator asks for it.
//
// # Promise
//
// [Throttle.Wait] is for migrate.Config.Throttle. It returns when no cause is left.
// [Throttle.Cause] names the present cause with its figures: "replica r1 is 12 s behind, at most
// 5 s". A replica that cannot be reached, that does not replicate, or that has shown no heartbeat
// yet counts as one that lags.
//
// The lag is measured by a heartbeat. A row of the table shardid_beat on the source is changed
// twice a second while a copy runs. The lag is the age of the first change that cannot be read on
// the replica. This measures chains of replicas, filters, delayed replicas and stopped threads,
// and compares no two clocks. The duration of commits is that of these changes.
//
// # What it does not do
//
// It does not slow down the following of changes. The application makes these changes anyway, and
// those that are not followed fill a log on the source and delay the switch. It does not slow down
// Verify either.
//
// # Failure modes
//
// If the source cannot be reached, Wait returns its error; the copy would fail with the same error.
// Wait is called between chunks, so a chunk that is being copied is not interrupted. With smaller
// chunks the throttle acts sooner. The heartbeats of half an hour are kept, so a longer lag is known
// as half an hour.
package throttle
