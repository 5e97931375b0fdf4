// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"reflect"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// gormApp is an application with the plugin of package gormplugin.
type gormApp struct {
	db     *gorm.DB
	models models
}

var _ app = (*gormApp)(nil)

func newGormApp(c *control, router *sharding.Router, m models) (*gormApp, error) {
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: c.db}, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	return &gormApp{db, m}, db.Use(gormplugin.New(gormplugin.Config{Generators: c.generators, Router: router}))
}

// create inserts everything in one transaction. A repeated transaction gets new structs,
// because those of the failed attempt have keys of rows that do not exist.
func (g *gormApp) create(ctx context.Context, d draft, in repeat) (parent, children reflect.Value, err error) {
	err = in(ctx, func() error {
		return g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			parent = d.row()
			if err := tx.Table(g.models.parent.table.name).Create(parent.Interface()).Error; err != nil {
				return err
			}
			children = d.rows(g.models.parent.key(parent.Elem()))
			if !children.IsValid() {
				return nil
			}
			return tx.Table(g.models.child.table.name).Create(children.Interface()).Error
		})
	})
	return parent, children, err
}

func (g *gormApp) update(ctx context.Context, m *model, stored []any) error {
	columns, values := m.content(stored)
	set := make(map[string]any, len(columns))
	for i, c := range columns {
		set[c] = values[i]
	}
	t := m.table
	return g.db.WithContext(ctx).Table(t.name).Model(reflect.New(m.typ).Interface()).
		Where(clause.Eq{Column: t.key, Value: stored[t.keyAt]}, clause.Eq{Column: t.by, Value: stored[t.byAt]}).Updates(set).Error
}

func (g *gormApp) remove(ctx context.Context, key int64) error {
	return g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, m := range g.models.childFirst() {
			row := reflect.New(m.typ).Interface()
			if err := tx.Table(m.table.name).Where(clause.Eq{Column: m.table.by, Value: key}).Delete(row).Error; err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *gormApp) find(ctx context.Context, key int64) (parent, children reflect.Value, err error) {
	t := g.models.parent.table
	parent = reflect.New(g.models.parent.typ)
	db := g.db.WithContext(ctx)
	err = db.Table(t.name).Where(clause.Eq{Column: t.key, Value: key}).Take(parent.Interface()).Error
	if err != nil || g.models.child == nil {
		return parent.Elem(), children, err
	}
	t = g.models.child.table
	children = reflect.New(g.models.child.slices)
	err = db.Table(t.name).Where(clause.Eq{Column: t.by, Value: key}).Find(children.Interface()).Error
	return parent.Elem(), children.Elem(), err
}
