// Package clock tells generators what time it is, in ticks of their layout.
//
// # Promise
//
// A reading has two parts. now is the time that new ids are made for: the wall
// clock's, carried on by the monotonic clock between two looks at it, which are a
// second apart at most. most is the latest time that ids may be made for, and it
// never goes back. The two are the same until the wall clock is set back: then now
// follows it, and most goes on from where it was at half the speed of time until
// now has met it again.
//
// So ids that were made while the wall clock was ahead are never repeated by the
// process that made them, and the process comes back to the wall clock. Suppose it
// was set back by d. A generator of which fewer ids are wanted than one tick holds
// stays in the tick that it had reached, and has met the wall clock after d: no
// rate could be faster. One of which as many are wanted as it may make meets it
// after twice d. Half of the layout's ids are left meanwhile, so that callers wait
// for two units of the layout where they waited for one. A slower most would let
// callers wait longer and gain at best half of that time; a faster one would gain
// little for the callers and keep the generator ahead for longer.
//
// A process that ends before that knows nothing of it at its next start, unless
// something else remembers (a lease, or a record).
//
// # Ledgers
//
// A clock can be told what a ledger of leases reads ([Clock.Follow]). A wall clock
// that is ahead of the ledger's by more than half a term is then not believed: the
// time is the ledger's, carried on by the monotonic clock, until the wall clock or
// a later reading of the ledger says otherwise. Whether ids are unique does not
// depend on that, as a lease has a ceiling in ticks.
//
// # Failure modes
//
// A clock that was given as a function is read as it is and may go back; now and
// most are its reading.
package clock
