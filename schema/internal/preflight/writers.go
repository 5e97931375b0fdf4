// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Rows that a server repeats from another one run no triggers when they come as row
// events: nobody notes that they changed. In a cluster, a lock on tables holds the
// writers of one member alone.

// CheckWriters fails when rows of the source may change elsewhere.
func CheckWriters(ctx context.Context, c *backend.Session) error {
	return refuse(ctx, c, InCluster, Replica, Privileges)
}

// refuse fails when one of the codes was found.
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

// codeOf is that of the finding that there are other writers.
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

// CheckReplicas fails when rows of a shard may have come from other servers, which a
// rollback would lose. Members of clusters note what they change; that their writers are
// no longer at work when the shards are closed, Inspect says.
func CheckReplicas(ctx context.Context, c *backend.Session) error {
	return refuse(ctx, c, Replica, Privileges)
}
