// Package workerid gives worker ids to generators that need one (the
// WorkerIdAssigner of UidGenerator).
//
// # Promise
//
// An assigner gives the id it was asked to give, or an error; it never guesses
// one. Whether two processes can hold the same id depends on the assigner and
// stands in its comment. Assigners that keep worker ids in a database are in
// sqlstore.
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
// # Failure modes
//
// An id outside of what the layout can hold is an error that wraps
// [keygen.ErrNoWorker]. A file that is damaged or held by another process is
// [ErrRecord]. A ledger whose clock was set back, so that leases cannot be
// extended, is [keygen.ErrClockRollback] from the renewal, which shows in the
// generator's Stats and, once the lease is used up, in the errors of its callers.
// With a LeasedConfig.File an outage shows there when what is left is less than a
// third of a term.
package workerid
