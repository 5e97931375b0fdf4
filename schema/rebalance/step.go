// SPDX-License-Identifier: Apache-2.0

package rebalance

import "github.com/shardid/shardid/schema/internal/openjob"

// Step is a point of a move, for MoverConfig.Observe.
type Step struct {
	Name  string // a Step constant
	Table string // "" for a step of all tables
	Rows  int64  // rows that the step wrote
	Err   error  // why a StepWaiting waits, nil when the wait is over
}

// The steps of a move, in the order in which they first happen. Their texts are their names
// without Step, in lower case: "leading".
const (
	StepLeading   = openjob.StepLeading  // the mover is elected, older movers are fenced
	StepAnnounced = "announced"          // all processes know which slots move
	StepPruned    = openjob.StepPruned   // what a crash left half done was removed
	StepBlocked   = openjob.StepBlocked  // triggers could not be created, mostly because of a transaction on the table; this is retried
	StepBound     = openjob.StepBound    // a chunk's bound is stored
	StepSnapshot  = openjob.StepSnapshot // a chunk was read
	StepStored    = openjob.StepStored   // a chunk is on the new shard
	StepApplied   = openjob.StepApplied  // changes are on the new shard, their entries are still in the log
	StepAcked     = openjob.StepAcked    // entries were deleted
	StepCompared  = "compared"           // the copied rows are equal on both shards
	StepFenced    = "fenced"             // all processes refuse the slots
	StepDrained   = openjob.StepDrained  // the log is empty
	StepSwitched  = "switched"           // the new shard has the slots
	StepSwept     = "swept"              // some of the rows left behind are deleted
	StepFinished  = "finished"           // the move is finished
	StepWaiting   = openjob.StepWaiting  // a database was unreachable, or others held locks, for a second; this is retried, and the step is reported once more without an Err when the wait is over
)
