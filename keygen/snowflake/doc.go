// Package snowflake makes ids of time, worker id and sequence (Twitter's
// snowflake, 雪花算法, UidGenerator's DefaultUidGenerator) without asking
// anybody for each one.
//
// # Promise
//
// Ids of one generator rise as long as it keeps its worker id; ids of several
// generators rise with time (they trend upwards). No id is issued twice as long
// as no two running processes hold one worker id for the same time:
//
//   - A leased worker id (workerid.NewLeased) is one for a stretch of time, whose
//     end is written down before it is used and read by the next holder. That
//     holds whatever the clocks say, and when a process is paused for an hour,
//     killed, or cut off from the database.
//   - A worker id from WORKER_NODE (sqlstore) is new at each start.
//   - A worker id given by hand (workerid.Static) carries no memory. The
//     generator waits out two ticks when it starts, so that a restart on a
//     correct clock never meets ids of the run before; but if the clock was set
//     back between the two runs by more than the restart took, or if two
//     processes are given the same worker id, ids can repeat.
//
// Time is read from the monotonic clock, anchored to the wall clock and
// re-anchored forwards only: a wall clock set back changes nothing while a
// process runs, and a machine that slept catches up.
//
// The sequence is never reset, unless Config.Sequence says so. It goes on from
// tick to tick, and when a tick is used up it carries into the next one, at most
// Config.Borrow ahead of the clock; then callers wait. So `id % n` is even also
// at a low rate, which a sequence that starts at 0 in every tick is not.
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
