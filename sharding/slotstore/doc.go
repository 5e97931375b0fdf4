// SPDX-License-Identifier: Apache-2.0

// Package slotstore keeps a table's map of slots in the application's own
// database, so that slots can move between shards while the application runs:
// MySQL, MariaDB, PostgreSQL or SQLite. It decides who may use which map and
// which database takes a row. Moving the rows is the caller's: a Mover of package
// schema/rebalance makes all the steps below.
//
// # Promise
//
// At every moment at most one shard takes writes of a slot, whatever processes
// hold old maps, are paused, or have transactions open: a trigger on each shard's
// tables reads, in the writer's own transaction, a row that says whether the slot
// is the shard's ([sharding.FenceMessage] is its refusal). Fencing a slot waits
// for the transactions that have written to it.
//
// Reads are kept right by versions and leases. Each change of the map is a new
// version. A process that follows the map holds a lease on the version that it
// uses and renews it; a version is only followed by the next one when no lease on
// an older one is left, so at most two versions are in use at a time. A process
// whose lease ran out refuses keys with [sharding.ErrStaleMap].
//
// # How a slot moves
//
//		active → Copy → copying → Fence → fenced → Switch → moved → Finish → active
//
//	  - Copy names the new shard and puts the triggers in place. Statements for all
//	    shards are refused from now on, as they could see copies
//	    ([sharding.ErrSlotMoving]); statements with a key go on.
//	  - The caller copies rows, in transactions of [Store.Bypass], and follows what
//	    changes meanwhile.
//	  - Fence stops the slot: its old shard refuses writes, and routers refuse its
//	    keys. Then the caller copies what is left, and compares.
//	  - Switch makes the new shard the slot's own. The caller deletes the rows left
//	    behind, in transactions of [Store.Bypass].
//	  - Finish lets statements for all shards pass again.
//	  - Abort, before Switch, leaves the slot where it was; the copies are what is
//	    left behind then, and Finish follows.
//
// Each step refuses to begin with [ErrLeased] while older versions are in use;
// [Store.Settle] waits for that, and is to be called before rows are copied,
// before the last ones are, and before rows are deleted. Each step may be
// repeated after an error or a crash, and then completes what it began. Whoever
// moves many slots writes by a [Passage] and makes steps by [Store.AsOf], so that
// one that was paused for long cannot interfere with its successor.
//
// # Failure modes
//
// The key must be an integer column and its rule Low, Bits, Mod or OffsetStep,
// which triggers can compute; others are refused by [New]. Triggers see no
// TRUNCATE, and on MySQL no change that a foreign key's cascade makes. A read
// that a process sent before its lease ran out may answer later, and a process
// takes a third of a lease's term to leave a version. The database's clock
// decides when leases end: one that jumps ahead by more than a term ends them
// early.
package slotstore
