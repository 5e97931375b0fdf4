package migrate

import (
	"context"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/preflight"
)

// checkAll is for a job whose source serves, and has to see all that its writers do: what looks like changes of a table that
// was truncated or altered, a runner would do to the only copies that are left. No
// other runner leads meanwhile, or the answer is ErrFenced.
func (l *leader) checkAll(ctx context.Context) error {
	err := l.OnSource(ctx, func(s *backend.Session) error {
		if err := preflight.CheckWriters(ctx, s); err != nil {
			return err
		}
		return l.CheckIdentities(ctx, s)
	})
	if err != nil {
		return err
	}
	return l.CheckTargets(ctx)
}
