// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// verifier is one pass.
type verifier struct {
	*reader
	Options

	result Result
}

// reader reads rows of both sides.
type reader struct {
	*lead.State

	behind bool // the shards serve; the retired tables are compared with them
}

// Options are the parameters of a pass.
type Options struct {
	ChunkRows int  // ranges are a few times as large
	Workers   int  // ranges under way at once
	Guarded   bool // check the identities of the source's tables while these serve
}

// Compare compares all copied rows once. It notes rows that differ in the log, so that they
// are written again.
func Compare(ctx context.Context, of *lead.State, o Options) (Result, error) {
	v := &verifier{reader: &reader{State: of}, Options: o, result: Result{Complete: true, Divergences: []Divergence{}}}
	err := lead.Explain(ctx, v.run(ctx), v.unchanged)
	return v.result, err
}

func (v *verifier) run(ctx context.Context) error {
	spans, err := v.copied(ctx)
	if err != nil {
		return err
	}
	if err := v.unchanged(ctx); err != nil {
		return err
	}
	for _, t := range v.Tables {
		if err := v.table(ctx, t, spans[t.Number].Low); err != nil {
			return fmt.Errorf("table %s: %w", t.Conf.Name, err)
		}
	}
	return v.unchanged(ctx)
}

// copied returns how far the tables are copied.
func (v *verifier) copied(ctx context.Context) (spans []lead.Span, err error) {
	err = v.Source.Do(ctx, func(s *backend.Session) error {
		phase, err := v.Phase(ctx, s)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Copying, proto.Following:
		case proto.Switched:
			v.behind = true
		default:
			return fmt.Errorf("%w: the job is %q; rows can be compared from the begin of Run until Finalize", lead.ErrPhase, phase)
		}
		spans, err = v.Spans(ctx, s, false)
		return err
	})
	return spans, err
}

// keys are the ids above after and up to to. Without after they begin below every id; Top
// is above every id.
type keys struct{ after, to proto.Bound }

// where is the condition that a column of ids lies among the keys.
func (k keys) where(column string) string {
	head, tail := "TRUE", "TRUE"
	if k.after.Set {
		head = fmt.Sprintf("%s > %d", column, k.after.ID)
	}
	if k.to != proto.Top {
		tail = fmt.Sprintf("%s <= %d", column, k.to.ID)
	}
	return head + " AND " + tail
}

// order compares ranges that do not overlap.
func (k keys) order(other keys) int {
	switch {
	case k.after.Less(other.after):
		return -1
	case other.after.Less(k.after):
		return 1
	}
	return 0
}

// Compared ranges are larger than copied chunks: that needs fewer queries on the shards,
// and no lock is held. A range that differs is compared row by row, with a hash of each row
// in memory.
const (
	rangesPerChunk = 8
	maxRangeRows   = 100_000
)

// table compares the rows of a table that was copied up to low, which only rises. Sums
// often differ because of pending changes, so single rows are compared after all ranges.
func (v *verifier) table(ctx context.Context, t *openjob.Table, low proto.Bound) error {
	v.result.Complete = v.result.Complete && low == proto.Top
	if t.Rewrites != nil {
		return v.renumbered(ctx, t, low)
	}
	differing, err := v.ranges(ctx, t, low)
	if err != nil {
		return err
	}
	for _, k := range differing {
		if err := v.drill(ctx, t, k); err != nil {
			return err
		}
	}
	return nil
}

// comparison compares the ranges of one table, several at a time.
type comparison struct {
	*verifier

	t *openjob.Table

	mu        sync.Mutex
	count     int64
	rows      int64
	differing []keys
}

// ranges compares the sums of all ranges and returns those that differ, in the
// order of their ids.
func (v *verifier) ranges(ctx context.Context, t *openjob.Table, low proto.Bound) ([]keys, error) {
	c := &comparison{verifier: v, t: t}
	ranges := make(chan keys)
	tasks := []func(context.Context) error{func(ctx context.Context) error {
		defer close(ranges)
		return c.hand(ctx, low, ranges)
	}}
	workers := v.Workers
	if v.Source.Name() == "sqlite" {
		workers = 1
	}
	for range workers {
		tasks = append(tasks, func(ctx context.Context) error { return c.work(ctx, ranges) })
	}
	err := backend.Together(ctx, tasks...)
	v.result.Ranges += c.count
	v.result.Rows += c.rows
	slices.SortFunc(c.differing, keys.order)
	return c.differing, err
}

// hand sends the ranges up to low.
func (c *comparison) hand(ctx context.Context, low proto.Bound, ranges chan<- keys) error {
	for at := (proto.Bound{}); at != low; {
		end, err := c.rangeEnd(ctx, c.t, at)
		if err != nil {
			return err
		}
		if low.Less(end) {
			end = low
		}
		select {
		case ranges <- keys{at, end}:
		case <-ctx.Done():
			return ctx.Err()
		}
		at = end
	}
	return nil
}

func (c *comparison) work(ctx context.Context, ranges <-chan keys) error {
	for k := range ranges {
		if err := c.compare(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// rangeEnd is the end of the range after a bound. The last range has no upper end.
func (v *verifier) rangeEnd(ctx context.Context, t *openjob.Table, after proto.Bound) (end proto.Bound, err error) {
	key := v.Source.Quote(t.Key)
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %[1]s LIMIT 1 OFFSET %[4]d",
		key, v.Source.Quote(t.Name), keys{after, proto.Top}.where(key), min(v.ChunkRows*rangesPerChunk, maxRangeRows)-1)
	err = v.Source.Do(ctx, func(s *backend.Session) error {
		end = proto.Top
		return s.Each(ctx, func(rows *sql.Rows) error {
			end.Set = true
			return rows.Scan(&end.ID)
		}, query)
	})
	return end, err
}

// compare compares the sums of a range of ids.
func (c *comparison) compare(ctx context.Context, k keys) error {
	want, got, err := c.totals(ctx, c.t, k)
	if err != nil {
		return err
	}
	strays := want[len(c.t.Targets)] // rows without a target
	rows, same := strays.rows, strays.rows == 0
	for i := range c.t.Targets {
		rows += want[i].rows
		same = same && got[i] == want[i]
	}
	c.Observe(openjob.StepCompared, c.t, rows)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.rows += rows
	if !same {
		c.differing = append(c.differing, k)
	}
	return nil
}

// totals reads the sums of the source, by target, and those of the targets, from all
// databases at once.
func (v *verifier) totals(ctx context.Context, t *openjob.Table, k keys) (want, got []total, err error) {
	got = make([]total, len(t.Targets))
	tasks := []func(context.Context) error{func(ctx context.Context) (err error) {
		want, err = v.sourceTotals(ctx, t, k)
		return err
	}}
	for _, side := range v.Shards {
		tasks = append(tasks, func(ctx context.Context) (err error) {
			for i, target := range t.Targets {
				if target.Database == side && err == nil {
					got[i], err = v.targetTotal(ctx, t, target, k)
				}
			}
			return err
		})
	}
	if v.Source.Name() == "sqlite" { // which sends rows as a whole
		err = backend.InTurn(ctx, tasks...)
	} else {
		err = backend.Together(ctx, tasks...)
	}
	return want, got, err
}

// drill finds the rows of a range that differ now, and settles them.
func (v *verifier) drill(ctx context.Context, t *openjob.Table, k keys) error {
	seen, err := v.look(ctx, t, selection{where: k.where})
	if err != nil {
		return err
	}
	return v.settleAll(ctx, t, seen.differing())
}
