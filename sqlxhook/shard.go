package sqlxhook

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/sharding"
)

// openShards wraps the router's databases once, so that For and GroupBy return
// the same *sqlx.DB each time, and notes which tables are physical ones.
func (h *Hook) openShards(driverName string) {
	h.shards = map[string]*sqlx.DB{}
	h.physical = map[string][]*sharding.Table{}
	for _, table := range h.router.Tables() {
		seen := map[string]bool{}
		for _, target := range h.router.Targets(table.Name) {
			if h.shards[target.DB] == nil {
				db := sqlx.NewDb(h.router.DB(target.DB), driverName)
				db.Mapper = h.mapper
				h.shards[target.DB] = db
			}
			if name := strings.ToLower(target.Table); !seen[name] {
				seen[name] = true
				h.physical[name] = append(h.physical[name], &table)
			}
		}
	}
}

// For returns the database and the physical table that hold the row of a
// sharded table with this sharding key. The errors are [sharding.RouteError]s.
func (h *Hook) For(table string, key any) (db *sqlx.DB, physical string, err error) {
	target, err := h.target(table, key)
	if err != nil {
		return nil, "", err
	}
	return h.shards[target.DB], target.Table, nil
}

func (h *Hook) target(table string, key any) (sharding.Target, error) {
	if h.router == nil {
		return sharding.Target{}, &sharding.RouteError{Op: "route", Table: table, Err: sharding.ErrUnknownTable, Hint: "set Config.Router"}
	}
	return h.router.Target(table, key)
}

// Group is the rows of a batch that lie on one target.
type Group[T any] struct {
	DB     *sqlx.DB
	Target sharding.Target
	Rows   []T   // in input order; structs are copied after their keys are filled
	Index  []int // of each row in the input
}

// GroupBy fills the empty keygen fields of rows, which are rows of the sharded
// table, and groups the rows by target. The groups appear in the order of their
// first rows and keep the input's order:
//
//	groups, err := sqlxhook.GroupBy(ctx, h, "orders", orders)
//	for _, g := range groups {
//		_, err := h.Insert(ctx, g.DB, g.Target.Table, g.Rows)
//	}
//
// A row whose sharding key is missing, NULL or zero is a [sharding.RouteError]
// that names the row; on an error the rows are as they were. T is a struct, a
// pointer to one, or a map. No rows make no groups.
func GroupBy[T any](ctx context.Context, h *Hook, table string, rows []T) ([]Group[T], error) {
	if len(rows) == 0 {
		return nil, nil
	}
	targets, err := h.fillTargets(ctx, table, rows)
	if err != nil {
		return nil, err
	}
	var groups []Group[T]
	at := map[sharding.Target]int{}
	for i, target := range targets {
		g, known := at[target]
		if !known {
			g = len(groups)
			at[target] = g
			groups = append(groups, Group[T]{DB: h.shards[target.DB], Target: target})
		}
		groups[g].Rows = append(groups[g].Rows, rows[i])
		groups[g].Index = append(groups[g].Index, i)
	}
	return groups, nil
}

// fillTargets fills the rows' keys and returns the target of each row.
func (h *Hook) fillTargets(ctx context.Context, table string, arg any) ([]sharding.Target, error) {
	if _, err := h.tableOf(table); err != nil {
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
	f, err := fill(ctx, keys, &r)
	if err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	targets, err := h.targets(table, &r)
	if err != nil {
		f.undo()
		return nil, err
	}
	return targets, nil
}

func (h *Hook) tableOf(name string) (sharding.Table, error) {
	if h.router != nil {
		if t, ok := h.router.Table(name); ok {
			return t, nil
		}
	}
	_, err := h.target(name, nil)
	return sharding.Table{}, err
}

func (h *Hook) targets(table string, r *rows) ([]sharding.Target, error) {
	t, err := h.tableOf(table)
	if err != nil {
		return nil, err
	}
	column, err := columnField(h.mapper, r.typ, t.Key)
	if err != nil {
		return nil, &sharding.RouteError{Op: "group", Table: t.Name, Column: t.Key, Err: err}
	}
	targets := make([]sharding.Target, r.n)
	for i := range targets {
		if targets[i], err = h.place(t, &column, r, i); err != nil {
			return nil, &sharding.RouteError{Op: "group", Table: t.Name, Column: t.Key, Err: fmt.Errorf("row %d: %w", i, err)}
		}
	}
	return targets, nil
}

// columnField finds the field that holds a column, or the map key.
func columnField(m *reflectx.Mapper, t reflect.Type, column string) (field, error) {
	if !isMap(t) {
		for _, fi := range columnsOf(m, t) {
			if strings.EqualFold(fi.Path, column) {
				return structField(column, t, fi.Index), nil
			}
		}
		return field{}, fmt.Errorf("%w: %s has no field for it", sharding.ErrMissingKey, t)
	}
	return fieldOf(m, t, column)
}

// place returns the target of row i.
func (h *Hook) place(t sharding.Table, f *field, r *rows, i int) (sharding.Target, error) {
	v, err := f.of(r.at(i))
	if err != nil {
		return sharding.Target{}, fmt.Errorf("%w: %w", sharding.ErrMissingKey, err)
	}
	if inner, ok := follow(v); !ok || inner.IsZero() {
		return sharding.Target{}, sharding.ErrMissingKey
	}
	target, err := h.router.Target(t.Name, v.Interface())
	var route *sharding.RouteError
	if errors.As(err, &route) { // its table and column are named by the caller
		err = route.Err
	}
	return target, err
}
