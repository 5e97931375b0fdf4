// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/verify"
)

const (
	// fewChanged is how many changed rows may be left to compare while the slots are closed.
	fewChanged = 500
	// comparedAtOnce is how many rows are compared by one query.
	comparedAtOnce = 500
	// mostPasses is how many passes over the log are made to get there.
	mostPasses = 200
)

// comparison compares the rows of the slots on both shards while writers go on.
type comparison struct {
	rows     *rows
	copier   *copier.Copier
	stream   *follow.Stream // applies changes
	throttle func(context.Context) error
	compared func() // called when few rows are left to be compared

	// changed are the rows that were written since the comparison began, by table;
	// nil before.
	changed []map[int64]bool
}

// put writes changed rows to the new shard, and records their ids.
func (c *comparison) put(ctx context.Context, t *openjob.Table, ids []int64, found []backend.Row) (refused []int64, err error) {
	if c.changed != nil {
		for _, id := range ids {
			c.changed[t.Number][id] = true
		}
	}
	return c.rows.put(ctx, t, ids, found)
}

// all compares the rows of both shards, range by range, while writers continue. Rows that
// differ, and all rows that changed since it began, are compared again until few are left;
// these are compared when the slots are closed, because a row that changes all the time may
// differ each time.
func (c *comparison) all(ctx context.Context) error {
	c.track()
	for _, t := range c.rows.job.Tables {
		if err := c.table(ctx, t, c.throttle); err != nil {
			return err
		}
	}
	for pass := 1; ; pass++ {
		done, err := c.stream.Pass(ctx)
		if err != nil {
			return err
		}
		differ, err := c.again(ctx)
		if err != nil {
			return err
		}
		few := len(done.Left) == 0 && done.Applied < fewChanged && differ < fewChanged
		if few && (differ == 0 || pass == mostPasses) {
			c.compared()
			return nil
		}
		if pass == mostPasses {
			return c.notEqual(ctx)
		}
		if done.Applied > 0 {
			continue
		}
		if err := backend.Wait(ctx, follow.IdlePause); err != nil {
			return err
		}
	}
}

// track begins to record which rows change.
func (c *comparison) track() {
	c.changed = make([]map[int64]bool, len(c.rows.job.Tables))
	for i := range c.changed {
		c.changed[i] = map[int64]bool{}
	}
}

// notEqual returns the reason why the rows do not become equal.
func (c *comparison) notEqual(ctx context.Context) error {
	done, err := c.stream.Pass(ctx)
	if err != nil {
		return err
	}
	if len(done.Left) == 0 {
		return fmt.Errorf("%w: changes arrive faster than they are applied", ErrNotReady)
	}
	e := done.Left[0]
	t := c.rows.job.Tables[e.Table]
	return t.RowError(e.ID, fmt.Errorf("%w: a unique key of %s on %s refuses the row, as another row there has an equal value (%d such rows)", ErrNotReady, t.Targets[0].Name, t.Targets[0].Database.Label, len(done.Left)))
}

// table compares all rows of the slots once.
func (c *comparison) table(ctx context.Context, t *openjob.Table, throttle func(context.Context) error) error {
	for at := (proto.Bound{}); at != proto.Top; {
		if err := throttle(ctx); err != nil {
			return fmt.Errorf("throttled: %w", err)
		}
		end, err := c.copier.End(ctx, t, at)
		if err != nil {
			return err
		}
		chunk := proto.Chunk{After: at, To: end}
		differ, err := c.differing(ctx, t, func(key string) string { return copier.Within(key, chunk) })
		if err != nil {
			return err
		}
		for _, id := range differ {
			c.changed[t.Number][id] = true
		}
		if _, err := c.stream.Pass(ctx); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// again compares the changed rows once more and keeps those that differ. It notes them in
// the log, too, because the trigger that should have noted them may be missing.
func (c *comparison) again(ctx context.Context) (differ int, err error) {
	for _, t := range c.rows.job.Tables {
		ids := slices.Sorted(maps.Keys(c.changed[t.Number]))
		clear(c.changed[t.Number])
		for part := range slices.Chunk(ids, comparedAtOnce) {
			some, err := c.differing(ctx, t, func(key string) string { return key + " IN (" + backend.IDList(part) + ")" })
			if err != nil {
				return 0, err
			}
			for _, id := range some {
				c.changed[t.Number][id] = true
			}
			if err := c.rows.job.Source.Note(ctx, c.rows.job.LogTable(), t.Number, some); err != nil {
				return 0, err
			}
			differ += len(some)
		}
	}
	return differ, nil
}

// differing returns those of the rows that differ between the shards now.
func (c *comparison) differing(ctx context.Context, t *openjob.Table, which condition) ([]int64, error) {
	among := func(key string) string { return which(key) + " AND " + c.rows.among[t.Number](key) }
	want, err := verify.Hashes(ctx, t, &openjob.Target{Database: c.rows.job.Source, Name: t.Name}, among)
	if err != nil {
		return nil, err
	}
	got, err := verify.Hashes(ctx, t, t.Targets[0], among)
	if err != nil {
		return nil, err
	}
	var differ []int64
	for id, hash := range want {
		if other, there := got[id]; !there || other != hash {
			differ = append(differ, id)
		}
		delete(got, id)
	}
	for id := range got {
		differ = append(differ, id)
	}
	slices.Sort(differ)
	return differ, nil
}

// last applies and compares the changes from before the slots were closed. After a crash
// these are unknown: then it compares all rows.
func (c *comparison) last(ctx context.Context) error {
	if c.changed == nil {
		if err := c.allClosed(ctx); err != nil {
			return err
		}
	}
	for range 2 { // rows that differ at first are written once more
		if err := c.drainAll(ctx); err != nil {
			return err
		}
		differ, err := c.again(ctx)
		if err != nil {
			return err
		}
		if differ == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: rows differ on both shards although nobody changes them", ErrNotReady)
}

func (c *comparison) allClosed(ctx context.Context) error {
	c.track()
	for _, t := range c.rows.job.Tables {
		if err := c.table(ctx, t, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// drainAll applies all changes of the closed slots, also those of transactions that have not ended yet.
func (c *comparison) drainAll(ctx context.Context) error {
	for {
		if err := c.drain(ctx); err != nil {
			return err
		}
		left, err := c.rows.haveUnended(ctx)
		if err != nil || !left {
			return err
		}
		if err := backend.Wait(ctx, follow.IdlePause); err != nil {
			return err
		}
	}
}

// closedPasses is enough for rows that wait for each other's unique values.
const closedPasses = 5

// drain applies all entries of the log. Since the slots are closed, new entries are only of
// other slots, and need not be applied.
func (c *comparison) drain(ctx context.Context) error {
	for range closedPasses {
		done, err := c.stream.Pass(ctx)
		if err != nil || len(done.Left) == 0 {
			return err
		}
	}
	return c.notEqual(ctx)
}
