// Package snowflake makes ids of time, worker id and sequence (Twitter's
// snowflake, 雪花算法, UidGenerator's DefaultUidGenerator) without asking
// anybody for each one.
//
// # Promise
//
// Ids of one generator rise as long as it keeps its worker id; ids of several
// generators rise with time (they trend upwards). No id is issued twice as long
// as all processes have one layout (the comment of package workerid says how to
// change it) and no two running ones hold one worker id for the same time:
//
//   - A leased worker id (workerid.NewLeased) is one for a stretch of time, whose
//     end is written down before it is used and read by the next holder. That
//     holds whatever the clocks say, and when a process is paused for an hour,
//     killed, or cut off from the database.
//   - A worker id from WORKER_NODE (sqlstore) is new at each start.
//   - A worker id given by hand (workerid.Static, Env, Ordinal) carries no memory.
//     The generator waits out two ticks when it starts, so that a restart never
//     meets ids of the run before as long as the clock was right in both. What no
//     memory can know is below. If two processes are given the same worker id, ids
//     can repeat.
//
// Time is the wall clock's, carried on by the monotonic clock for a second at most.
// A machine that slept catches up.
//
// # A clock that is wrong
//
// When the wall clock is set back while a process runs, ids go on rising from the
// last one. No caller has to wait for the clock: new ids are those that the tick
// reached so far has left and then those of the next ticks, at half the speed of
// time, until the clock has caught up with them. So a generator that was ahead by d
// is back after d when all the ids that are wanted meanwhile fit into the tick that
// it had reached, and after twice d in any case; callers have half of the layout's
// ids meanwhile.
//
// With a worker id that is given by hand this is what remains: a process that ends
// before it is back is followed by one that starts at the corrected time and repeats
// ids. The same happens when the clock is set back between two runs by more than the
// restart took. Nothing that runs can know. As long as it is so, Stats.LastError and
// the error of Close say it ([keygen.ErrClockRollback]): start no process with that
// worker id until the clock has caught up. workerid.Recorded writes down how
// far ids went; leases do not need to know.
//
// Leased ids may be used up to the lease's ceiling, whatever the clock of the process
// reads, and the ledger's clock says where that is. A clock that is ahead of the
// ledger's by more than half a term is not believed: ids have the ledger's time, and
// Stats.LastError names the clocks that differ. A clock that goes back leaves ids
// where they were, up to the ceiling. So a wrong clock keeps callers waiting for a
// renewal at most, also when it was wrong at the start.
//
// # Evenness
//
// The sequence is never reset, unless Config.Sequence says so. It starts at random,
// goes on from tick to tick, and when a tick is used up it carries into the next
// one, at most Config.Borrow ahead of the clock; then callers wait. So `id % n` is
// even at any rate, also of processes that issue one id each, which a sequence that
// starts at 0 in every tick is not. That holds for powers of two up to the number of
// sequences in a tick, in layouts whose lowest field is the sequence: up to 4096 in
// Twitter's. What stands below the sequence is the same in all ids of a process. In
// Sonyflake's layout those are the 16 bits of the worker, so that all of a process's
// ids have one remainder; take the slot from a hash of the id there.
//
// # How an id is taken
//
// The state is one word, tick<<sequenceBits | sequence, whatever the order of
// the id's fields. A call reads the clock; if the state's tick is behind, one
// compare-and-swap lifts it and takes the first id; otherwise one addition takes
// the next. One comparison with a limit, the least of what the clock and the
// lease allow, covers drift, fencing and the layout's end. Nothing that was taken
// is ever given back; states beyond the limit are burnt, and waiting happens
// outside any lock.
//
// # Without reading the clock
//
// The reading of the clock is most of what an id costs. With Config.Coarse one goroutine
// keeps the tick while ids are drawn: it lifts the state to the present tick and sets a
// mark, up to which the clock and the lease allow ids, every unit of the layout. A caller
// adds one and compares with the mark; beyond it, it reads the clock itself. What is
// unique, and that ids rise, rests on the state and the limit as before: a goroutine that
// gets no time for seconds makes the time in ids old, and nothing else. When no ids are
// drawn it takes the mark back and sleeps.
//
// # Failure modes
//
// [New] refuses a layout that has expired or has less than a day left
// ([keygen.ErrExpired]), and a worker id that does not fit it. Next and Fill
// return [keygen.ErrStarved] when the context ends while they wait for the clock
// or for a lease that cannot be renewed, [keygen.ErrClockRollback] when the clock
// reads so far behind the last id that no policy of Config.Rollback helps, and
// [keygen.ErrExpired] when the time field is used up. A lease that was lost is
// replaced by one on another worker id; the generator goes on within what it was
// leased before, and then callers wait. A ledger whose clock was set back so far
// that leases cannot be renewed is named in ErrStarved and in Stats as an
// ErrClockRollback too; one that fails until somebody changes it
// ([keygen.SetupError]) ends calls at once when the lease is used up.
package snowflake
