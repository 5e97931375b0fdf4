package keygen

import (
	"context"
	"time"
)

// Assigner gives worker ids (UidGenerator's WorkerIdAssigner). Implementations
// are safe for concurrent use.
//
// Acquire returns a lease on a worker id of the layout, from 0 to
// 2^WorkerBits-1. When none is free, or the one it would give is above that,
// the error wraps [ErrNoWorker].
type Assigner interface {
	Acquire(ctx context.Context, l Layout) (Lease, error)
}

// Lease is the right to issue ids with one worker id.
type Lease interface {
	// ID returns the worker id. Worker id 0 is legal.
	ID() int64
	// NotBefore returns the first tick of the layout that the holder may issue
	// ids in: others may have used those below. 0 says that the worker id never
	// had another holder, UnknownHistory that nothing is known of former ones:
	// the generator then assumes one that stopped at this very moment.
	NotBefore() int64
}

// UnknownHistory is what NotBefore of a worker id is that comes without a
// record of its former holders.
const UnknownHistory int64 = -1

// Returnable is the optional ability of a Lease to remember how far it was used.
type Returnable interface {
	Lease
	// Release hands the worker id back, used up to, not including, the tick end.
	// It may be tried only once, and its error only means that the next holder
	// waits longer than it had to.
	Release(ctx context.Context, end int64) error
}

// Window is a Lease on a stretch of time: its holder may issue ids only with
// ticks from NotBefore up to, not including, a ceiling that is written where the
// next holder of the worker id reads it before it can be used. Two holders then
// never share a tick, whatever their clocks, pauses and connections do; the
// clock only decides how long one has to wait and how true an id's time is.
//
// The methods are called by one goroutine at a time.
type Window interface {
	Returnable
	// Ceiling returns the first tick that is not the holder's any more.
	Ceiling() int64
	// Term is how far above the present a ceiling is written. The holder renews
	// several times within it.
	Term() time.Duration
	// Renew writes a higher ceiling and returns it, or one that did not move. An
	// error that wraps ErrWorkerLost says that the worker id is another's now;
	// after any other error the old ceiling still holds.
	Renew(ctx context.Context) (ceiling int64, err error)
}
