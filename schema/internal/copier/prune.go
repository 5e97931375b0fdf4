// SPDX-License-Identifier: Apache-2.0

package copier

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Prune removes the rows above low that an earlier run left behind, and lowers the bound:
// those chunks are read again.
func (c *Copier) Prune(ctx context.Context) error {
	var spans []lead.Span
	err := c.leader.OnSource(ctx, func(s *backend.Session) (err error) {
		spans, err = c.state.Spans(ctx, s, true)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range c.state.Tables {
		sp := spans[t.Number]
		if !sp.Low.Less(sp.High) {
			continue
		}
		if err := c.pruneTargets(ctx, t, proto.Chunk{After: sp.Low, To: sp.High}); err != nil {
			return err
		}
		err := c.leader.OnSource(ctx, func(s *backend.Session) error {
			return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET hig = low WHERE job = ? AND tbl = ?", c.state.Name, t.Number)
		})
		if err != nil {
			return err
		}
		c.state.Observe(openjob.StepPruned, t, 0)
	}
	return nil
}

const pruneRows = 10_000

func (c *Copier) pruneTargets(ctx context.Context, t *openjob.Table, chunk proto.Chunk) error {
	if t.IDs != nil {
		return c.pruneRenumbered(ctx, t, chunk)
	}
	for _, to := range t.Targets {
		name := to.Present()
		for more := true; more; {
			err := c.leader.On(ctx, to.Database, func(s *backend.Session) error {
				ids, err := s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s LIMIT %d", s.Database.Quote(t.Key), s.Database.Quote(name), Within(s.Database.Quote(t.Key), chunk), pruneRows))
				more = len(ids) == pruneRows
				if err != nil {
					return err
				}
				return transfer.Remove(ctx, s, t, name, ids)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneRenumbered removes rows of a chunk from shards where rows have new ids, and so
// another order. A row without a counterpart was not copied by the job.
func (c *Copier) pruneRenumbered(ctx context.Context, t *openjob.Table, chunk proto.Chunk) error {
	for _, to := range t.Targets {
		err := transfer.EachKey(ctx, t, to, func(keys []int64) error {
			doomed, err := c.among(ctx, t, keys, chunk)
			if err != nil || len(doomed) == 0 {
				return err
			}
			return c.leader.On(ctx, to.Database, func(s *backend.Session) error { return transfer.Remove(ctx, s, t, to.Present(), doomed) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// among returns the shard ids of rows that belong to a chunk.
func (c *Copier) among(ctx context.Context, t *openjob.Table, keys []int64, chunk proto.Chunk) ([]int64, error) {
	wanted := idmap.Wanted{}
	for _, key := range keys {
		wanted.Add(t.IDs, key)
	}
	d, err := c.state.MapTable().LookUp(ctx, c.state.Source, wanted, idmap.ToSource)
	if err != nil {
		return nil, err
	}
	var found []int64
	for _, key := range keys {
		old, err := d.Turn(t.IDs, key)
		if err == nil && !chunk.After.Covers(old) && chunk.To.Covers(old) {
			found = append(found, key)
		}
	}
	return found, nil
}

// Within is the SQL condition for the keys of a chunk; the first chunk has no lower limit.
func Within(key string, c proto.Chunk) string {
	condition := fmt.Sprintf("%s <= %d", key, c.To.ID)
	if c.After.Set {
		condition += fmt.Sprintf(" AND %s > %d", key, c.After.ID)
	}
	return condition
}
