// SPDX-License-Identifier: Apache-2.0

// Package snowflake makes ids of time, worker id and sequence (Twitter's snowflake, 雪花算法,
// UidGenerator's DefaultUidGenerator) without a round trip per id.
//
// # Promise
//
// Ids of one generator rise as long as it keeps its worker id. Ids of several generators rise
// with time: they trend upwards. No id is issued twice, provided that all processes have one
// layout (package workerid says how to change it), and that no two running processes use one
// worker id for the same time:
//
//   - A leased worker id (workerid.NewLeased) belongs to one process for a period
//     whose end is stored before the process uses it, and which the next holder
//     reads. That holds whatever the clocks say, and also when a process is paused
//     for an hour, killed, or cut off from the database.
//   - A worker id from WORKER_NODE (sqlstore) is new at each start.
//   - A worker id that is set by hand (workerid.Static, Env, Ordinal) has no record.
//     The generator waits for two ticks when it starts, so that a restart never
//     repeats ids of the former run if the clock was right in both. The next
//     section says what remains. If two processes have the same worker id, ids
//     can repeat.
//
// Time is the wall clock's, read once a second and advanced by the monotonic clock in between.
// After a suspend of the machine the generator catches up.
//
// # A clock that is wrong
//
// When the wall clock is set back while a process runs, ids go on rising from the last one.
// Callers need not wait for the clock: new ids are the remaining ones of the last tick, and
// then those of the next ticks, at half the speed of time, until the clock has caught up.
// Suppose that a generator was ahead by d. It agrees with the clock after d if all ids that
// callers want meanwhile fit into the tick that it had reached, and after twice d in any case.
// Meanwhile callers have half of the layout's ids.
//
// With a worker id that is set by hand, one risk remains. If a process ends before the clock
// has caught up, and another one starts at the corrected time, ids repeat. The same happens
// when the clock is set back between two runs by more than the restart took. No running process
// can know about either. As long as the first risk exists, Stats.LastError and the error of
// Close report it ([keygen.ErrClockRollback]): start no process with that worker id until the
// clock has caught up. workerid.Recorded stores how far ids went; leases do not need it.
//
// A process may use leased ids up to the lease's ceiling, whatever its own clock reads, because
// the ceiling follows the ledger's clock. When the process's clock is ahead of the ledger's by
// more than half a term, the generator does not trust it: ids have the ledger's time, and
// Stats.LastError names the clocks that differ. When the clock goes back, ids stay where they
// were, up to the ceiling. So a wrong clock makes callers wait for one renewal at most, even if
// it was wrong at the start.
//
// # Evenness
//
// The sequence is never reset, unless Config.Sequence says so. It starts at a random number and
// continues from tick to tick. When a tick is used up, it carries into the next one, at most
// Config.Borrow ahead of the clock; then callers wait. So `id % n` is evenly distributed at any
// rate, even over processes that issue one id each. A sequence that starts at 0 in every tick
// is not evenly distributed. This holds for powers of two up to the number of sequences in a
// tick, in layouts whose lowest field is the sequence: up to 4096 in Twitter's. The bits below
// the sequence are the same in all ids of a process. In Sonyflake's layout these are the 16
// bits of the worker, so all ids of a process have one remainder; take the slot from a hash of
// the id there.
//
// # How an id is taken
//
// The state is one word, tick<<sequenceBits | sequence, whatever the order of the id's fields.
// A call reads the clock. If the state's tick is behind, a compare-and-swap raises it and takes
// the first id; otherwise an addition takes the next one. The call compares the state with one
// limit, the lower of what the clock and the lease allow. The limit covers drift, fencing and
// the layout's end. A state that was taken is never given back, states above the limit are
// never used, and no call waits while it holds a lock.
//
// # Without reading the clock
//
// Reading the clock is most of the cost of an id. With Config.Coarse, one goroutine updates the
// tick while ids are drawn. Once per unit of the layout it raises the state to the present tick
// and sets a mark, up to which the clock and the lease allow ids. A caller adds one and
// compares with the mark; above the mark, it reads the clock itself. Uniqueness and order
// depend on the state and the limit as before: if the goroutine gets no processor for seconds,
// the time in ids is old, and nothing else changes. When no ids are drawn, the goroutine resets
// the mark and sleeps.
//
// # Failure modes
//
// [New] refuses a layout that has expired or expires within a day ([keygen.ErrExpired]), and a
// worker id that does not fit it. Next and Fill return [keygen.ErrStarved] when the context
// ends while they wait for the clock or for a lease that cannot be renewed. They return
// [keygen.ErrClockRollback] when the clock is so far behind the last id that no policy of
// Config.Rollback helps, and [keygen.ErrExpired] when the time field is used up. When a lease
// is lost, the generator acquires another worker id; meanwhile it issues the rest of the former
// lease, and then callers wait. When a ledger's clock was set back so far that leases cannot be
// renewed, ErrStarved and Stats also wrap an ErrClockRollback. When a ledger fails until
// somebody changes it ([keygen.SetupError]), calls return at once when the lease is used up.
package snowflake
