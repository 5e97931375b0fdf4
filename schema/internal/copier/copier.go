// SPDX-License-Identifier: Apache-2.0

package copier

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Copier copies the tables of a job that this runner leads. It is safe for concurrent
// use.
type Copier struct {
	state  *lead.State
	leader *lead.Leader
	budget *transfer.Budget
	pace   Pace
	ends   Ends
}

// Pace limits the speed of a copier.
type Pace struct {
	ChunkRows int                         // at most, of a chunk
	Copiers   int                         // chunks that are copied at once
	Throttle  func(context.Context) error // asked before each chunk
}

// Ends are the functions that read rows from one side and write them to the other.
type Ends struct {
	// Read reads rows of a chunk as of one moment, as many as the limits allow, and reports
	// whether there are more.
	Read func(ctx context.Context, t *openjob.Table, l transfer.Limits, c proto.Chunk) (rows []backend.Row, more bool, err error)
	// Store writes rows, and returns the ids of those that a unique key refused.
	Store func(ctx context.Context, t *openjob.Table, rows []backend.Row) (refused []int64, err error)
}

// New returns the copier of a job. It copies all rows of its tables.
func New(state *lead.State, leader *lead.Leader, budget *transfer.Budget, p Pace) *Copier {
	c := &Copier{state: state, leader: leader, budget: budget, pace: p}
	c.ends = Ends{c.read, c.store}
	return c
}

// Along returns a copier with other ends.
func (c *Copier) Along(e Ends) *Copier {
	return &Copier{c.state, c.leader, c.budget, c.pace, e}
}

// Resume continues the copy of a table that is complete up to low.
func (c *Copier) Resume(t *openjob.Table, low proto.Bound) *TableCopy {
	return &TableCopy{of: c, t: t, mark: proto.Resume(low)}
}

// Copy copies the rest of a table.
func (c *Copier) Copy(ctx context.Context, t *openjob.Table) error {
	spans, err := c.state.ReadSpans(ctx)
	if err != nil {
		return err
	}
	at := c.Resume(t, spans[t.Number].Low)
	if at.Complete() {
		return nil
	}
	workers := c.pace.Copiers
	if c.state.Source.Name() == "sqlite" {
		workers = 1
	}
	chunks := make(chan proto.Chunk)
	tasks := []func(context.Context) error{func(ctx context.Context) error {
		defer close(chunks)
		return at.hand(ctx, chunks)
	}}
	for range workers {
		tasks = append(tasks, func(ctx context.Context) error { return at.work(ctx, chunks) })
	}
	return backend.Together(ctx, tasks...)
}

// End returns the key of the last row of a full chunk, or Top. Chunks of large rows have
// fewer rows, so that less work is repeated after a run ends.
func (c *Copier) End(ctx context.Context, t *openjob.Table, after proto.Bound) (end proto.Bound, err error) {
	key, where := c.state.Source.Quote(t.Key), ""
	if after.Set {
		where = fmt.Sprintf(" WHERE %s > %d", key, after.ID)
	}
	full := c.pace.ChunkRows
	if n := c.budget.Fitting(t, c.budget.Share()); n > 0 {
		full = min(full, n)
	}
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d", key, c.state.Source.Quote(t.Name), where, full-1)
	err = c.state.Source.Do(ctx, func(s *backend.Session) error {
		end = proto.Top
		return s.Each(ctx, func(rows *sql.Rows) error {
			end.Set = true
			return rows.Scan(&end.ID)
		}, query)
	})
	return end, err
}
