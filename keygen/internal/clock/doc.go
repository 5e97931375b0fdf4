// SPDX-License-Identifier: Apache-2.0

// Package clock tells generators the time in ticks of their layout.
//
// # Promise
//
// A reading has two parts. The first, now, is the time for which new ids are made. It is the
// wall clock's time. The package reads the wall clock at most once a second and adds the
// progress of the monotonic clock in between. The second, most, is the latest time for which
// ids may be made; it never goes back. The two are equal until the wall clock is set back. Then
// now follows the wall clock, and most advances from where it was at half the speed of time
// until now has caught up.
//
// So a process never repeats ids that it made while its wall clock was ahead, and its ids
// return to the wall clock's time. Suppose that the wall clock was set back by d. A generator
// from which callers want fewer ids than one tick holds stays in the tick that it had reached,
// and agrees with the wall clock after d; no speed of most could make that faster. A generator
// from which callers want as many ids as possible agrees after twice d. Meanwhile it issues
// half of the layout's ids: callers wait for two units of the layout instead of one. With a
// slower most, callers would wait longer, and the generator would catch up in d at best. With a
// faster one, callers would gain little, and the generator would stay ahead for longer.
//
// A process that ends before that does not know about it at its next start, unless a lease or a
// record stores it.
//
// # Ledgers
//
// [Clock.Follow] tells a clock what the clock of a ledger of leases reads. A wall clock that is
// ahead of the ledger's by more than half a term is then not trusted: the Clock returns the
// ledger's time, advanced by the monotonic clock, until the wall clock or a later reading of
// the ledger agrees. The uniqueness of ids does not depend on that, because a lease has a
// ceiling in ticks.
//
// # Failure modes
//
// A clock that is configured as a function is read unchanged and may go back; now and most are
// both its reading.
package clock
