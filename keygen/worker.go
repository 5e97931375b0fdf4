// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"context"
	"time"
)

// Assigner gives worker ids (UidGenerator's WorkerIdAssigner). Implementations are safe for
// concurrent use.
//
// Acquire returns a lease on a worker id of the layout, from 0 to 2^WorkerBits-1. When no
// worker id is free, or the next one is above that range, the error wraps [ErrNoWorker].
type Assigner interface {
	Acquire(ctx context.Context, l Layout) (Lease, error)
}

// Lease is the right to issue ids with one worker id.
type Lease interface {
	// ID returns the worker id. Worker id 0 is legal.
	ID() int64
	// NotBefore returns the first tick of the layout in which the holder may issue ids, because
	// others may have used earlier ticks. 0 means that the worker id never had another holder.
	// UnknownHistory means that no former holder is on record: the generator then assumes one
	// that stopped at this moment.
	NotBefore() int64
}

// UnknownHistory is the NotBefore of a worker id whose former holders are not on record.
const UnknownHistory int64 = -1

// Returnable is the optional ability of a Lease to store up to which tick its worker id was
// used.
type Returnable interface {
	Lease
	// Release gives the worker id back, used up to, not including, the tick end. A caller may
	// try it only once. Its error only means that the next holder waits longer than necessary.
	Release(ctx context.Context, end int64) error
}

// Window is a Lease that is limited in time: its holder may issue ids only with ticks from
// NotBefore up to, not including, a ceiling. The ceiling is written where the next holder of
// the worker id reads it, before the current holder uses it. So two holders never use the same
// tick, whatever happens to their clocks, processes and connections. The clock only decides how
// long a caller waits and how accurate an id's time is.
//
// One goroutine at a time calls the methods.
type Window interface {
	Returnable
	// Ceiling returns the first tick that the holder may not use.
	Ceiling() int64
	// Term is the distance from the present to a new ceiling. The holder renews the lease
	// several times within it.
	Term() time.Duration
	// Renew writes a higher ceiling and returns it, or returns the old one if that is still
	// high enough. An error that wraps ErrWorkerLost means that another process has the worker
	// id now. After any other error the old ceiling still holds.
	Renew(ctx context.Context) (ceiling int64, err error)
}
