// SPDX-License-Identifier: Apache-2.0

// Package zookeeper uses ZooKeeper to issue keys and to assign worker ids. Keys come from the
// versions of a znode, from transaction ids or from sequential znodes. Worker ids are for
// snowflake generators, as in Leaf-snowflake.
//
// The package imports no ZooKeeper client: the constructors accept any value with the methods
// of *zk.Conn of github.com/go-zookeeper/zk, whose types are inferred. A Conn has no contexts.
// When a context ends during a call, the call goes on in the background, and the next call
// finds what it wrote.
//
// # Keys
//
// [Counter] is a source of spans for package segment: each write reserves one block of keys. No
// key is issued twice, provided that ZooKeeper keeps what it has acknowledged. Keys of one
// process rise, those of several processes rise together only roughly. A counter must be seeded
// once; the package never creates one by itself. A number that wraps round is
// [keygen.ErrExhausted], a counter that went back while this process runs is
// [keygen.ErrRegressed], and a missing counter is [keygen.ErrUnknownTag]. A process that starts
// after ZooKeeper was restored from a backup cannot know that; use CounterConfig.Floor.
//
// # Worker ids
//
// [Workers] gives the process at an address its worker id (WorkerID) for a snowflake generator.
// Its path contains
//
//	workers/0000000005         the holder of worker id 5, and up to which tick it may issue ids
//	forever/10.0.0.7:7070      the last worker id of an address, and its time then
//	temporary/10.0.0.7:7070    ephemeral: the process at the address runs
//	clock                      written to in order to read ZooKeeper's time
//
// The znode of the path stores the layout, and another layout is refused ([keygen.ErrLayout]).
// After a change of layouts (WorkersConfig.Former, and the comment of package workerid) worker
// ids are below workers-1, workers-2 and so on.
//
// At its start, the process compares its clock with the time in its forever znode, with
// ZooKeeper's, and with the average of the running processes, which it asks over the network.
// Only then it registers and takes a worker id. Every three seconds it reports: it raises the
// tick up to which it may issue ids, and then writes its time. When its clock is behind the
// last report, the process stops issuing ids at once and calls Observer.Alarm, until the clock
// is right again. When its clock is ahead of ZooKeeper's by more than the threshold, it calls
// Alarm, too, but does not write that time: ids have ZooKeeper's time, also after the
// correction of the clock. Only while ZooKeeper is down nobody can detect that. If the clock is
// then ahead at a report to the file, the process issues no ids after the correction for as
// long as the clock was ahead.
//
// Two processes never issue ids with the same worker id in the same tick. That does not depend
// on clocks or sessions, but on ticks that are stored before they are used: a successor begins
// above them. A process whose session expired, which hangs, or which cannot reach ZooKeeper
// issues no ids beyond the last tick that it was granted.
//
// With WorkersConfig.File a process can also start and continue without ZooKeeper. A worker id
// then belongs to the file until WorkersConfig.Hold after the last report. The file stores how
// far the worker id was used; it is written and synced before that part is used. A file that
// was copied, restored from a backup or shared between machines breaks the promise. When a file
// is lost, the worker id stays unused until Hold has passed.
//
// [Leases] stores worker ids in ZooKeeper without addresses, comparison of clocks and file, for
// [workerid.NewLeased].
//
// # Failure modes
//
// Acquire fails when a clock is wrong or cannot be compared, when a list cannot be read, and
// when the address is in use; it never starts on a guess. An error that a retry cannot cure,
// such as a missing right, is a [keygen.SetupError], which says what to do and ends calls at
// once. When ZooKeeper is down, running generators go on for three reports, or with a file up
// to WorkersConfig.Hold; then their callers get [keygen.ErrStarved]. If the data of ZooKeeper
// were wiped, or restored from a backup, end all processes, and start none for three reports,
// for Hold, or for the term of [Leases]: nothing detects that worker ids were in use.
package zookeeper
