// Package workerid gives worker ids to generators that need one (the
// WorkerIdAssigner of UidGenerator).
//
// # Promise
//
// An assigner gives the id it was asked to give, or an error; it never guesses
// one. Whether two processes can hold the same id depends on the assigner and
// stands in its comment. Assigners that keep worker ids in a database are in
// sqlstore. Ledgers of leases are in sqlstore (MySQL, MariaDB, PostgreSQL, SQLite),
// redisgen and zookeeper. There is none for MongoDB, and none is planned: who has MongoDB
// alone numbers processes by their deployment ([Env], [Ordinal]), or writes a [Ledger].
//
// # The same worker id after each start
//
// LeasedConfig.Instance, a process's host and port say, lets a process have the worker
// id that it had before, from every ledger and as long as there are enough of them. It
// is for people who read ids, and for whoever compares them with a file of machines:
// what is unique does not depend on it.
//
// # Starting without the database
//
// A leased worker id ([NewLeased]) is a window of ticks that nobody else uses, at
// any time: whoever has the worker id next starts above its ceiling. So what a
// process left of its window when it was killed is still good. LeasedConfig.File
// keeps it: the ceiling that the database has, and up to where the window may be
// used up, which is written and synced before it is. A process that finds the
// database out of reach locks the file and goes on from there, up to that ceiling
// and not beyond. Clocks decide only whether anything of the window is left to
// issue.
//
// Two processes that went on from the same file would repeat ids. The file is
// locked while a process has it, and is good only where it was written and as it
// was written last: a copy of it, a copied disk or container, a machine that was
// started anew and an older content that was put back are refused, by the lock's
// inode and content and the machine's boot id. Only older contents of both files
// that are written into the very same files, while the machine runs and within a
// term, are not noticed. And no lease, with a file or without, protects from a
// virtual machine that is copied while it runs, together with its memory: restart
// the processes in such a copy before it has a network.
//
// # Clocks
//
// A worker id without a memory ([Static], [Env], [Ordinal], [PrivateIP], [Backup])
// is unique as long as no process starts with it at a time, by its clock, that the
// former one had passed. A clock that was fast and is corrected can do that, as
// [Static] says. [Recorded] keeps in a file how far ids went. With a lease a wrong
// clock of the process repeats no ids and stops none; those of a process whose clock
// is far ahead have the ledger's time.
//
// # One layout, and how to change it
//
// Different worker ids keep ids apart only in one layout: with 12 bits of worker
// and 10 of sequence worker 4 makes ids that worker 1 makes with 10 and 12. So all
// processes whose ids must differ have the same layout, and change it together. A
// ledger notes the layout of each namespace, the file of [Recorded] its own, and
// another one is refused with [keygen.ErrLayout]. That a namespace is another one
// helps nothing: ledgers do not look into others. Nobody checks worker ids that are
// given by hand, nor those of WORKER_NODE. There are two ways from one layout to
// another, both for layouts with time on top; [keygen.Layout.Above] tells whether and
// until when no id comes twice.
//
// The first way needs no pause. Give the new layout an earlier epoch, by a year say,
// which it then lasts less, and a namespace of its own. Its ids are a year ahead of
// those of the old layout, and processes of both run side by side: for as long as
// Above says, which is a year. By then all processes with the old layout must have
// ended.
//
// The second way keeps the namespace, and the epoch where time stands at the same
// place in both layouts. Set LeasedConfig.Former to the old layout in the new
// processes. They get leases when those of the old processes have ended, which a
// process that is closed does at once and one that is killed after a term; old
// processes get none from then on. For worker ids without a ledger end all
// processes, delete the files of Recorded, wait for a unit of the layout and a few
// seconds, and start the new ones.
//
// Versions that noted no layout refuse a namespace that has one noted. Leases that
// they left in force keep others from being given, unless LeasedConfig.Former says
// of which layout they are.
//
// # Failure modes
//
// An id outside of what the layout can hold is an error that wraps
// [keygen.ErrNoWorker]. A file that is damaged or held by another process is
// [ErrRecord]. A layout that is not the one noted is [keygen.ErrLayout]. A ledger
// whose clock was set back, so that leases cannot be extended, is
// [keygen.ErrClockRollback] from the renewal, which shows in the generator's Stats
// and, once the lease is used up, in the errors of its callers.
// With a LeasedConfig.File an outage shows there when what is left is less than a
// third of a term.
package workerid
