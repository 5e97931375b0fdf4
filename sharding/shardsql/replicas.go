// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// replicas are the read-only copies of the router's databases, by the databases' names. They are
// safe for concurrent use.
type replicas map[string]*rotation

// rotation returns pools in turn.
type rotation struct {
	pools []*sql.DB
	next  atomic.Uint64
}

func newReplicas(c Config) replicas {
	if len(c.Replicas) == 0 {
		return nil
	}
	r := replicas{}
	for name, pools := range c.Replicas {
		if len(pools) > 0 {
			r[name] = &rotation{pools: slices.Clone(pools)}
		}
	}
	return r
}

// checkReplicas returns all errors of Config.Replicas.
func (c Config) checkReplicas() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Replicas)) {
		if c.Router.DB(name) == nil {
			errs = append(errs, fmt.Errorf("Config.Replicas: the router has no database %q", name))
		}
		for i, pool := range c.Replicas[name] {
			if pool == nil {
				errs = append(errs, fmt.Errorf("Config.Replicas: replica %d of %q is nil", i, name))
			}
		}
	}
	return errors.Join(errs...)
}

// replicas returns the copies that a statement may read, nil if only the databases may answer. A
// transaction reads the databases, because the copies may lack its own writes.
func (s *session) replicas(ctx context.Context, p *plan.Plan) replicas {
	if all := s.database.replicas; all != nil && s.tx == nil && s.history.set == nil && p.Copied() && !sharding.HintOf(ctx).Primary {
		return all
	}
	return nil
}

// pick returns the next copy of a database, nil if there is none.
func (r replicas) pick(name string) *sql.DB {
	t := r[name]
	if t == nil {
		return nil
	}
	return t.pools[(t.next.Add(1)-1)%uint64(len(t.pools))]
}
