package migrate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
	"github.com/shardid/shardid/sharding/slotstore"
)

// bring copies the rows to the new shard, follows what changes, compares, and
// closes the slots.
func (b *batch) bring(ctx context.Context) error {
	if err := b.Mover.cfg.Store.Settle(ctx); err != nil {
		return err
	}
	b.Mover.cfg.Observe(Step{Name: StepAnnounced})
	spans, err := b.resume(ctx)
	if err != nil {
		return err
	}
	st := b.stream()
	for _, t := range b.Tables {
		if err := b.copyTable(ctx, st, t, spans[t.Number].Low); err != nil {
			return err
		}
	}
	if err := b.compareAll(ctx, st); err != nil {
		return err
	}
	if err := b.unaltered(ctx); err != nil {
		return err
	}
	return b.step(ctx, (*slotstore.Store).Fence)
}

// resume returns how far the tables are copied, after removing what a crash left
// above. A copy of a table that is not the same any more begins again.
func (b *batch) resume(ctx context.Context) ([]lead.Span, error) {
	marks, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	left, err := b.left(ctx)
	if err != nil {
		return nil, err
	}
	if !left.ofThisMove(marks) {
		for _, t := range b.Tables { // nothing was copied yet
			if err := b.checkFree(ctx, t); err != nil {
				return nil, err
			}
		}
	}
	if !left.usable(marks) {
		if left, err = b.begin(ctx, marks, left.ofThisMove(marks)); err != nil {
			return nil, err
		}
	}
	for _, t := range b.Tables {
		sp := left[t.Number]
		if !sp.Low.Less(sp.High) {
			continue
		}
		if err := b.removeCopies(ctx, t, proto.Chunk{After: sp.Low, To: sp.High}); err != nil {
			return nil, err
		}
		b.Observe(StepPruned, t, 0)
	}
	return left, nil
}

// remains are the spans that a run has left; none when it left none.
type remains []lead.Span

// mark is the version in which the slots began to move, and the identity of a
// table.
type mark string

func (m mark) version() string {
	version, _, _ := strings.Cut(string(m), " ")
	return version
}

func (m mark) identity() string {
	_, identity, _ := strings.Cut(string(m), " ")
	return identity
}

func (r remains) ofThisMove(marks []mark) bool {
	return len(r) == len(marks) && mark(r[0].Identity).version() == marks[0].version()
}

func (r remains) usable(marks []mark) bool {
	for i := range r {
		if r[i].Identity != string(marks[i]) {
			return false
		}
	}
	return len(r) == len(marks)
}

// marks are what spans of this move bear.
func (b *batch) marks(ctx context.Context) (all []mark, err error) {
	err = b.Source.Do(ctx, func(s *backend.Session) error {
		all = nil
		for _, t := range b.Tables {
			identity, err := s.Database.Identity(ctx, s, t.Name)
			if err != nil {
				return err
			}
			all = append(all, mark(strconv.FormatInt(b.slots[0].Version, 10)+" "+identity))
		}
		return nil
	})
	return all, err
}

func (b *batch) left(ctx context.Context) (all remains, err error) {
	err = b.OnSource(ctx, func(s *backend.Session) error {
		n, err := s.Number(ctx, "SELECT COUNT(*) FROM "+backend.SpanTable+" WHERE job = ?", b.leader.cfg.Name)
		if err != nil || n != int64(len(b.Tables)) {
			all = nil
			return err
		}
		all, err = b.Spans(ctx, s, false)
		return err
	})
	return all, err
}

// unaltered fails when a table was truncated or altered since the copy began.
func (b *batch) unaltered(ctx context.Context) error {
	marks, err := b.marks(ctx)
	if err != nil {
		return err
	}
	left, err := b.left(ctx)
	if err != nil {
		return err
	}
	for i, m := range marks {
		if len(left) != len(marks) || mark(left[i].Identity).identity() != m.identity() {
			return fmt.Errorf("%w: table %s was truncated or altered while its slots were copied; run again to begin the copy anew", ErrChanged, b.Tables[i].Name)
		}
	}
	return nil
}

