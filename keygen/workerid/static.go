package workerid

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Static returns an assigner that always gives id, for deployments that number
// their processes themselves. Nothing checks that each process has another
// number, nor that a process has one generator with it and not two, and nothing
// remembers how far a former process got: when the clock was fast and is corrected,
// a process that starts before the former one's last id has passed repeats ids.
// Package snowflake says how long that may be, and [Recorded] is a memory. Nor does
// anything check that all have one layout, as they must: see the package's comment.
// Two generators with one number repeat
// each other's ids, which does no harm where those are of different tables.
func Static(id int64) keygen.Assigner {
	return found(func() (int64, error) { return id, nil })
}

// found is an assigner of a number that stands somewhere on this machine.
type found func() (int64, error)

var _ keygen.Assigner = found(nil)

// Acquire returns the lease, or an error that wraps keygen.ErrNoWorker when
// there is no number or the layout has no room for it.
func (f found) Acquire(_ context.Context, l keygen.Layout) (keygen.Lease, error) {
	id, err := f()
	if err != nil {
		return nil, fmt.Errorf("workerid: %w: %w", keygen.ErrNoWorker, err)
	}
	if most := int64(1)<<l.WorkerBits() - 1; id < 0 || id > most {
		return nil, fmt.Errorf("workerid: %w: %d is not between 0 and %d, which is what the layout has room for", keygen.ErrNoWorker, id, most)
	}
	return given(id), nil
}

// given is a worker id without a record of its former holders.
type given int64

var _ keygen.Lease = given(0)

func (g given) ID() int64        { return int64(g) }
func (g given) NotBefore() int64 { return keygen.UnknownHistory }
