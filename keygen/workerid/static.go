// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Static returns an assigner that always gives id, for deployments that number their processes
// themselves. Nothing checks that each process has its own number, that a process has only one
// generator with it, or that all processes have one layout (see the package's comment). Nothing
// stores how far a former process got: if its clock was fast and is corrected, a process that
// starts before the time of the former one's last id repeats ids. Package snowflake says how
// long that may be; [Recorded] stores it. Two generators with one number repeat each other's
// ids, which is harmless for ids of different tables.
func Static(id int64) keygen.Assigner {
	return localNumber(func() (int64, error) { return id, nil })
}

// localNumber is an assigner of a number that this machine or its configuration has.
type localNumber func() (int64, error)

var _ keygen.Assigner = localNumber(nil)

// Acquire returns the lease. When there is no number, or it does not fit the layout, the error
// wraps keygen.ErrNoWorker.
func (f localNumber) Acquire(_ context.Context, l keygen.Layout) (keygen.Lease, error) {
	id, err := f()
	if err != nil {
		return nil, fmt.Errorf("workerid: %w: %w", keygen.ErrNoWorker, err)
	}
	if most := int64(1)<<l.WorkerBits() - 1; id < 0 || id > most {
		return nil, fmt.Errorf("workerid: %w: %d is not between 0 and %d, the highest worker id of the layout", keygen.ErrNoWorker, id, most)
	}
	return unrecorded(id), nil
}

// unrecorded is a worker id without a record of its former holders.
type unrecorded int64

var _ keygen.Lease = unrecorded(0)

func (g unrecorded) ID() int64        { return int64(g) }
func (g unrecorded) NotBefore() int64 { return keygen.UnknownHistory }
