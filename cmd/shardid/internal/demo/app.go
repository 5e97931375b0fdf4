// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"reflect"

	"github.com/shardid/shardid/sharding"
)

// app is an application, written with GORM or with sqlx. Its code is the same before and
// after the switch: its router finds the serving database. It is safe for concurrent use.
type app interface {
	// create inserts a row and its children, which have no keys yet, and returns them with
	// their keys: a pointer to a struct, and to a slice of structs that is invalid when there
	// are none.
	create(ctx context.Context, d draft, in repeat) (parent, children reflect.Value, err error)
	// update sets these values of a row; its key and its sharding key stay.
	update(ctx context.Context, m *model, stored []any) error
	// remove deletes the row with this key and its children, in one transaction.
	remove(ctx context.Context, key int64) error
	// find reads the row with this key, and its children in any order.
	find(ctx context.Context, key int64) (parent, children reflect.Value, err error)
}

// repeat calls something, which fails without effect, until it succeeds or fails
// permanently.
type repeat func(ctx context.Context, something func() error) error

// models are the structs of the parent and, unless nil, of the child.
type models struct{ parent, child *model }

func newModels(all []*table) models {
	m := models{parent: newModel(all[0])}
	if len(all) > 1 {
		m.child = newModel(all[1])
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

// draft is the content of a new parent and its children.
type draft struct {
	models

	content  sample
	contents []sample // content of the children
}

// row returns a pointer to a new struct of the parent.
func (d draft) row() reflect.Value { return d.parent.row(d.content.stored) }

// rows returns a pointer to new structs of the children of the parent with this
// key; it is invalid when there are none.
func (d draft) rows(key int64) reflect.Value {
	if len(d.contents) == 0 {
		return reflect.Value{}
	}
	return d.child.children(d.contents, key)
}

// The names of the applications, in Result.Apps.
const (
	ViaGORM = "GORM"
	ViaSQLX = "sqlx"
)

// deploy returns the two applications, each with its own router, as two programs have. They
// share the generators.
func deploy(ctx context.Context, c *control, dbs sharding.DBs, all []*table) (map[string]app, error) {
	var routers [2]*sharding.Router
	for i := range routers {
		router, err := newRouter(dbs, all, moving(all))
		if err != nil {
			return nil, err
		}
		if err := router.Load(ctx); err != nil {
			return nil, err
		}
		routers[i] = router
	}
	viaGORM, err := newGormApp(c, routers[0], newModels(all))
	if err != nil {
		return nil, err
	}
	viaSQLX, err := newSqlxApp(c, routers[1], newModels(all))
	return map[string]app{ViaGORM: viaGORM, ViaSQLX: viaSQLX}, err
}

// liveName is the routers' name for the database that is migrated.
const liveName = "live"

// moving is the routers' configuration of the migration.
func moving(all []*table) sharding.Migration {
	m := sharding.Migration{Source: liveName, Tables: map[string]string{}, Patience: 10 * maxPause}
	for _, t := range all {
		m.Tables[t.name] = t.key
	}
	return m
}
