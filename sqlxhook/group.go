package sqlxhook

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sharding"
)

// Group is what a batch has for one shard.
type Group[T any] struct {
	Shard *Shard
	Items []T   // in input order; structs are copied after their keys are filled
	Index []int // of each item in the input
}

// GroupBy fills the empty keygen fields of rows, which are rows of the sharded
// table, and groups the rows by shard. The groups appear in the order of their
// first rows and keep the input's order:
//
//	groups, err := sqlxhook.GroupBy(ctx, h, "orders", orders)
//	for _, g := range groups {
//		_, err := h.Insert(ctx, g.Shard, "orders", g.Items)
//	}
//
// A row whose sharding key is missing, NULL or zero is a [sharding.RouteError]
// that names the row; on an error the rows are as they were. T is a struct, a
// pointer to one, or a map. No rows make no groups.
func GroupBy[T any](ctx context.Context, h *Hook, table string, rows []T) ([]Group[T], error) {
	if len(rows) == 0 {
		return nil, nil
	}
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	l, err := h.routing(table)
	if err != nil {
		return nil, err
	}
	targets, err := h.fillTargets(ctx, l, table, rows)
	if err != nil {
		return nil, err
	}
	return group(h, l, table, rows, targets), nil
}

// GroupKeys groups sharding keys of a table by shard, in input order, for
// conditions of the form key IN (…):
//
//	groups, err := sqlxhook.GroupKeys(h, "orders", ids)
//	for _, g := range groups {
//		query, args, err := sqlx.In("SELECT * FROM orders WHERE id IN (?)", g.Items)
//		err = g.Shard.SelectContext(ctx, &orders, g.Shard.Rebind(query), args...)
//	}
//
// A key that leads to no shard is a [sharding.RouteError] that names it by its
// index.
func GroupKeys[K any](h *Hook, table string, keys []K) ([]Group[K], error) {
	l, err := h.routing(table)
	if err != nil {
		return nil, err
	}
	t, err := l.tableOf(table)
	if err != nil {
		return nil, err
	}
	return GroupKeysBy(h, table, t.Key, keys)
}

// GroupKeysBy is [GroupKeys] for values of another column that leads to the
// shard; see [Hook.ForBy].
func GroupKeysBy[K any](h *Hook, table, column string, values []K) ([]Group[K], error) {
	l, err := h.routing(table)
	if err != nil {
		return nil, err
	}
	targets := make([]sharding.Target, len(values))
	for i, v := range values {
		if targets[i], err = l.snapshot.TargetBy(table, column, v); err != nil {
			return nil, &sharding.RouteError{Op: "group", Table: table, Column: column, Err: fmt.Errorf("key %d: %w", i, cause(err))}
		}
	}
	return group(h, l, table, values, targets), nil
}

// group puts items together that have the same target.
func group[T any](h *Hook, l *layout, table string, items []T, targets []sharding.Target) []Group[T] {
	var groups []Group[T]
	at := map[sharding.Target]int{}
	for i, target := range targets {
		g, known := at[target]
		if !known {
			g = len(groups)
			at[target] = g
			groups = append(groups, Group[T]{Shard: h.shard(l, aim{table: table, fixed: true}, target)})
		}
		groups[g].Items = append(groups[g].Items, items[i])
		groups[g].Index = append(groups[g].Index, i)
	}
	return groups
}

// fillTargets fills the rows' keys and returns the target of each row.
func (h *Hook) fillTargets(ctx context.Context, l *layout, table string, arg any) ([]sharding.Target, error) {
	t, err := l.tableOf(table)
	if err != nil {
		return nil, err
	}
	var r rows
	if err := r.take(arg); err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	keys, err := h.keysOf(h.mapper, r.typ)
	if err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	h.carry(keys, h.mapper, r.typ, t)
	leave(keys, t)
	var f filling
	if err := f.fill(ctx, keys, &r); err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	targets, err := h.targets(l, t, &r)
	if err != nil {
		f.undo(&r)
		return nil, err
	}
	return targets, nil
}

func (l *layout) tableOf(name string) (*sharding.Table, error) {
	t, ok := l.snapshot.Lookup(name)
	if !ok {
		_, err := l.snapshot.Target(name, nil)
		return nil, err
	}
	return t, nil
}

func (h *Hook) targets(l *layout, t *sharding.Table, r *rows) ([]sharding.Target, error) {
	column, err := columnField(h.mapper, r.typ, t.Key)
	if err != nil {
		return nil, &sharding.RouteError{Op: "group", Table: t.Name, Column: t.Key, Err: err}
	}
	targets := make([]sharding.Target, r.n)
	for i := range targets {
		if targets[i], err = place(l, t, &column, r, i); err != nil {
			return nil, &sharding.RouteError{Op: "group", Table: t.Name, Column: t.Key, Err: fmt.Errorf("row %d: %w", i, err)}
		}
	}
	return targets, nil
}

// columnField finds the field that holds a column, or the map key.
func columnField(m *reflectx.Mapper, t reflect.Type, column string) (field, error) {
	if isMap(t) {
		return fieldOf(m, t, column)
	}
	for _, fi := range columnsOf(m, t) {
		if strings.EqualFold(fi.Path, column) {
			return structField(column, t, fi.Index), nil
		}
	}
	return field{}, fmt.Errorf("%w: %s has no field for it", sharding.ErrMissingKey, t)
}

// place returns the target of row i.
func place(l *layout, t *sharding.Table, f *field, r *rows, i int) (sharding.Target, error) {
	if numbered(t, t.Key) {
		return t.Origin().Target, nil
	}
	v, err := f.of(r.at(i))
	if err != nil {
		return sharding.Target{}, fmt.Errorf("%w: %w", sharding.ErrMissingKey, err)
	}
	if inner, ok := follow(v); !ok || inner.IsZero() {
		return sharding.Target{}, sharding.ErrMissingKey
	}
	target, err := l.snapshot.Target(t.Name, v.Interface())
	return target, cause(err)
}
