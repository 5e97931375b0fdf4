// SPDX-License-Identifier: Apache-2.0

// Package slotstore stores a table's map of slots in the application's own database, so that slots
// can move between shards while the application runs: MySQL, MariaDB, PostgreSQL or SQLite. It
// decides which process may use which map, and which database accepts a row. The caller moves the
// rows: a Mover of package schema/rebalance executes all the steps below.
//
// # Promise
//
// At every moment at most one shard accepts writes of a slot, even if processes use old maps, are
// paused, or have open transactions: a trigger on each shard's tables reads, in the writer's own
// transaction, a row that says whether the shard owns the slot ([sharding.FenceMessage] is its
// refusal). Fencing a slot waits for the transactions that have written to it.
//
// Versions and leases keep reads correct. Each change of the map is a new version. A process that
// follows the map holds a lease on the version that it uses, and renews it. The map gets a further
// version only after all leases on older versions have ended, so at most two versions are in use at
// a time. A process whose lease has ended refuses keys with [sharding.ErrStaleMap].
//
// # How a slot moves
//
//		active → Copy → copying → Fence → fenced → Switch → moved → Finish → active
//
//	  - Copy names the new shard and creates the triggers. From now on, queries of several shards
//	    leave out copies, and other statements for several shards are refused
//	    ([sharding.ErrSlotMoving]); statements with a key continue.
//	  - The caller copies rows, in transactions of [Store.Bypass], and applies later changes.
//	  - Fence stops the slot: its old shard refuses writes, and routers refuse its
//	    keys, for which statements of package shardsql wait. Then the caller copies the remaining changes, and compares.
//	  - Switch makes the new shard the owner of the slot. The caller deletes the remaining rows of the
//	    old shard, in transactions of [Store.Bypass].
//	  - Finish allows all statements for several shards again. It changes shard_fence after the deletion, so that package
//	    shardsql knows which replicas have received both.
//	  - Abort, before Switch, keeps the slot on its old shard. The caller then deletes the copies, and
//	    calls Finish.
//
// Each step fails with [ErrLeased] while older versions are in use; [Store.Settle] waits for that.
// Call it before rows are copied, before the last rows are copied, and before rows are deleted.
// Each step may be repeated after an error or a crash, and then completes what it began. A caller
// that moves many slots writes with a [Passage] and makes steps with [Store.AsOf], so that a
// process that was paused for long cannot interfere with its successor.
//
// # Failure modes
//
// The map's database must keep what it has committed. If it fails over without the last commits, or is
// restored from a backup, Follow and Copy return [sharding.ErrStaleMap], because the shards know a newer
// version; shards that do not answer are not asked. Leases that were lost are missing until their holders
// renew them.
//
// The key must be an integer column with a rule Low, Bits, Mod or OffsetStep, which triggers can
// compute; [New] refuses others. Triggers do not fire on TRUNCATE, and on MySQL not on changes by a
// foreign key's cascade. A read that a process sent before its lease ended may return later, and a
// process takes a third of a lease's term to leave a version. Package shardsql sends a statement for one shard again if its slot
// has left by the time of the answer. A query of several shards that reaches some of them so late may miss rows, or return rows twice. The database's clock decides when
// leases end: if it jumps ahead by more than a term, leases end early. A process also takes its lease for
// ended when either clock of its machine says so: the monotonic one stands still while the machine is
// suspended. No clock of a virtual machine shows a pause by its host if nobody corrects it afterwards: until
// its next renewal, after a third of the term at most, such a process may read a shard that a slot has left.
package slotstore
