// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// slots are the slots of rows that have the sharding key in a field.
type slots struct {
	gen    keygen.Bucketed
	router *sharding.Router
	table  string
	key    field
}

// useSlotKeys makes generated keys carry the slot of their row's sharding key. It does so
// for those keys that the router uses to find a row's shard, if their generator is a
// keygen.Bucketed.
func (h *Hook) useSlotKeys(keys []key, m *reflectx.Mapper, r reflect.Type, t *sharding.Table) {
	for i := range keys {
		k := &keys[i]
		gen, bucketed := k.gen.Bucketed()
		if !bucketed || !t.Leads(k.column) {
			continue
		}
		if f, ok := columnField(m, r, t.Key); ok && f.name != k.column {
			k.slots = &slots{gen, h.router, t.Name, f}
		}
	}
}

// columnField returns the field for a column, or false if the type has none.
func columnField(m *reflectx.Mapper, t reflect.Type, column string) (field, bool) {
	for _, fi := range columnsOf(m, t) {
		if strings.EqualFold(fi.Path, column) {
			return structField(column, t, fi.Index), true
		}
	}
	return field{}, false
}

// draw draws keys for the empty rows of r.
func (k *key) draw(ctx context.Context, keys keyfield.Keys, r *rows, empty []int) (err error) {
	s := k.slots
	if s == nil {
		return keys.Draw(ctx, len(empty))
	}
	shardingKeys := make([]any, len(empty))
	for i, row := range empty {
		if shardingKeys[i], err = s.key.valueIn(r, row); err != nil {
			return err
		}
	}
	return keys.AddIDs(len(empty), func(ids []int64) error {
		return s.router.FillIDs(ctx, s.gen, s.table, k.column, ids, shardingKeys)
	})
}
