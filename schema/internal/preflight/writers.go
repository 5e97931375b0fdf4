// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Rows that a server replicates as row events run no triggers, so that their changes are
// not noted. In a cluster, a lock on tables stops the writers of one member only.

// CheckWriters fails when rows of the source may change without a trigger or despite a
// lock.
func CheckWriters(ctx context.Context, c *backend.Session) error {
	return refuse(ctx, c, InCluster, Replica, Privileges)
}

// refuse fails when there is a finding with one of the codes.
func refuse(ctx context.Context, c *backend.Session, codes ...string) error {
	found, err := c.Database.OtherWriters(ctx, c)
	if err != nil {
		return err
	}
	for _, f := range found {
		cause := backend.ErrNotReady
		if f.Kind == backend.InCluster {
			cause = backend.ErrUnsupported
		}
		if slices.Contains(codes, codeOf(f)) {
			return fmt.Errorf("%w: %s: %s", cause, f.Message, f.Fix)
		}
	}
	return nil
}

// codeOf is the code of the finding for such writers.
func codeOf(o backend.Writers) string {
	switch o.Kind {
	case backend.InCluster:
		return InCluster
	case backend.Replicated:
		return Replica
	case backend.NotShown:
		return Privileges
	}
	panic("bug: a kind of other writers has no code")
}

// CheckReplicas fails when other servers may have written rows of a shard, which a rollback
// would lose. Members of a cluster note their changes; that their writers must have stopped
// when the shards are closed is a finding of Inspect.
func CheckReplicas(ctx context.Context, c *backend.Session) error {
	return refuse(ctx, c, Replica, Privileges)
}
