package demo

import (
	"context"
	"database/sql"
	"reflect"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// app is an application on the sharded tables, written with GORM or with sqlx.
// It is safe for concurrent use.
type app interface {
	// create inserts a row without a key, and then, in the same transaction, the
	// children that the function returns for the key it was given.
	create(ctx context.Context, parent reflect.Value, children func(key int64) reflect.Value) error
	// find reads the row with this key, and its children in any order.
	find(ctx context.Context, key int64) (parent, children reflect.Value, err error)
}

// models are the structs of the parent and, unless nil, of the child.
type models struct{ parent, child *model }

func newModels(all []*table) models {
	m := models{parent: newModel(all[0])}
	if len(all) > 1 {
		m.child = newModel(all[1])
	}
	return m
}

// gormApp uses GORM as it would be used without shards.
type gormApp struct {
	db     *gorm.DB
	models models
}

var _ app = (*gormApp)(nil)

func newGormApp(home *sql.DB, plugin gormplugin.Config, m models) (*gormApp, error) {
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: home}, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	return &gormApp{db, m}, db.Use(gormplugin.New(plugin))
}

func (g *gormApp) create(ctx context.Context, parent reflect.Value, children func(int64) reflect.Value) error {
	return g.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Table(g.models.parent.table.name).Create(parent.Interface()).Error; err != nil {
			return err
		}
		rows := children(g.models.parent.key(parent.Elem()))
		if !rows.IsValid() {
			return nil
		}
		return tx.Table(g.models.child.table.name).Create(rows.Interface()).Error
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

// sqlxApp asks the hook for the database and the table of each row.
type sqlxApp struct {
	hook   *sqlxhook.Hook
	models models
}

var _ app = (*sqlxApp)(nil)

func newSqlxApp(c sqlxhook.Config, m models) (*sqlxApp, error) {
	hook, err := sqlxhook.New(c)
	return &sqlxApp{hook, m}, err
}

func (s *sqlxApp) create(ctx context.Context, parent reflect.Value, children func(int64) reflect.Value) error {
	if err := s.hook.Fill(ctx, parent.Interface()); err != nil {
		return err
	}
	key := s.models.parent.key(parent.Elem())
	tx, err := s.hook.Begin(ctx, s.models.parent.table.name, key)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	if _, err := s.hook.Insert(ctx, tx, s.models.parent.table.name, parent.Interface()); err != nil {
		return err
	}
	if err := s.createChildren(ctx, tx, key, children(key)); err != nil {
		return err
	}
	return tx.Commit()
}

// createChildren inserts in the parent's transaction, as they lie in the same
// database.
func (s *sqlxApp) createChildren(ctx context.Context, tx *sqlxhook.Tx, parent int64, rows reflect.Value) error {
	if !rows.IsValid() {
		return nil
	}
	shard, err := tx.For(s.models.child.table.name, parent)
	if err != nil {
		return err
	}
	_, err = s.hook.Insert(ctx, shard, s.models.child.table.name, rows.Interface())
	return err
}

func (s *sqlxApp) find(ctx context.Context, key int64) (parent, children reflect.Value, err error) {
	t := s.models.parent.table
	parent = reflect.New(s.models.parent.typ)
	shard, err := s.hook.For(t.name, key)
	if err != nil {
		return parent.Elem(), children, err
	}
	err = shard.GetContext(ctx, parent.Interface(), t.selectBy(t.name, t.key), key)
	if err != nil || s.models.child == nil {
		return parent.Elem(), children, err
	}
	t = s.models.child.table
	children = reflect.New(s.models.child.slices)
	if shard, err = s.hook.For(t.name, key); err != nil {
		return parent.Elem(), children.Elem(), err
	}
	err = shard.SelectContext(ctx, children.Interface(), t.selectBy(t.name, t.by), key)
	return parent.Elem(), children.Elem(), err
}

// The names of the applications.
const (
	viaGORM = "GORM"
	viaSQLX = "sqlx"
)

// newApps returns the two applications, which share the generators.
func newApps(c *control, router *sharding.Router, m models) (map[string]app, error) {
	g, err := newGormApp(c.db, gormplugin.Config{Generators: c.generators, Router: router}, m)
	if err != nil {
		return nil, err
	}
	s, err := newSqlxApp(sqlxhook.Config{Generators: c.generators, Router: router, DriverName: "sqlite"}, m)
	return map[string]app{viaGORM: g, viaSQLX: s}, err
}
