// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
	"github.com/shardid/shardid/sharding/slotstore"
)

// rows are the rows of the slots, on both of their shards.
type rows struct {
	job       *openjob.Job // its source is the old shard, its only shards are the new one
	leader    *lead.Leader
	slots     *slots
	among     []condition // by table: the condition that a row belongs to the slots
	chunkRows int
}

// checkFree fails when the new shard has rows of the slots: a row misplaced there might be
// the only one with its key.
func (r *rows) checkFree(ctx context.Context) error {
	for _, t := range r.job.Tables {
		to := t.Targets[0]
		err := to.Database.Do(ctx, func(s *backend.Session) error {
			key := s.Database.Quote(t.Key)
			found, err := s.List(ctx, "SELECT "+key+" FROM "+s.Database.Quote(to.Name)+" WHERE "+r.among[t.Number](key)+" LIMIT 1")
			if err == nil && len(found) > 0 {
				err = fmt.Errorf("%w: %s on %s has the row %s of a slot that is to move there; Doctor lists such rows: move or delete them", ErrNotReady, to.Name, to.Database.Label, found[0])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ofChunk reads rows of a chunk on the old shard, as of one moment.
func (r *rows) ofChunk(ctx context.Context, t *openjob.Table, l transfer.Limits, c proto.Chunk) ([]backend.Row, bool, error) {
	return r.read(ctx, r.job.Source.Do, t, l, r.chunkRows, func(key string) string { return copier.Within(key, c) })
}

// fetch reads changed rows, and returns how many of the ids it has read.
func (r *rows) fetch(ctx context.Context, t *openjob.Table, ids []int64, l transfer.Limits) ([]backend.Row, int, error) {
	found, more, err := r.read(ctx, r.leader.From(r.job.Source).Do, t, l, len(ids), func(key string) string { return key + " IN (" + backend.IDList(ids) + ")" })
	if err != nil {
		return nil, 0, err
	}
	return found, transfer.UpTo(ids, found, more), nil
}

func (r *rows) read(ctx context.Context, do func(context.Context, func(*backend.Session) error) error, t *openjob.Table, l transfer.Limits, about int, which condition) (found []backend.Row, more bool, err error) {
	err = do(ctx, func(s *backend.Session) error {
		key := backend.ColumnOf(s.Database, t.Name, t.Key)
		found, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: t, Name: t.Name, Where: which(key) + " AND " + r.among[t.Number](key), Routed: false, About: about})
		return err
	})
	return found, more, err
}

// copy writes rows that were just read to the new shard. When the transaction is repeated,
// the first one may have been committed, so the rows are removed first.
func (r *rows) copy(ctx context.Context, t *openjob.Table, found []backend.Row) (refused []int64, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	first := true
	err = r.onCopies(ctx, func(s *backend.Session) (err error) {
		if !first {
			err = s.Exec(ctx, r.deletion(t, transfer.Keys(found)))
		}
		first = false
		if err == nil {
			refused, err = transfer.Store(ctx, s, t, t.Targets[0].Name, found)
		}
		return err
	})
	return refused, err
}

// put writes changed rows to the new shard, and removes deleted ones.
func (r *rows) put(ctx context.Context, t *openjob.Table, ids []int64, found []backend.Row) (refused []int64, err error) {
	err = r.onCopies(ctx, func(s *backend.Session) error {
		if err := s.Exec(ctx, r.deletion(t, ids)); err != nil {
			return err
		}
		refused, err = transfer.Store(ctx, s, t, t.Targets[0].Name, found)
		return err
	})
	return refused, err
}

// onCopies runs f in a transaction of the new shard that may write rows of the slots.
func (r *rows) onCopies(ctx context.Context, f func(*backend.Session) error) error {
	return r.past(ctx, r.job.Shards[0], f)
}

// past runs f in a transaction of the slots' other shard that may write rows of the slots.
func (r *rows) past(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
	passage, err := r.slots.store.Passage(ctx, r.slots.all...)
	if err != nil {
		return err
	}
	return r.leader.On(ctx, side, func(s *backend.Session) error {
		return passage.Run(ctx, s, func() error {
			if !keyed(r.job, side) {
				return f(s)
			}
			return pastKeys(ctx, s, func() error { return f(s) })
		})
	})
}

// other is the shard that has the copies, or the rows left behind, and the table's name
// there.
func (r *rows) other(t *openjob.Table) (side *backend.Database, name string) {
	if r.slots.state() == slotstore.Moved {
		return r.job.Source, t.Name
	}
	return r.job.Shards[0], t.Targets[0].Name
}

// deletion deletes only rows of the slots: another row of the new shard may have the same
// key.
func (r *rows) deletion(t *openjob.Table, keys []int64) string {
	side, name := r.other(t)
	return side.Deletion(name, t.Key, keys, r.among[t.Number](side.Quote(t.Key)))
}

// removeCopies deletes copies on the new shard.
func (r *rows) removeCopies(ctx context.Context, t *openjob.Table, c proto.Chunk) error {
	return r.sweep(ctx, t, c, func(context.Context) error { return nil })
}

// sweep deletes the rows of the slots on their other shard, a chunk at a time, each if may returns nil.
func (r *rows) sweep(ctx context.Context, t *openjob.Table, c proto.Chunk, may func(context.Context) error) error {
	side, name := r.other(t)
	key := side.Quote(t.Key)
	for after := c.After; ; {
		if err := may(ctx); err != nil {
			return err
		}
		var ids []int64
		err := side.Do(ctx, func(s *backend.Session) (err error) {
			ids, err = s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s ORDER BY %[1]s LIMIT %[5]d",
				key, side.Quote(name), copier.Within(key, proto.Chunk{After: after, To: c.To}), r.among[t.Number](key), r.chunkRows))
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := r.past(ctx, side, func(s *backend.Session) error {
			return s.Exec(ctx, r.deletion(t, ids))
		}); err != nil {
			return err
		}
		r.job.Observe(StepSwept, t, int64(len(ids)))
		after = proto.At(ids[len(ids)-1])
	}
}
