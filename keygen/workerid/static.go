package workerid

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Static returns an assigner that always gives id, for deployments that number
// their processes themselves. Nothing checks that each process has another
// number, and nothing remembers how far a former process got; see package
// snowflake for what follows from that.
func Static(id int64) keygen.Assigner { return static(id) }

type static int64

var (
	_ keygen.Assigner = static(0)
	_ keygen.Lease    = static(0)
)

// Acquire returns the lease, or an error that wraps keygen.ErrNoWorker when the
// layout has no room for the id.
func (s static) Acquire(_ context.Context, l keygen.Layout) (keygen.Lease, error) {
	if most := int64(1)<<l.WorkerBits() - 1; int64(s) < 0 || int64(s) > most {
		return nil, fmt.Errorf("workerid: %w: %d is not between 0 and %d, which is what the layout has room for", keygen.ErrNoWorker, int64(s), most)
	}
	return s, nil
}

func (s static) ID() int64 { return int64(s) }

func (s static) NotBefore() int64 { return keygen.UnknownHistory }
