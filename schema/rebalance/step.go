// SPDX-License-Identifier: Apache-2.0

package rebalance

import "github.com/shardid/shardid/schema/internal/openjob"

// Step is a point of a move, for MoverConfig.Observe.
type Step struct {
	Name  string // one of the Step constants
	Table string // "" when the step is about all
	Rows  int64  // that the step wrote
	Err   error  // why a StepWaiting waits, nil when that is over
}

// The steps of a move, in the order in which they first happen. Their texts are their
// names without Step, in small letters: "leading".
const (
	StepLeading   = openjob.StepLeading  // elected, the older ones are fenced
	StepAnnounced = "announced"          // all processes know which slots move
	StepPruned    = openjob.StepPruned   // what a crash left half done was removed
	StepBlocked   = openjob.StepBlocked  // something, a transaction on the table mostly, kept triggers from being made; it is tried again
	StepBound     = openjob.StepBound    // a chunk's bound is written down
	StepSnapshot  = openjob.StepSnapshot // a chunk was read
	StepStored    = openjob.StepStored   // a chunk is on the new shard
	StepApplied   = openjob.StepApplied  // changes are on the new shard, their entries are still in the log
	StepAcked     = openjob.StepAcked    // entries were deleted
	StepCompared  = "compared"           // what was copied is equal on both shards
	StepFenced    = "fenced"             // the slots are refused by everybody
	StepDrained   = openjob.StepDrained  // the log is empty
	StepSwitched  = "switched"           // the new shard has the slots
	StepSwept     = "swept"              // some of the rows left behind are deleted
	StepFinished  = "finished"           // the slots are like all others
	StepWaiting   = openjob.StepWaiting  // a database has been away, or locks been held by others, for a second; it is tried again, and the step told once more without an Err when that is over
)
