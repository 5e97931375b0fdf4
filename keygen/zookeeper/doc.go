// Package zookeeper numbers things with ZooKeeper: keys from the versions of a
// znode, from transaction ids and from sequential znodes, and worker ids for
// snowflake generators, as Leaf-snowflake takes them.
//
// No ZooKeeper client is imported: the constructors take anything with the
// methods of *zk.Conn of github.com/go-zookeeper/zk, whose types are inferred. A
// Conn knows no contexts; a call that was given up is left to it, and what it
// wrote all the same is found by the next one.
//
// # Keys
//
// [Counter] is a source of spans for package segment: each write reserves one
// block of keys. No key is given twice as long as ZooKeeper keeps what it has
// acknowledged. Keys of one process rise, those of several together only roughly.
// A counter is never begun by itself: it is seeded once. A number that wraps
// round is [keygen.ErrExhausted], one that went back in the sight of this process
// [keygen.ErrRegressed], and a counter that is missing [keygen.ErrUnknownTag]. A
// process that starts after ZooKeeper was restored from a backup cannot know; use
// CounterConfig.Floor.
//
// # Worker ids
//
// [Workers] gives the process at an address its worker id (WorkerID) for a
// snowflake generator. Below its path are
//
//	workers/0000000005         who has worker id 5, up to which tick it may issue ids
//	forever/10.0.0.7:7070      which worker id an address had last, and its time then
//	temporary/10.0.0.7:7070    ephemeral: the address runs
//	clock                      written to, to read ZooKeeper's time
//
// Path itself notes the layout, of which there is one: another one is refused
// ([keygen.ErrLayout]). After a change of layouts (WorkersConfig.Former, and the
// comment of package workerid) worker ids are below workers-1, workers-2 and so on.
//
// When it starts, the process compares its clock with the time in its forever
// znode, with ZooKeeper's, and with the average of those of the running processes,
// which it asks over the network. Only then it registers and takes a worker id.
// Every three seconds it reports: it raises the tick up to which it may issue ids,
// and then writes its time. A clock that is behind the last report takes it out of
// service at once, with an alarm, until the clock is right again. One that is ahead of
// ZooKeeper's by more than the threshold is an alarm, too, but is not written down:
// the process goes on by ZooKeeper's time, and when the clock is corrected. Only while
// ZooKeeper is down can nobody tell; a clock that is ahead at a report to the file
// alone keeps the process out after its correction, for as long as it was ahead.
//
// Two processes never issue ids with the same worker id in the same tick. That
// does not rest on clocks or sessions, but on ticks that are written down before
// they are used: a successor begins above them. A process whose session expired,
// which hangs, or which cannot reach ZooKeeper issues nothing beyond the last
// tick that it was granted.
//
// With WorkersConfig.File a process also starts and goes on without ZooKeeper. A
// worker id then is the file's until WorkersConfig.Hold after the last report,
// and the file says how far it was used, written and synced before it is. A file
// that was copied, restored from a backup or is shared between machines breaks
// that promise; one that was lost only leaves the worker id unused until then.
//
// [Leases] keeps worker ids in ZooKeeper without all that, for
// [workerid.NewLeased].
//
// # Failure modes
//
// A clock that is wrong or cannot be compared, a list that cannot be read and an
// address that is in use make Acquire fail: nothing starts on a guess. What no
// retry cures, as a right that is missing, is a [keygen.SetupError], which says
// what to do and ends calls at once. When ZooKeeper is down, running generators go
// on for three reports, with a file up to WorkersConfig.Hold; then their callers
// get [keygen.ErrStarved]. ZooKeeper data that were wiped are a memory lost: start
// nothing for three reports, or Hold.
package zookeeper
