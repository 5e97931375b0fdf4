// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Config are the functions that the owner of a job provides.
type Config struct {
	// Ready is asked under the lock of a cutover, with the highest id of each table; nil
	// agrees.
	Ready func(ctx context.Context, highest map[string]int64) error
	// Unchanged fails when a table is not the one with which the job began.
	Unchanged func(context.Context) error
	// MoveIn verifies every row when a database is on another server than before.
	MoveIn func(context.Context, proto.Phase) error
	// TooLong makes the error for a pause that would exceed its limit. needs is how long the
	// rest would take, 0 when the limit has already passed.
	TooLong func(limit time.Duration, step string, needs time.Duration) error
}

// Stage switches a job that this runner leads between its two sides.
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
	Drained int64         // changes that were copied during the pause
	Epoch   int64         // in which the route was changed
}

// diagnose reports whether a switch was begun and not finished.
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