// begin puts the triggers in place and notes that nothing is copied.
func (b *batch) begin(ctx context.Context, marks []mark, dirty bool) (remains, error) {
	if dirty {
		for _, t := range b.Tables {
			if err := b.removeCopies(ctx, t, proto.Chunk{To: proto.Top}); err != nil {
				return nil, err
			}
		}
	}
	if err := b.makeCapture(ctx); err != nil {
		return nil, err
	}
	all := make(remains, len(b.Tables))
	err := b.OnSource(ctx, func(s *backend.Session) error {
		if err := s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ?", b.leader.cfg.Name); err != nil {
			return err
		}
		for _, t := range b.Tables {
			all[t.Number] = lead.Span{Identity: string(marks[t.Number])}
			if err := s.Exec(ctx, "INSERT INTO "+backend.SpanTable+" (job, tbl, name, identity) VALUES (?, ?, ?, ?)", b.leader.cfg.Name, t.Number, t.Conf.Name, string(marks[t.Number])); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// copyTable copies the rows of the slots from low on, and follows what changes
// meanwhile.
func (b *batch) copyTable(ctx context.Context, st *follow.Stream, t *openjob.Table, low proto.Bound) error {
	c := b.copier.Resume(t, low)
	for !c.Complete() {
		if err := b.Mover.cfg.Throttle(ctx); err != nil {
			return fmt.Errorf("throttled: %w", err)
		}
		chunk, _, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if err := b.copyChunk(ctx, t, chunk); err != nil {
			return err
		}
		if err := c.Finish(ctx, chunk); err != nil {
			return err
		}
		if _, err := st.Pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) copyChunk(ctx context.Context, t *openjob.Table, chunk proto.Chunk) error {
	rest := chunk
	return b.room.Portions(ctx, t, func(l transfer.Limits) ([]backend.Row, bool, error) {
		return b.readRows(ctx, b.Source.Do, t, l, b.Mover.cfg.ChunkRows, func(key string) string { return copier.Within(key, rest) })
	}, func(rows []backend.Row) error {
		rest.After = rest.To
		if len(rows) > 0 {
			rest.After = proto.At(rows[len(rows)-1].ID)
		}
		return b.copyRows(ctx, t, rows)
	})
}

// copyRows writes the rows of a part of a chunk, which were just read.
func (b *batch) copyRows(ctx context.Context, t *openjob.Table, rows []backend.Row) (err error) {
	b.Observe(StepSnapshot, t, int64(len(rows)))
	var refused []int64
	if len(rows) > 0 {
		first := true
		err = b.onCopies(ctx, func(s *backend.Session) (err error) {
			if !first { // nobody knows whether the attempt before was committed
				err = s.Exec(ctx, b.deletion(t, transfer.Keys(rows)))
			}
			first = false
			if err == nil {
				refused, err = transfer.Store(ctx, s, t, t.Targets[0].Name, rows)
			}
			return err
		})
	}
	if err == nil {
		err = b.Source.Note(ctx, b.LogTable(), t.Number, refused)
	}
	if err != nil {
		return err
	}
	b.done.Rows += int64(len(rows))
	b.Observe(StepStored, t, int64(len(rows)))
	return nil
}

// readRows reads rows of the slots as they are at one moment.
func (b *batch) readRows(ctx context.Context, do func(context.Context, func(*backend.Session) error) error, t *openjob.Table, l transfer.Limits, about int, which condition) (rows []backend.Row, more bool, err error) {
	err = do(ctx, func(s *backend.Session) error {
		key := backend.ColumnOf(s.Database, t.Name, t.Key)
		rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: t, Name: t.Name, Where: which(key) + " AND " + b.among[t.Number](key), Routed: false, About: about})
		return err
	})
	return rows, more, err
}

// onCopies runs f in a transaction of the new shard, past the fences of the
// slots.
func (b *batch) onCopies(ctx context.Context, f func(*backend.Session) error) error {
	return b.past(ctx, b.Shards[0], f)
}

// past runs f in a transaction of the slots' other shard in which it takes
// writes of the slots.
func (b *batch) past(ctx context.Context, side *backend.Database, f func(*backend.Session) error) error {
	passage, err := b.Mover.cfg.Store.Passage(ctx, b.slots...)
	if err != nil {
		return err
	}
	return b.On(ctx, side, func(s *backend.Session) error {
		return passage.Run(ctx, s, func() error { return f(s) })
	})
}

// deletion deletes rows of the slots, and of no others: another row of the new
// shard may have the same key.
func (b *batch) deletion(t *openjob.Table, keys []int64) string {
	name := t.Targets[0].Name
	side := b.Shards[0]
	if b.state() == slotstore.Moved {
		name, side = t.Name, b.Source
	}
	return side.Deletion(name, t.Key, keys, b.among[t.Number](side.Quote(t.Key)))
}

// stream brings changes of the rows to the new shard.
func (b *batch) stream() *follow.Stream {
	return b.streams.Along(follow.Ends{
		Fetch: func(ctx context.Context, t *openjob.Table, ids []int64, l transfer.Limits) ([]backend.Row, int, error) {
			rows, more, err := b.readRows(ctx, b.From(b.Source).Do, t, l, len(ids), func(key string) string { return key + " IN (" + backend.IDList(ids) + ")" })
			if err != nil {
				return nil, 0, err
			}
			return rows, transfer.UpTo(ids, rows, more), nil
		},
		Put: b.putCopies,
	})
}

func (b *batch) putCopies(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error) {
	if b.changed != nil {
		for _, id := range ids {
			b.changed[t.Number][id] = true
		}
	}
	err = b.onCopies(ctx, func(s *backend.Session) error {
		if err := s.Exec(ctx, b.deletion(t, ids)); err != nil {
			return err
		}
		refused, err = transfer.Store(ctx, s, t, t.Targets[0].Name, rows)
		return err
	})
	return refused, err
}

// removeCopies deletes copies on the new shard.
func (b *batch) removeCopies(ctx context.Context, t *openjob.Table, c proto.Chunk) error {
	return b.sweep(ctx, t, c, func(context.Context) error { return nil })
}

// sweep deletes the rows of the slots on their other shard, a chunk at a time.
func (b *batch) sweep(ctx context.Context, t *openjob.Table, c proto.Chunk, throttle func(context.Context) error) error {
	side, name := b.Shards[0], t.Targets[0].Name
	if b.state() == slotstore.Moved {
		side, name = b.Source, t.Name
	}
	key := side.Quote(t.Key)
	for after := c.After; ; {
		if err := throttle(ctx); err != nil {
			return fmt.Errorf("throttled: %w", err)
		}
		var ids []int64
		err := side.Do(ctx, func(s *backend.Session) (err error) {
			ids, err = s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s ORDER BY %[1]s LIMIT %[5]d",
				key, side.Quote(name), copier.Within(key, proto.Chunk{After: after, To: c.To}), b.among[t.Number](key), b.Mover.cfg.ChunkRows))
			return err
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := b.past(ctx, side, func(s *backend.Session) error {
			return s.Exec(ctx, b.deletion(t, ids))
		}); err != nil {
			return err
		}
		b.Observe(StepSwept, t, int64(len(ids)))
		after = proto.At(ids[len(ids)-1])
	}
}
