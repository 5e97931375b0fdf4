package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// copier copies one table, several chunks at a time.
type copier struct {
	*leader

	t *openjob.Table

	mu   sync.Mutex
	mark *proto.Watermark
}

// prune removes what a run that ended in the middle left above low, and takes
// the bound back: those chunks will be read again.
func (l *leader) prune(ctx context.Context) error {
	var spans []lead.Span
	err := l.OnSource(ctx, func(s *backend.Session) (err error) {
		spans, err = l.Spans(ctx, s, true)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range l.Tables {
		sp := spans[t.Number]
		if !sp.Low.Less(sp.High) {
			continue
		}
		if err := l.pruneTargets(ctx, t, proto.Chunk{After: sp.Low, To: sp.High}); err != nil {
			return err
		}
		err := l.OnSource(ctx, func(s *backend.Session) error {
			return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET hig = low WHERE job = ? AND tbl = ?", l.cfg.Name, t.Number)
		})
		if err != nil {
			return err
		}
		l.Observe(StepPruned, t, 0)
	}
	return nil
}

const pruneRows = 10_000

func (l *leader) pruneTargets(ctx context.Context, t *openjob.Table, c proto.Chunk) error {
	if t.IDs != nil {
		return l.pruneRenumbered(ctx, t, c)
	}
	for _, to := range t.Targets {
		name := to.Present()
		for more := true; more; {
			err := l.On(ctx, to.Database, func(s *backend.Session) error {
				ids, err := s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s LIMIT %d", s.Database.Quote(t.Key), s.Database.Quote(name), within(s.Database.Quote(t.Key), c), pruneRows))
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

// within is the condition for the keys of a chunk; the first is open below.
func within(key string, c proto.Chunk) string {
	condition := fmt.Sprintf("%s <= %d", key, c.To.ID)
	if c.After.Set {
		condition += fmt.Sprintf(" AND %s > %d", key, c.After.ID)
	}
	return condition
}

// copy copies the table from where it stands to its end.
func (l *leader) copy(ctx context.Context, t *openjob.Table) error {
	spans, err := l.ReadSpans(ctx)
	if err != nil {
		return err
	}
	c := &copier{leader: l, t: t, mark: proto.Resume(spans[t.Number].Low)}
	if c.mark.Complete() {
		return nil
	}
	workers := l.cfg.Copiers
	if l.Source.Name() == "sqlite" {
		workers = 1
	}
	chunks := make(chan proto.Chunk)
	tasks := []func(context.Context) error{func(ctx context.Context) error {
		defer close(chunks)
		return c.hand(ctx, chunks)
	}}
	for range workers {
		tasks = append(tasks, func(ctx context.Context) error { return c.work(ctx, chunks) })
	}
	return together(ctx, tasks...)
}

// hand hands out chunks whose bound is written down.
func (c *copier) hand(ctx context.Context, chunks chan<- proto.Chunk) error {
	for {
		if err := c.cfg.Throttle(ctx); err != nil {
			return fmt.Errorf("migrate: throttled: %w", err)
		}
		chunk, more, err := c.next(ctx)
		if err != nil || !more {
			return err
		}
		select {
		case chunks <- chunk:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next takes a chunk and persists its bound, before anybody reads its rows.
func (c *copier) next(ctx context.Context) (chunk proto.Chunk, more bool, err error) {
	after, exhausted := c.taken()
	if exhausted {
		return chunk, false, nil
	}
	to, err := c.findEnd(ctx, after)
	if err != nil {
		return chunk, false, err
	}
	err = c.OnSource(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET hig = ? WHERE job = ? AND tbl = ?", boundValue(to), c.cfg.Name, c.t.Number)
	})
	if err != nil {
		return chunk, false, err
	}
	c.Observe(StepBound, c.t, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.Take(to), true, nil
}

func (c *copier) taken() (after proto.Bound, exhausted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.High(), c.mark.Exhausted()
}

// findEnd returns the key of the last row of a full chunk, or Top. A chunk of large
// rows has fewer of them, so that a run that ends loses little.
func (c *copier) findEnd(ctx context.Context, after proto.Bound) (end proto.Bound, err error) {
	key, where := c.Source.Quote(c.t.Key), ""
	if after.Set {
		where = fmt.Sprintf(" WHERE %s > %d", key, after.ID)
	}
	full := c.cfg.ChunkRows
	if n := c.room.Fitting(c.t, c.room.Share()); n > 0 {
		full = min(full, n)
	}
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d", key, c.Source.Quote(c.t.Name), where, full-1)
	err = c.Source.Do(ctx, func(s *backend.Session) error {
		end = proto.Top
		return s.Each(ctx, func(rows *sql.Rows) error {
			end.Set = true
			return rows.Scan(&end.ID)
		}, query)
	})
	return end, err
}

func (c *copier) work(ctx context.Context, chunks <-chan proto.Chunk) error {
	for chunk := range chunks {
		if err := c.copyChunk(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copyChunk(ctx context.Context, chunk proto.Chunk) error {
	rest := chunk
	err := c.room.Portions(ctx, c.t, func(l transfer.Limits) (rows []backend.Row, more bool, err error) {
		err = c.Source.Do(ctx, func(s *backend.Session) (err error) {
			rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: c.t, Name: c.t.Name, Where: within(backend.ColumnOf(s.Database, c.t.Name, c.t.Key), rest), Routed: true, About: c.cfg.ChunkRows})
			return err
		})
		return rows, more, err
	}, func(rows []backend.Row) error {
		if len(rows) > 0 {
			rest.After = proto.At(rows[len(rows)-1].ID)
		}
		return c.copyRows(ctx, rows)
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	low := c.mark.Finish(chunk)
	c.mu.Unlock()
	return c.OnSource(ctx, func(s *backend.Session) error {
		if !low.Set {
			return nil // an earlier chunk is still under way
		}
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET low = ? WHERE job = ? AND tbl = ? AND (low IS NULL OR low < ?)", low.ID, c.cfg.Name, c.t.Number, low.ID)
	})
}

// copyRows brings rows that were just read to the shards.
func (c *copier) copyRows(ctx context.Context, rows []backend.Row) error {
	if err := transfer.Convert(ctx, c.IDWriter(), c.t, rows, idmap.ToShards); err != nil {
		return err
	}
	c.Observe(StepSnapshot, c.t, int64(len(rows)))
	refused, err := c.storeChunk(ctx, rows)
	if err != nil {
		return err
	}
	// The entries must be there before low lets the applier see them.
	if err := c.Source.Note(ctx, c.LogTable(), c.t.Number, refused); err != nil {
		return err
	}
	c.Observe(StepStored, c.t, int64(len(rows)))
	return nil
}

// storeChunk writes the rows with one transaction for each database, all
// databases at once.
func (c *copier) storeChunk(ctx context.Context, rows []backend.Row) (refused []int64, err error) {
	parts, refused := transfer.ByTarget(c.t, rows)
	var mu sync.Mutex
	var tasks []func(context.Context) error
	for _, side := range c.Shards {
		tasks = append(tasks, func(ctx context.Context) error {
			here, err := c.storeOn(ctx, side, parts)
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, here...)
			return err
		})
	}
	err = together(ctx, tasks...)
	return refused, err
}

// storeOn writes a database's rows. When the transaction is repeated because
// nobody knows whether it was committed, the chunk's own rows are removed first.
func (c *copier) storeOn(ctx context.Context, side *backend.Database, parts [][]backend.Row) (refused []int64, err error) {
	first := true
	err = c.On(ctx, side, func(s *backend.Session) error {
		refused = nil
		for i, to := range c.t.Targets {
			if to.Database != side || len(parts[i]) == 0 {
				continue
			}
			name := to.Present()
			if !first {
				if err := transfer.Remove(ctx, s, c.t, name, transfer.Keys(parts[i])); err != nil {
					return err
				}
			}
			some, err := transfer.Store(ctx, s, c.t, name, parts[i])
			if err != nil {
				return c.again(&first, err)
			}
			refused = append(refused, some...)
		}
		first = false
		return nil
	})
	return refused, err
}

// again notes that the next attempt is not the first.
func (*copier) again(first *bool, err error) error {
	*first = false
	return err
}

func boundValue(b proto.Bound) any {
	if !b.Set {
		return nil
	}
	return b.ID
}
