// SPDX-License-Identifier: Apache-2.0

package copier

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// TableCopy is the copy of one table, chunk by chunk. It is safe for concurrent use.
type TableCopy struct {
	of *Copier
	t  *openjob.Table

	mu   sync.Mutex
	mark *proto.Watermark
}

// Complete reports whether the whole table is copied.
func (c *TableCopy) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.Complete()
}

// hand sends chunks whose bound is stored to the copying goroutines.
func (c *TableCopy) hand(ctx context.Context, chunks chan<- proto.Chunk) error {
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

// Next takes a chunk and stores its bound before anybody reads its rows.
func (c *TableCopy) Next(ctx context.Context) (chunk proto.Chunk, more bool, err error) {
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

func (c *TableCopy) taken() (after proto.Bound, exhausted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark.High(), c.mark.Exhausted()
}

func (c *TableCopy) work(ctx context.Context, chunks <-chan proto.Chunk) error {
	for chunk := range chunks {
		if err := c.Copy(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies a chunk, and notes that its rows are stored.
func (c *TableCopy) Copy(ctx context.Context, chunk proto.Chunk) error {
	rest := chunk
	err := c.of.budget.Portions(ctx, c.t, func(l transfer.Limits) ([]backend.Row, bool, error) {
		return c.of.ends.Read(ctx, c.t, l, rest)
	}, func(rows []backend.Row) error {
		if len(rows) > 0 {
			rest.After = proto.At(rows[len(rows)-1].ID)
		}
		return c.copyRows(ctx, rows)
	})
	if err != nil {
		return err
	}
	return c.finish(ctx, chunk)
}

// finish notes that the rows of a chunk are stored.
func (c *TableCopy) finish(ctx context.Context, chunk proto.Chunk) error {
	c.mu.Lock()
	low := c.mark.Finish(chunk)
	c.mu.Unlock()
	return c.of.leader.OnSource(ctx, func(s *backend.Session) error {
		if !low.Set {
			return nil // an earlier chunk is still being copied
		}
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET low = ? WHERE job = ? AND tbl = ? AND (low IS NULL OR low < ?)", low.ID, c.of.state.Name, c.t.Number, low.ID)
	})
}

// copyRows writes rows that were just read to the other side.
func (c *TableCopy) copyRows(ctx context.Context, rows []backend.Row) error {
	state := c.of.state
	state.Observe(openjob.StepSnapshot, c.t, int64(len(rows)))
	refused, err := c.of.ends.Store(ctx, c.t, rows)
	if err != nil {
		return err
	}
	// The entries must be in the log before low rises and lets the applier process them.
	if err := state.Source.Note(ctx, state.LogTable(), c.t.Number, refused); err != nil {
		return err
	}
	state.Observe(openjob.StepStored, c.t, int64(len(rows)))
	return nil
}

func boundValue(b proto.Bound) any {
	if !b.Set {
		return nil
	}
	return b.ID
}
