package copier

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Course is the copy of one table, chunk by chunk. It is safe for concurrent use.
type Course struct {
	of *Copier
	t  *openjob.Table

	mu   sync.Mutex
	mark *proto.Watermark
}

// Complete reports whether all is copied.
func (c *Course) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.Complete()
}

// hand hands out chunks whose bound is written down.
func (c *Course) hand(ctx context.Context, chunks chan<- proto.Chunk) error {
	for {
		if err := c.of.pace.Throttle(ctx); err != nil {
			return fmt.Errorf("migrate: throttled: %w", err)
		}
		chunk, more, err := c.Next(ctx)
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

// Next takes a chunk and persists its bound, before anybody reads its rows.
func (c *Course) Next(ctx context.Context) (chunk proto.Chunk, more bool, err error) {
	after, exhausted := c.taken()
	if exhausted {
		return chunk, false, nil
	}
	to, err := c.of.End(ctx, c.t, after)
	if err != nil {
		return chunk, false, err
	}
	err = c.of.leader.OnSource(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET hig = ? WHERE job = ? AND tbl = ?", boundValue(to), c.of.state.Name, c.t.Number)
	})
	if err != nil {
		return chunk, false, err
	}
	c.of.state.Observe(openjob.StepBound, c.t, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.Take(to), true, nil
}

func (c *Course) taken() (after proto.Bound, exhausted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.High(), c.mark.Exhausted()
}

func (c *Course) work(ctx context.Context, chunks <-chan proto.Chunk) error {
	for chunk := range chunks {
		if err := c.copyChunk(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (c *Course) copyChunk(ctx context.Context, chunk proto.Chunk) error {
	rest := chunk
	err := c.of.room.Portions(ctx, c.t, func(l transfer.Limits) (rows []backend.Row, more bool, err error) {
		err = c.of.state.Source.Do(ctx, func(s *backend.Session) (err error) {
			rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: c.t, Name: c.t.Name, Where: Within(backend.ColumnOf(s.Database, c.t.Name, c.t.Key), rest), Routed: true, About: c.of.pace.ChunkRows})
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
	return c.Finish(ctx, chunk)
}

// Finish notes that the rows of a chunk are where they belong.
func (c *Course) Finish(ctx context.Context, chunk proto.Chunk) error {
	c.mu.Lock()
	low := c.mark.Finish(chunk)
	c.mu.Unlock()
	return c.of.leader.OnSource(ctx, func(s *backend.Session) error {
		if !low.Set {
			return nil // an earlier chunk is still under way
		}
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET low = ? WHERE job = ? AND tbl = ? AND (low IS NULL OR low < ?)", low.ID, c.of.state.Name, c.t.Number, low.ID)
	})
}

// copyRows brings rows that were just read to the shards.
func (c *Course) copyRows(ctx context.Context, rows []backend.Row) error {
	if err := transfer.Convert(ctx, c.of.leader.IDWriter(), c.t, rows, idmap.ToShards); err != nil {
		return err
	}
	c.of.state.Observe(openjob.StepSnapshot, c.t, int64(len(rows)))
	refused, err := c.storeChunk(ctx, rows)
	if err != nil {
		return err
	}
	// The entries must be there before low lets the applier see them.
	if err := c.of.state.Source.Note(ctx, c.of.state.LogTable(), c.t.Number, refused); err != nil {
		return err
	}
	c.of.state.Observe(openjob.StepStored, c.t, int64(len(rows)))
	return nil
}

// storeChunk writes the rows with one transaction for each database, all
// databases at once.
func (c *Course) storeChunk(ctx context.Context, rows []backend.Row) (refused []int64, err error) {
	parts, refused := transfer.ByTarget(c.t, rows)
	var mu sync.Mutex
	var tasks []func(context.Context) error
	for _, side := range c.of.state.Shards {
		tasks = append(tasks, func(ctx context.Context) error {
			here, err := c.storeOn(ctx, side, parts)
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, here...)
			return err
		})
	}
	err = backend.Together(ctx, tasks...)
	return refused, err
}

// storeOn writes a database's rows. When the transaction is repeated because
// nobody knows whether it was committed, the chunk's own rows are removed first.
func (c *Course) storeOn(ctx context.Context, side *backend.Database, parts [][]backend.Row) (refused []int64, err error) {
	first := true
	err = c.of.leader.On(ctx, side, func(s *backend.Session) error {
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
func (*Course) again(first *bool, err error) error {
	*first = false
	return err
}

func boundValue(b proto.Bound) any {
	if !b.Set {
		return nil
	}
	return b.ID
}
