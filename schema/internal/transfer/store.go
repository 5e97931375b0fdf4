// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Store inserts the rows and returns the ids of those that a secondary unique key refused.
// It touches no other row: replacing the conflicting row could remove the newer of the two
// for good.
func Store(ctx context.Context, c *backend.Session, t *openjob.Table, name string, rows []backend.Row) (refused []int64, err error) {
	if len(rows) >= manyRows {
		if err := c.Database.GrowBuffers(ctx, c); err != nil {
			return nil, err
		}
	}
	for len(rows) > 0 {
		n := c.Database.Batch(rows)
		err := c.Database.Insert(ctx, c, t.Columns, name, rows[:n])
		switch {
		case err == nil:
		case c.Database.MayPass(err):
			return nil, fmt.Errorf("write to %s on %s: %w", name, c.Database.Label, err)
		default:
			some, apart := storeApart(ctx, c, t, name, rows[:n])
			if c.Database.MayPass(apart) && !c.Database.Duplicate(err) { // the connection was lost after err
				apart = fmt.Errorf("write to %s on %s: %w", name, c.Database.Label, err)
			}
			if apart != nil {
				return nil, apart
			}
			refused = append(refused, some...)
		}
		rows = rows[n:]
	}
	return refused, nil
}

// storeApart inserts the rows one by one and returns the refused ones.
func storeApart(ctx context.Context, c *backend.Session, t *openjob.Table, name string, rows []backend.Row) (refused []int64, err error) {
	for i := range rows {
		err := c.Database.Insert(ctx, c, t.Columns, name, rows[i:i+1])
		if c.Database.MayPass(err) {
			return nil, err // the error is not about one row
		}
		if err != nil && !c.Database.Duplicate(err) {
			if backend.RefusesValue(err) {
				advice := "change the row, or what computes or checks it in that table"
				if c.Database.Label == "source" {
					advice += ", or widen a column there that is too narrow"
				}
				err = fmt.Errorf("%w: %s on %s refuses the row: %w; %s", backend.ErrUnsupported, name, c.Database.Label, err, advice)
			}
			return nil, t.RowError(rows[i].ID, err)
		}
		if err == nil {
			continue
		}
		n, countErr := c.Number(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s = %d", c.Database.Quote(name), c.Database.Quote(t.Key), rows[i].Key))
		if countErr != nil {
			return nil, countErr
		}
		if n > 0 {
			return nil, t.RowError(rows[i].ID, fmt.Errorf("%w: %s on %s has a row with this key that the job did not write; empty the shards and begin again", openjob.ErrChanged, name, c.Database.Label))
		}
		refused = append(refused, rows[i].ID)
	}
	return refused, nil
}

// Remove deletes the rows with these ids.
func Remove(ctx context.Context, c *backend.Session, t *openjob.Table, name string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return c.Exec(ctx, c.Database.Deletion(name, t.Key, ids, ""))
}

// Keys are the ids under which the rows are written.
func Keys(rows []backend.Row) []int64 {
	keys := make([]int64, len(rows))
	for i, r := range rows {
		keys[i] = r.Key
	}
	return keys
}

// ByTarget sorts rows by their target. Rows without one have to wait.
func ByTarget(t *openjob.Table, rows []backend.Row) (parts [][]backend.Row, waiting []int64) {
	counts := make([]int, len(t.Targets))
	for i := range rows {
		if to := rows[i].To; to != openjob.Nowhere {
			counts[to]++
		}
	}
	parts = make([][]backend.Row, len(t.Targets))
	for i, n := range counts {
		parts[i] = make([]backend.Row, 0, n)
	}
	for _, r := range rows {
		if r.To == openjob.Nowhere {
			waiting = append(waiting, r.ID)
		} else {
			parts[r.To] = append(parts[r.To], r)
		}
	}
	return parts, waiting
}

// keysAtOnce is how many ids EachKey reads at a time.
const keysAtOnce = 10_000

// EachKey calls out with the ids of a target's rows, at most keysAtOnce at a time.
func EachKey(ctx context.Context, t *openjob.Table, to *openjob.Target, out func(keys []int64) error) error {
	after := proto.Bound{}
	for {
		var keys []int64
		err := to.Database.Do(ctx, func(s *backend.Session) (err error) {
			key := s.Database.Quote(t.Key)
			keys, err = s.IDs(ctx, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %[1]s LIMIT %[4]d", key, s.Database.Quote(to.Present()), above(key, after), keysAtOnce))
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
