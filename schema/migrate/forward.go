package migrate

import (
	"context"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// forward is the stream from the source to the shards.
func (l *leader) forward() *stream {
	return &stream{
		leader: l, from: l.Source, log: l.LogTable(), bounds: l.Spans,
		fetch: func(ctx context.Context, st *stream, t *openjob.Table, ids []int64, l limits) (rows []backend.Row, n int, err error) {
			more := false
			err = st.Do(ctx, func(s *backend.Session) error {
				rows, more, err = readRows(ctx, s, reading{l, t, t.Name, backend.ColumnOf(s.Database, t.Name, t.Key) + " IN (" + backend.IDList(ids) + ")", true, len(ids)})
				return err
			})
			if err != nil {
				return nil, 0, err
			}
			return rows, upTo(ids, rows, more), st.convert(ctx, t, rows, idmap.ToShards)
		},
		put: l.putOnShards,
	}
}

// putOnShards writes each row to its shard and deletes it from all others: a
// row moves when its sharding key changes, and one that never should have been
// on a shard goes. One transaction for each database.
func (l *leader) putOnShards(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error) {
	keys, err := l.keysOf(ctx, t, ids, idmap.ToShards)
	if err != nil {
		return nil, err
	}
	parts, refused := byTarget(t, rows)
	for _, side := range l.Shards {
		var here []int64
		err := l.On(ctx, side, func(s *backend.Session) error {
			here = nil
			for i, to := range t.Targets {
				if to.Database != side {
					continue
				}
				if err := removeRows(ctx, s, t, to.Present(), keys); err != nil {
					return err
				}
				some, err := storeRows(ctx, s, t, to.Present(), parts[i])
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
