// SPDX-License-Identifier: Apache-2.0

// Package periodic issues numbers that begin at 1 in each day, month or year, for each
// shop, branch or customer: 2026-11-000042 is the 42nd of a shop's orders of November.
//
// # Promise
//
// A number is issued once for its key and period: no other call, process or host with the
// same counters issues it again. Numbers of one process rise within their period. They are
// reserved in segments, as in package segment, so that most calls need no round trip. The
// numbers that are left in memory when the process or the period ends are gaps.
//
// Counters are in the application's database (sqlstore's Periods) or in Redis (redisgen's).
// A counter is created for the first number of a period.
//
// # Which period
//
// The clock of the process decides, in Config.Zone, where a day may have 23 or 25 hours and
// may begin at one o'clock. The clock of the counters has to agree: by that clock, numbers of
// a period are reserved from Config.Skew before the period begins until Skew after it has
// ended. So a process whose clock is a month ahead gets an error, not next month's numbers.
// Processes whose clocks differ by less than Skew issue numbers of two periods for that time,
// and no number twice.
//
// In one process the period never goes back. When its clock is set back across the
// beginning of the period by Skew or less, the numbers go on in the period they have
// reached; by more, calls fail until the clock is right.
//
// # Failure modes
//
// Clocks that disagree are [keygen.ErrClockRollback]. A period whose digits are used up is
// [keygen.ErrExhausted]. If the counters cannot be reached, calls get the numbers in memory
// first. Then they wait until their context ends, at most ten seconds, and return
// [keygen.ErrStarved], which wraps the counters' error.
package periodic
