// SPDX-License-Identifier: Apache-2.0

// Package periodic issues numbers that begin at 1 in each day, month or year, for each
// shop, branch or customer: 2026-11-000042 is the 42nd of a shop's orders of November.
//
// # Promise
//
// A number is given once for its key and period: never again by another call, process
// or host with the same counters. Numbers of one process rise within their period. They
// are reserved by segments, as package segment does, so that most calls cost no round
// trip; what a process has left in memory when it ends, or when the period does, is a
// gap.
//
// Counters are in the application's database (sqlstore's Periods) or in Redis
// (redisgen's), and made when the first number of a period is wanted.
//
// # Which period
//
// The clock of the process says, in Config.Zone, where a day may have 23 or 25 hours and
// begin at one o'clock. The clock of the counters has to agree: numbers of a period are
// reserved from Config.Skew before it begins to Skew after it has ended, by the counters'
// own clock. So a process whose clock is a month ahead gets an error, and not December's
// numbers; and processes whose clocks differ by less give numbers of two periods for so
// long, and none of them twice.
//
// In one process the period never goes back. When its clock is set back across the
// beginning of the period by Skew or less, the numbers go on in the period they have
// reached; by more, calls fail until the clock is right.
//
// # Failure modes
//
// Clocks that disagree are [keygen.ErrClockRollback]. A period whose digits are used up
// is [keygen.ErrExhausted]. With the counters out of reach numbers in memory go on, and
// then calls wait, for their context or ten seconds, and return [keygen.ErrStarved] with
// the counters' error inside.
package periodic
