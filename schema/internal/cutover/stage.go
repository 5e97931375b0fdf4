// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"errors"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/proto"
)

// ErrUnclear is that the names of the tables do not say who has the rows.
var ErrUnclear = errors.New("migrate: cannot tell who owns the rows")

// Config is what the owner of a job decides.
type Config struct {
	// Ready is asked under the lock of a cutover, with the highest id of each table; nil
	// says yes.
	Ready func(ctx context.Context, highest map[string]int64) error
	// Unchanged fails when a table is not what the job began with.
	Unchanged func(context.Context) error
	// MoveIn makes sure of every row when a database is on another server than before.
	MoveIn func(context.Context, proto.Phase) error
	// TooLong makes the error of a pause that would last longer than allowed. needs is how
	// long the rest would take, 0 when the limit had passed before.
	TooLong func(limit time.Duration, step string, needs time.Duration) error
}

// Stage switches a job that this runner leads.
type Stage struct {
	*lead.State
	*lead.Leader

	streams *follow.Streams
	conf    Config
}

// New returns the stage of a job.
func New(of *lead.State, l *lead.Leader, streams *follow.Streams, conf Config) *Stage {
	return &Stage{of, l, streams, conf}
}

// Result is what a switch did.
type Result struct {
	Pause   time.Duration // how long writers waited
	Over    time.Duration // by how much that was longer than allowed
	Drained int64         // changes that were brought over during the pause
	Epoch   int64         // in which the route was changed
}

// diagnose says whether a switch was begun and not finished.
func diagnose(ctx context.Context, tables []string, s *backend.Session) (proto.Repair, error) {
	current, renamed := make([]bool, len(tables)), make([]bool, len(tables))
	for i, name := range tables {
		var err error
		if current[i], err = s.Database.Exists(ctx, s, name); err != nil {
			return proto.Unclear, err
		}
		if renamed[i], err = s.Database.Exists(ctx, s, backend.Retired(name)); err != nil {
			return proto.Unclear, err
		}
	}
	return proto.Diagnose(current, renamed), nil
}
