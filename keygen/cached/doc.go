// SPDX-License-Identifier: Apache-2.0

// Package cached makes ids of time, worker id and sequence ahead of time and issues them from a
// ring, like UidGenerator's CachedUidGenerator and RingBuffer. A call costs one atomic addition
// and a comparison, and reads no clock.
//
// # The ring
//
// A slot of UidGenerator's ring holds one id. A place in this ring holds all ids of one tick of
// the layout, which are evenly spaced numbers. The ring has 2^BoostPower places, so its
// capacity is UidGenerator's: (maxSequence+1) << BoostPower ids. A fill starts when the
// generator starts, when a call leaves fewer ids than PaddingFactor percent of the capacity,
// and every ScheduleInterval. Each fill goes on until the ring is full. Generator.Ring shows
// tail, cursor, capacity, threshold and the rejected takes and puts.
//
// # Promise
//
// Ids of one generator rise. Ids of several generators rise with time: they trend upwards. No
// id is issued twice, for one of two reasons. Either no process used the worker id before
// (sqlstore's WorkerNode), or the worker id is leased together with the time for which ids are
// made: workerid.NewLeased, or workerid.Recorded for a ring of less than a second. The
// generator makes no id at or above the lease's ceiling. It refuses a worker id that is set by
// hand, because nobody knows how far ahead of the clock its former holder was. All processes
// whose ids must differ need the same layout. Leases refuse another layout; the table
// WORKER_NODE does not store the layout and cannot refuse one (see package workerid).
//
// The time in an id is not the time at which the id was issued. It is ahead of the clock by at
// most the ring's length, 2^BoostPower units: eight seconds in a layout of seconds, eight
// milliseconds in one of milliseconds. UidGenerator makes ids for ever later times as long as
// callers want ids. This package makes callers wait for the clock instead, so that the layout
// lasts until its time field ends. The time in an id is behind the clock by at most twice the
// ring's length, or two seconds if that is longer. No call reads the clock, but once per ring's
// length (or per second, if that is longer) a goroutine discards the ids that are older than
// that, and fills the ring from the present.
//
// # A clock that is wrong
//
// When the wall clock is set back while a process runs, ids go on from the last tick that was
// made, at half the speed of time until the clock has caught up. A lease tells the generator
// what the ledger's clock reads. When the wall clock is ahead of that by more than half a term,
// the generator does not trust the wall clock, and ids have the ledger's time. When a
// Config.Now goes back, a generator with a lease goes on up to the lease's ceiling. So a wrong
// clock makes no caller wait for longer than two units or one renewal. Stats.LastError names
// clocks that differ.
//
// # How many
//
// While callers want many ids, ticks follow each other and all their ids are issued. When
// callers want few ids, ticks are skipped. The next tick then begins with the sequence after
// the last id's sequence, and the very first tick begins with a random one. So `id % n` is
// evenly distributed in that case, too, provided that the sequence is the layout's lowest
// field. A tick that begins later holds fewer ids.
//
// In the long run the generator issues as many ids as the layout has: 4096 per millisecond, one
// per 244 ns, with 12 bits of sequence and milliseconds. The ring only evens out bursts.
//
// # Failure modes
//
// [New] refuses a layout that has expired or expires within a day ([keygen.ErrExpired]).
// UidGenerator's default, [keygen.Baidu], expired on 2024-11-20. New also refuses a layout
// whose ids would not rise with time. Next and Fill return [keygen.ErrStarved] when the ring is
// empty and the context ends or ten seconds pass, or at once with RejectedTake Fail. The error
// wraps the reason why the ring was not filled: the error of a lease renewal, or, for a worker
// id without a lease, [keygen.ErrClockRollback] when Config.Now went back by more than the
// ring's length. They return [keygen.ErrExpired] when the time field is used up. When a lease
// is lost, the generator acquires another worker id.
package cached
