// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// useSlotKeys makes generated keys carry the slot of their row's sharding key. It does so
// for those keys that the router uses to find a row's shard, if their generator is a
// keygen.Bucketed.
func (h *Hook) useSlotKeys(keys []key, m *reflectx.Mapper, r reflect.Type, t *sharding.Table) {
	for i := range keys {
		k := &keys[i]
		ints, ok := k.source.(idGenerator)
		if !ok || !t.Leads(k.column) {
			continue
		}
		g, bucketed := ints.gen.(keygen.Bucketed)
		f, err := columnField(m, r, t.Key)
		if bucketed && err == nil && f.name != k.column {
			k.source = slotIDs{ints.set, g, h.router, t.Name, k.column, f}
		}
	}
}

// columnField returns the field for a column.
func columnField(m *reflectx.Mapper, t reflect.Type, column string) (field, error) {
	for _, fi := range columnsOf(m, t) {
		if strings.EqualFold(fi.Path, column) {
			return structField(column, t, fi.Index), nil
		}
	}
	return field{}, fmt.Errorf("%w: %s has no field for it", sharding.ErrMissingKey, t)
}

// slotIDs makes ids that carry the slot of their row's sharding key.
type slotIDs struct {
	set           func(v reflect.Value, id int64) error
	gen           keygen.Bucketed
	router        *sharding.Router
	table, column string
	key           field
}

var _ keySource = slotIDs{}

func (s slotIDs) draw(ctx context.Context, r rows, empty []int) (func(int, reflect.Value) error, error) {
	keys := make([]any, len(empty))
	for i, row := range empty {
		var err error
		if keys[i], err = s.key.valueIn(&r, row); err != nil {
			return nil, err
		}
	}
	ids := make([]int64, len(empty))
	err := s.router.FillIDs(ctx, s.gen, s.table, s.column, ids, keys)
	return func(i int, v reflect.Value) error { return s.set(v, ids[i]) }, err
}
