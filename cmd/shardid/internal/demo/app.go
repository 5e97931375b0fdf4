package demo

import (
	"context"
	"database/sql"
	"reflect"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// app is an application, written with GORM or with sqlx, on the tables of the
// source or on the shards. It is safe for concurrent use.
type app interface {
	// structs are those of its rows.
	structs() models
	// create inserts a row without a key and then, in the same transaction, the
	// children that the function returns for the key it was given.
	create(ctx context.Context, parent reflect.Value, children func(key int64) reflect.Value) error
	// update gives a row these values; its key and its sharding key stay.
	update(ctx context.Context, m *model, stored []any) error
	// remove deletes the row with this key and its children, in one transaction.
	remove(ctx context.Context, key int64) error
	// find reads the row with this key, and its children in any order.
	find(ctx context.Context, key int64) (parent, children reflect.Value, err error)
}

// models are the structs of the parent and, unless nil, of the child.
type models struct{ parent, child *model }

func newModels(all []*table, n numbering) models {
	m := models{parent: newModel(all[0], n)}
	if len(all) > 1 {
		m.child = newModel(all[1], n)
	}
	return m
}

// childFirst is the order to delete rows in.
func (m models) childFirst() []*model {
	if m.child == nil {
		return []*model{m.parent}
	}
	return []*model{m.child, m.parent}
}

// The names of the applications, in Result.Apps.
const (
	ViaGORM = "GORM"
	ViaSQLX = "sqlx"
)

// deployment is one application where it works before and after the switch.
type deployment map[sharding.Route]app

// deploy returns the two applications, which share the generators.
func deploy(c *control, live *sql.DB, router *sharding.Router, all []*table) (map[string]deployment, error) {
	before, after := newModels(all, byDatabase), newModels(all, byGenerator)
	oldGORM, err := newGormApp(live, nil, before)
	if err != nil {
		return nil, err
	}
	newGORM, err := newGormApp(c.db, &gormplugin.Config{Generators: c.generators, Router: router}, after)
	if err != nil {
		return nil, err
	}
	newSQLX, err := newShardedSqlx(sqlxhook.Config{Generators: c.generators, Router: router, DriverName: "sqlite"}, after)
	if err != nil {
		return nil, err
	}
	return map[string]deployment{
		ViaGORM: {sharding.OnSource: oldGORM, sharding.OnShards: newGORM},
		ViaSQLX: {sharding.OnSource: newPlainSqlx(live, before), sharding.OnShards: newSQLX},
	}, nil
}
