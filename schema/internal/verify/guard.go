// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/proto"
)

// unchanged ends a pass when a table was truncated or altered: the differences must not be
// noted then, because the runner would delete the only copies.
func (v *verifier) unchanged(ctx context.Context) error {
	if !v.Guarded {
		return nil
	}
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
		changed := cmp.Or(v.CompareAll(ctx, s, was, is, v.behind), uncaptured)
		phase, err := v.Phase(ctx, s) // read after the identities, as a switch renames the tables
		if served := phase == proto.Switched; err == nil && (served != v.behind || !served && phase != proto.Copying && phase != proto.Following) {
			err = fmt.Errorf("%w: the job is %q by now; verify again", lead.ErrPhase, phase)
		}
		if err != nil {
			return err
		}
		return changed
	})
}
