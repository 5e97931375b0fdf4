// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Forward is the stream from the source to the shards.
func (ss *Streams) Forward() *Stream {
	return ss.Along(Ends{
		Fetch: func(ctx context.Context, t *openjob.Table, ids []int64, l transfer.Limits) (rows []backend.Row, n int, err error) {
			more := false
			err = ss.leader.From(ss.state.Source).Do(ctx, func(s *backend.Session) error {
				rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: t, Name: t.Name, Where: backend.ColumnOf(s.Database, t.Name, t.Key) + " IN (" + backend.IDList(ids) + ")", Routed: true, About: len(ids)})
				return err
			})
			if err != nil {
				return nil, 0, err
			}
			return rows, transfer.UpTo(ids, rows, more), transfer.Convert(ctx, ss.leader.IDWriter(), t, rows, idmap.ToShards)
		},
		Put: ss.putOnShards,
	})
}

// putOnShards writes each row to its shard and deletes it from all others: a row moves when
// its sharding key changes, and a row that should not be on a shard is removed. It uses one
// transaction for each database.
func (ss *Streams) putOnShards(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error) {
	keys, err := ss.keysOf(ctx, t, ids, idmap.ToShards)
	if err != nil {
		return nil, err
	}
	parts, refused := transfer.ByTarget(t, rows)
	for _, side := range ss.state.Shards {
		var here []int64
		err := ss.leader.On(ctx, side, func(s *backend.Session) error {
			here = nil
			for i, to := range t.Targets {
				if to.Database != side {
					continue
				}
				if err := transfer.Remove(ctx, s, t, to.Present(), keys); err != nil {
					return err
				}
				some, err := transfer.Store(ctx, s, t, to.Present(), parts[i])
				if err != nil {
					return err
				}
				here = append(here, some...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		refused = append(refused, here...)
	}
	return refused, nil
}

// keysOf returns the ids on the other side for those ids that have one. A row without one
// was never written there.
func (ss *Streams) keysOf(ctx context.Context, t *openjob.Table, ids []int64, way idmap.Direction) ([]int64, error) {
	if t.IDs == nil {
		return ids, nil
	}
	wanted := idmap.Wanted{}
	for _, id := range ids {
		wanted.Add(t.IDs, id)
	}
	d, err := ss.state.MapTable().LookUp(ctx, ss.leader.From(ss.state.Source), wanted, way)
	if err != nil {
		return nil, err
	}
	keys := make([]int64, 0, len(ids))
	for _, id := range ids {
		if key, err := d.Turn(t.IDs, id); err == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
