package sqlxhook

import (
	"context"
	"reflect"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// carry lets the keys of a row type that lead to the shard of a table carry the
// slot of the row's sharding key (gene ids), where their generator can do that.
func (h *Hook) carry(keys []key, m *reflectx.Mapper, r reflect.Type, t *sharding.Table) {
	for i := range keys {
		k := &keys[i]
		ints, ok := k.supply.(sequence)
		if !ok || !t.Leads(k.column) {
			continue
		}
		g, bucketed := ints.gen.(keygen.Bucketed)
		f, err := columnField(m, r, t.Key)
		if bucketed && err == nil && f.name != k.column {
			k.supply = gene{ints.set, g, h.router, t.Name, k.column, f}
		}
	}
}

// gene makes ids that carry the slot of their row's sharding key.
type gene struct {
	set           func(v reflect.Value, id int64) error
	gen           keygen.Bucketed
	router        *sharding.Router
	table, column string
	key           field
}

var _ supply = gene{}

func (g gene) draw(ctx context.Context, r rows, empty []int) (func(int, reflect.Value) error, error) {
	ids, err := g.drawInts(ctx, r, empty)
	return func(i int, v reflect.Value) error { return g.set(v, ids[i]) }, err
}

func (g gene) drawInts(ctx context.Context, r rows, empty []int) ([]int64, error) {
	slotted := make([]any, len(empty))
	for i, row := range empty {
		var err error
		if slotted[i], err = g.key.valueIn(&r, row); err != nil {
			return nil, err
		}
	}
	ids := make([]int64, len(empty))
	return ids, g.router.FillIDs(ctx, g.gen, g.table, g.column, ids, slotted)
}
