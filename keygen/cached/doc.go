// Package cached makes ids of time, worker id and sequence ahead of time and
// hands them out of a ring (UidGenerator's CachedUidGenerator and RingBuffer): a
// call is one atomic addition and a comparison, and reads no clock.
//
// # The ring
//
// UidGenerator's slots hold one id each; here a place in the ring holds all ids
// of one tick of the layout, as they lie evenly apart. There are 2^BoostPower
// places, so that the ring's capacity is UidGenerator's, (maxSequence+1) <<
// BoostPower. It is filled when the generator starts, when a call leaves fewer
// ids than PaddingFactor percent of the capacity, and every ScheduleInterval,
// each time until it is full. Generator.Ring shows tail, cursor, capacity,
// threshold and what was rejected.
//
// # Promise
//
// Ids of one generator rise; ids of several generators rise with time (they
// trend upwards). No id is issued twice, because the worker id was either never
// used before (sqlstore's WorkerNode), or is leased together with the time that
// ids are made for (workerid.NewLeased, or workerid.Recorded for a ring of less
// than a second): nothing is made at or above the lease's ceiling. A worker id
// given by hand is refused: nobody knows how far ahead of the clock its former
// holder was. All processes whose ids must differ have one layout; leases refuse
// another, WORKER_NODE has no place for it (see package workerid).
//
// The time in an id is not the time at which it was handed out. It is ahead of
// the clock by the ring's length at most, 2^BoostPower units: eight seconds in a
// layout of seconds, eight milliseconds in one of milliseconds. UidGenerator
// goes on into the future as long as ids are wanted; here callers wait for the
// clock then, so that the layout lasts as long as it says. It is behind the
// clock by two lengths of the ring, or two seconds if that is longer: no call
// reads the clock, but a goroutine looks once in a length of the ring (or in a
// second), discards ids whose time is past by more than that, and fills the ring
// from the present.
//
// # A clock that is wrong
//
// When the wall clock is set back while a process runs, ids go on from the last tick
// that was made, at half the speed of time until the clock has caught up. A lease
// tells what the ledger's clock reads; a wall clock that is ahead of that by more than
// half a term is not believed, and ids have the ledger's time. A Config.Now that goes
// back lets a leaseholder go on up to the lease's ceiling. So a wrong clock keeps
// nobody waiting for longer than two units or a renewal; Stats.LastError names clocks
// that differ.
//
// # How many
//
// Ticks follow each other while many ids are wanted, and then all their ids are
// issued. Where ticks are left out, because few are wanted, the next one begins with
// the sequence after the last id's, and the very first one at random: `id % n` is even
// then, too, where the sequence is the layout's lowest field. A ring holds fewer ids by
// what such a tick lacks.
//
// In the long run there are as many ids as the layout has: 4096 per millisecond,
// one per 244 ns, with 12 bits of sequence and milliseconds. The ring only evens
// out bursts.
//
// # Failure modes
//
// [New] refuses a layout that has expired or has less than a day left, as
// UidGenerator's default ([keygen.Baidu]) has since 2024-11-20
// ([keygen.ErrExpired]), and one whose ids would not rise with time. Next and
// Fill return [keygen.ErrStarved] when the ring is empty and the context ends
// first, after ten seconds at most, or at once with RejectedTake Fail; the error
// holds what kept the ring from being filled: the error of a lease that cannot be
// renewed or, of a worker id without a lease, [keygen.ErrClockRollback] when
// Config.Now went back by more than the ring covers. They return [keygen.ErrExpired] when the time field is used
// up. A lease that was lost is replaced by one on another worker id.
package cached
