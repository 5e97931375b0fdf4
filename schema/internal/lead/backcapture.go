// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// While the shards serve, triggers of their tables note what has to be brought back to the source.
// A table that was restored without them would lose changes at a rollback.

// Serving returns the CheckTargets of a job whose shards serve. It also fails when a table has lost
// its triggers. A table without a stored identity gets them anew.
func Serving(l *Leader) func(context.Context) error {
	return func(ctx context.Context) error {
		return checkTargets(ctx, l, func(ctx context.Context, was Identities) error {
			if err := makeBackCapture(ctx, l, was); err != nil {
				return err
			}
			return l.state.CheckBackCapture(ctx, was)
		})
	}
}

// makeBackCapture creates the triggers of tables whose identity is not stored.
func makeBackCapture(ctx context.Context, l *Leader, was Identities) error {
	for _, t := range l.job.Tables {
		for i, to := range t.Targets {
			if _, known := was[place{t.Number, i}]; known {
				continue
			}
			err := l.Define(ctx, to.Database, func(s *backend.Session) error { return openjob.MakeBackCapture(ctx, s, l.job, t, i) })
			if err != nil {
				return fmt.Errorf("shard %s on %s: %w", to.Name, to.Database.Label, err)
			}
		}
	}
	return nil
}

// CheckBackCapture fails when a table of a shard whose identity is stored has lost its triggers:
// the source then lacks changes.
func (st *State) CheckBackCapture(ctx context.Context, was Identities) error {
	for _, side := range st.Shards {
		err := side.Do(ctx, func(s *backend.Session) error { return st.checkBackCaptureOn(ctx, s, was) })
		if err != nil {
			return fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return nil
}

func (st *State) checkBackCaptureOn(ctx context.Context, s *backend.Session, was Identities) error {
	has, err := backend.Triggers(ctx, s, openjob.BackTriggers(st.Job))
	if err != nil {
		return err
	}
	for _, t := range st.Tables {
		for i, to := range t.Targets {
			if _, known := was[place{t.Number, i}]; !known || to.Database != s.Database {
				continue
			}
			lost, err := has.Lack(ctx, s, s.Database.Capture(st.BackCapture(t, i)))
			switch {
			case err != nil:
				return err
			case len(lost) > 0:
				return fmt.Errorf("%w: shard %s on %s has lost the triggers %s, and nobody knows what has changed since; the runbook says what to do about a shard that was restored",
					openjob.ErrChanged, to.Name, to.Database.Label, strings.Join(lost, ", "))
			}
		}
	}
	return nil
}
