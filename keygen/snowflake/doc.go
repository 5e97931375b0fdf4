// Package snowflake makes ids of time, worker id and sequence (Twitter's
// snowflake, 雪花算法, UidGenerator's DefaultUidGenerator) without asking
// anybody for each one.
//
// # Promise
//
// Ids of one generator rise strictly; ids of several generators rise with time
// (they trend upwards). No id is issued twice as long as no two running
// processes hold one worker id, whatever the wall clock does while they run:
//
//   - Time is read from the monotonic clock, anchored to the wall clock and
//     re-anchored forwards only, so a wall clock set back changes nothing, and a
//     machine that slept catches up.
//   - The sequence is never reset. It goes on from tick to tick, and when a
//     tick is used up it carries into the next one, at most one tick ahead of
//     the clock; then callers wait. So `id % n` is even also at a low rate,
//     which a sequence that starts at 0 in every tick is not.
//
// # What it cannot know
//
// A worker id given by hand (workerid.Static) carries no memory. The generator
// waits out two ticks when it starts, so that a restart on a correct clock
// never meets ids of the run before; but if the clock was set back between the
// two runs by more than the restart took, or if two processes are given the
// same worker id, ids can repeat. Worker ids from WORKER_NODE (sqlstore) are
// new at each start and have neither problem.
//
// # Failure modes
//
// [New] refuses a layout that has expired or has less than a day left
// ([keygen.ErrExpired]), and a worker id that does not fit it. Next and Fill
// wait, outside any lock, while the ids of a tick are used up; they return
// [keygen.ErrStarved] when the context ends first, [keygen.ErrClockRollback]
// when the clock reads so far behind the last id that waiting is no answer, and
// [keygen.ErrExpired] when the time field is used up.
package snowflake
