// SPDX-License-Identifier: Apache-2.0

package openjob

// The steps of a run, in the order in which they first happen.
const (
	StepLeading    = "leading"    // elected, the older ones are fenced
	StepPruned     = "pruned"     // what a crash left half done was removed
	StepBlocked    = "blocked"    // something, a transaction on the table mostly, kept triggers from being made; it is tried again
	StepBegun      = "begun"      // the job's phase is stored
	StepBound      = "bound"      // a chunk's bound is written down
	StepSnapshot   = "snapshot"   // a chunk was read
	StepStored     = "stored"     // a chunk is on the targets
	StepApplied    = "applied"    // changes are on the targets, their entries are still in the log
	StepAcked      = "acked"      // entries were deleted
	StepLocked     = "locked"     // writers wait
	StepDrained    = "drained"    // the log is empty
	StepRenamed    = "renamed"    // the tables are closed
	StepFlipped    = "flipped"    // the route was changed
	StepSealing    = "sealing"    // a rollback closes the shards next
	StepSealed     = "sealed"     // the shards are closed
	StepReinstated = "reinstated" // the source's tables are back
	StepWaiting    = "waiting"    // a database has been away, or locks been held by others, for a second; it is tried again
	StepCompared   = "compared"   // Verify has compared rows
	StepUndone     = "undone"     // a switch that somebody had left half done could not be finished, and was undone
	StepInspected  = "inspected"  // Inspect has read the rows of a table once
)
