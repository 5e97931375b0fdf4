package migrate

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// pruneRenumbered removes rows of a chunk from the shards, where they lie in
// another order. A row without counterpart is none that was copied.
func (l *leader) pruneRenumbered(ctx context.Context, t *openjob.Table, c proto.Chunk) error {
	for _, to := range t.Targets {
		err := l.eachKey(ctx, t, to, func(keys []int64) error {
			doomed, err := l.among(ctx, t, keys, c)
			if err != nil || len(doomed) == 0 {
				return err
			}
			return l.On(ctx, to.Database, func(s *backend.Session) error { return transfer.Remove(ctx, s, t, to.Present(), doomed) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachKey calls out with the ids of a target's rows, some thousands at a time.
func (w *openJob) eachKey(ctx context.Context, t *openjob.Table, to *openjob.Target, out func(keys []int64) error) error {
	after := proto.Bound{}
	for {
		var keys []int64
		err := to.Database.Do(ctx, func(s *backend.Session) (err error) {
			key := s.Database.Quote(t.Key)
			keys, err = s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT %[4]d", key, s.Database.Quote(to.Present()), above(key, after), pruneRows))
			return err
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := out(keys); err != nil {
			return err
		}
		after = proto.At(keys[len(keys)-1])
	}
}

func above(key string, after proto.Bound) string {
	if !after.Set {
		return ""
	}
	return fmt.Sprintf(" WHERE %s > %d", key, after.ID)
}

// among are the ids of shards whose rows are those of a chunk.
func (l *leader) among(ctx context.Context, t *openjob.Table, keys []int64, c proto.Chunk) ([]int64, error) {
	wanted := idmap.Wanted{}
	for _, key := range keys {
		wanted.Add(t.IDs, key)
	}
	d, err := l.MapTable().LookUp(ctx, l.Source, wanted, idmap.ToSource)
	if err != nil {
		return nil, err
	}
	var found []int64
	for _, key := range keys {
		old, err := d.Turn(t.IDs, key)
		if err == nil && !c.After.Covers(old) && c.To.Covers(old) {
			found = append(found, key)
		}
	}
	return found, nil
}
