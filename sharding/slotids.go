// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/keygen"
)

// Slot returns the slot of the row of the table with this sharding key. Errors are [RouteError]s.
func (s *Snapshot) Slot(table string, key any) (Slot, error) {
	t, ok := s.Lookup(table)
	if !ok {
		return 0, unknown(table)
	}
	slot, err := t.Slot(key)
	if err != nil {
		return 0, t.refused(t.Key, err)
	}
	return slot, nil
}

// NextID returns an id for a column of a new row of the table that has this sharding key. The id
// carries the key's slot, so that the id alone leads to the shard. The column is one of
// [Table].Also.
//
// NextID checks the id with the column's rule. It returns an error instead of the id if the
// generator's bucket field is not where the rule expects it, or if the id is below Alt.From.
func (r *Router) NextID(ctx context.Context, g keygen.Bucketed, table, column string, key any) (int64, error) {
	var id [1]int64
	if err := r.FillIDs(ctx, g, table, column, id[:], []any{key}); err != nil {
		return 0, err
	}
	return id[0], nil
}

// FillIDs sets each dst[i] to an id for the column of a new row that has keys[i]; see
// [Router.NextID]. The two slices have equal lengths. After an error dst contains no ids.
func (r *Router) FillIDs(ctx context.Context, g keygen.Bucketed, table, column string, dst []int64, keys []any) error {
	if len(dst) != len(keys) {
		return fmt.Errorf("sharding: FillIDs: %d ids for %d keys; give one key for each id", len(dst), len(keys))
	}
	s := r.Snapshot()
	buckets := make([]int64, len(keys))
	for i, key := range keys {
		slot, err := s.Slot(table, key)
		if err != nil {
			return err
		}
		buckets[i] = int64(slot)
	}
	t, _ := s.Lookup(table)
	if t == nil {
		return unknown(table)
	}
	err := g.FillIn(ctx, dst, buckets)
	for i := 0; err == nil && i < len(dst); i++ {
		err = t.carries(column, dst[i], Slot(buckets[i]))
	}
	if err != nil {
		clear(dst)
	}
	return err
}

// errGene: an id does not lead to its row.
var errWrongSlot = errors.New("the id does not carry the slot of its row")

// carries returns an error if the id in the column would not lead to the slot.
func (t *Table) carries(column string, id int64, want Slot) error {
	got, err := t.SlotBy(column, id)
	if err == nil && got != want {
		err = fmt.Errorf("%w: id %d leads to slot %d, not %d", errWrongSlot, id, got, want)
	}
	if err == nil {
		return nil
	}
	return &RouteError{
		Op: "generate an id for", Table: t.Name, Column: column, Err: err,
		Hint: "name the column in Also, and give the generator's layout a bucket field where its Rule expects it",
	}
}
