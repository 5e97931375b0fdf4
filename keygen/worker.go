package keygen

import (
	"context"
	"time"
)

// Assigner gives worker ids (UidGenerator's WorkerIdAssigner). Implementations
// are safe for concurrent use.
//
// Acquire returns a lease on a worker id from 0 to most, both inclusive. When
// none is free, or the one it would give is above most, the error wraps
// [ErrNoWorker].
type Assigner interface {
	Acquire(ctx context.Context, most int64) (Lease, error)
}

// Lease is the right to issue ids with one worker id.
type Lease interface {
	// ID returns the worker id. Worker id 0 is legal.
	ID() int64
	// NotBefore returns the time up to which another process may have issued
	// ids with this worker id; a generator issues only above it. The zero Time
	// says that nothing is known of former holders: the generator then assumes
	// one that stopped at this very moment. A worker id that is new has any
	// time of long ago.
	NotBefore() time.Time
}
