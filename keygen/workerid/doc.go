// SPDX-License-Identifier: Apache-2.0

// Package workerid gives worker ids to generators that need one (the WorkerIdAssigner of
// UidGenerator).
//
// # Promise
//
// An assigner gives the id that it was configured to give, or an error; it never guesses one.
// Whether two processes can hold the same id depends on the assigner; its comment says so.
// Package sqlstore has assigners that store worker ids in a database. Ledgers of leases are in
// sqlstore (MySQL, MariaDB, PostgreSQL, SQLite), redisgen and zookeeper. There is no ledger for
// MongoDB, and none is planned: users who have only MongoDB can number processes by their
// deployment ([Env], [Ordinal]), or write a [Ledger].
//
// # The same worker id after each start
//
// With LeasedConfig.Instance, a process's host and port, say, a process gets the worker id that
// it had before, from every ledger, as long as there are enough worker ids. This helps people
// who read ids, or who compare them with a list of machines. Uniqueness does not depend on it.
//
// # Starting without the database
//
// A leased worker id ([NewLeased]) is a window of ticks that no other process ever uses,
// because the next holder of the worker id starts above its ceiling. So what is left of a
// window when a process is killed is still safe to use. LeasedConfig.File stores it on the
// local disk: the ceiling that the database has, and the tick up to which the process may use
// the window. The file is written and synced before the process uses that part. A process that
// cannot reach the database, or gets no answer within three seconds (or half of the time that is
// left), locks the file and continues from there up to the ceiling, and no further. Clocks decide
// only whether any of the window is left.
//
// Two processes that continue from the same file would repeat ids. So the file is locked while
// a process uses it, and it is valid only at the place where it was written, with the content
// that was written last. The package refuses a copy of the file, a copied disk or container, a
// machine that was rebooted, and an older content that was put back: it compares the inode and
// content of the lock file and the machine's boot id. One case is not detected: older contents
// of both files that somebody writes into the very same files, while the machine runs and
// within a term. No lease, with a file or without, protects from a copy of a running virtual
// machine with its memory, a return to a snapshot of one, or a process restored from a
// checkpoint: restart the processes in such a copy before it has a network.
//
// # Clocks
//
// A worker id without a record ([Static], [Env], [Ordinal], [PrivateIP], [Backup]) is unique
// only if no process starts at a time, by its clock, that the former process had already
// reached. A clock that was fast and is corrected can break that, as [Static] says. [Recorded]
// stores in a file how far ids went. With a lease, a wrong clock of the process neither repeats
// ids nor blocks callers; the ids of a process whose clock is far ahead have the ledger's time.
//
// # One layout, and how to change it
//
// Different worker ids make different ids only within one layout: worker 4 in a layout with 12
// bits of worker and 10 of sequence makes ids that worker 1 makes in a layout with 10 and 12.
// So all processes whose ids must differ need the same layout, and must change it together. A
// ledger stores the layout of each namespace, and the file of [Recorded] stores its own; both
// refuse another layout with [keygen.ErrLayout]. A separate namespace does not help, because
// ledgers do not compare namespaces. Nothing checks worker ids that are set by hand, nor those
// of WORKER_NODE. There are two ways to change the layout, both for layouts whose highest field
// is the time. [keygen.Layout.Above] returns until when no id can repeat.
//
// The first way needs no pause. Give the new layout a namespace of its own and an earlier
// epoch, by a year, say; the layout expires a year earlier for it. Its ids are a year ahead of
// those of the old layout, so processes of both can run at the same time for as long as Above
// returns, a year here. By then all processes with the old layout must have ended.
//
// The second way keeps the namespace, and also the epoch if the time field has the same
// position in both layouts. Set LeasedConfig.Former to the old layout in the new processes.
// They get leases when those of the old processes have ended: a process that is closed ends its
// lease at once, a process that is killed after a term. Old processes get no more leases from
// then on. For worker ids without a ledger, end all processes, delete the files of Recorded,
// wait for a unit of the layout and a few seconds, and start the new ones.
//
// Versions that store no layout refuse a namespace whose layout is stored. Leases that such
// versions left in force block new ones, unless LeasedConfig.Former names their layout.
//
// # Failure modes
//
// An id that does not fit the layout is an error that wraps [keygen.ErrNoWorker]. A file that
// is damaged or used by another process is [ErrRecord]. A layout that differs from the stored
// one is [keygen.ErrLayout]. When a ledger's clock was set back, so that leases cannot be
// extended, the renewal returns [keygen.ErrClockRollback]. The error is in the generator's
// Stats and, once the lease is used up, in the errors of its callers. With a LeasedConfig.File,
// Stats show an outage when less than a third of a term is left.
package workerid
