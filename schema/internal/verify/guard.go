// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// unchanged ends a pass when a table was truncated or altered: the differences must not be
// noted then, because the runner would delete the only copies. A table that a switch has just renamed is not changed.
func (v *verifier) unchanged(ctx context.Context) error {
	if !v.Guarded {
		return nil
	}
	changed := v.compare(ctx)
	var phase proto.Phase
	err := v.Source.Do(ctx, func(s *backend.Session) (err error) {
		phase, err = v.Phase(ctx, s) // read after the identities, as a switch renames the tables
		return err
	})
	if err != nil {
		return err
	}
	if served := phase == proto.Switched; served != v.behind || !served && phase != proto.Copying && phase != proto.Following {
		return fmt.Errorf("%w: the job is %q by now; verify again", lead.ErrPhase, phase)
	}
	if changed == nil {
		return nil
	}
	if is, err := openjob.Renamed(ctx, v.Job); err == nil && is {
		return fmt.Errorf("%w: a switch is renaming the tables; verify again", lead.ErrPhase)
	}
	return changed
}

// compare compares the identities of all tables with those that the job has stored.
func (v *verifier) compare(ctx context.Context) error {
	was, err := v.NotedTargets(ctx)
	if err != nil {
		return err
	}
	is, err := v.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	var uncaptured error
	if v.behind {
		uncaptured = v.CheckBackCapture(ctx, was)
	}
	return v.Source.Do(ctx, func(s *backend.Session) error {
		return cmp.Or(v.CompareAll(ctx, s, was, is, v.behind), uncaptured)
	})
}
