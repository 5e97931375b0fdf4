package demo

import (
	"context"
	"reflect"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// sqlxApp asks the hook for the place of each row; that of a parent is the place
// of its children, too.
type sqlxApp struct {
	hook   *sqlxhook.Hook
	models models
}

var _ app = (*sqlxApp)(nil)

func newSqlxApp(c *control, router *sharding.Router, m models) (*sqlxApp, error) {
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: c.generators, Router: router, DriverName: "sqlite"})
	return &sqlxApp{hook, m}, err
}

// create makes two statements, each of which waits for the switch by itself: a
// transaction would have to know the key beforehand, which the database gives
// until then.
func (s *sqlxApp) create(ctx context.Context, d draft, in repeat) (parent, children reflect.Value, err error) {
	err = in(ctx, func() error {
		parent = d.row()
		_, err := s.hook.Insert(ctx, s.hook.Shards(), s.models.parent.table.name, parent.Interface())
		return err
	})
	if err != nil || len(d.contents) == 0 {
		return parent, children, err
	}
	err = in(ctx, func() error {
		children = d.rows(s.models.parent.key(parent.Elem()))
		_, err := s.hook.Insert(ctx, s.hook.Shards(), s.models.child.table.name, children.Interface())
		return err
	})
	return parent, children, err
}

func (s *sqlxApp) update(ctx context.Context, m *model, stored []any) error {
	shard, err := s.hook.For(m.table.name, stored[m.table.byAt])
	if err != nil {
		return err
	}
	columns, values := m.content(stored)
	_, err = shard.ExecContext(ctx, m.table.updateBy(columns), append(values, stored[m.table.keyAt], stored[m.table.byAt])...)
	return err
}

func (s *sqlxApp) remove(ctx context.Context, key int64) error {
	tx, err := s.hook.Begin(ctx, s.models.parent.table.name, key)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for _, m := range s.models.childFirst() {
		if _, err := tx.ExecContext(ctx, m.table.deleteBy(), key); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqlxApp) find(ctx context.Context, key int64) (parent, children reflect.Value, err error) {
	t := s.models.parent.table
	parent = reflect.New(s.models.parent.typ)
	shard, err := s.hook.For(t.name, key)
	if err != nil {
		return parent.Elem(), children, err
	}
	err = shard.GetContext(ctx, parent.Interface(), t.selectBy(t.key), key)
	if err != nil || s.models.child == nil {
		return parent.Elem(), children, err
	}
	t = s.models.child.table
	children = reflect.New(s.models.child.slices)
	err = shard.SelectContext(ctx, children.Interface(), t.selectBy(t.by), key)
	return parent.Elem(), children.Elem(), err
}
