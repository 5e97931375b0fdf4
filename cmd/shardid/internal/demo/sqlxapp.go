// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"reflect"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// sqlxApp sends its statements to the routed database, each with the sharding key, which is
// the parent's key.
type sqlxApp struct {
	hook   *sqlxhook.Hook
	db     *sqlx.DB
	models models
}

var _ app = (*sqlxApp)(nil)

func newSqlxApp(c *control, router *sharding.Router, m models) (*sqlxApp, error) {
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: c.generators, Router: router})
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: router.DB(liveName)})
	c.open = append(c.open, routed)
	return &sqlxApp{hook, sqlx.NewDb(routed, "sqlite"), m}, err
}

// create sends two statements outside of a transaction, each of which waits for the switch
// by itself: a routed transaction would need the key in advance, which the database gives
// until the switch.
func (s *sqlxApp) create(ctx context.Context, d draft, in repeat) (parent, children reflect.Value, err error) {
	err = in(ctx, func() error {
		parent = d.row()
		_, err := s.hook.Insert(ctx, s.db, s.models.parent.table.name, parent.Interface())
		return err
	})
	if err != nil || len(d.contents) == 0 {
		return parent, children, err
	}
	err = in(ctx, func() error {
		children = d.rows(s.models.parent.key(parent.Elem()))
		_, err := s.hook.Insert(ctx, s.db, s.models.child.table.name, children.Interface())
		return err
	})
	return parent, children, err
}

func (s *sqlxApp) update(ctx context.Context, m *model, stored []any) error {
	columns, values := m.content(stored)
	_, err := s.db.ExecContext(ctx, m.table.updateBy(columns), append(values, stored[m.table.keyAt], stored[m.table.byAt])...)
	return err
}

func (s *sqlxApp) remove(ctx context.Context, key int64) error {
	tx, err := s.db.BeginTxx(ctx, nil)
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
	err = s.db.GetContext(ctx, parent.Interface(), t.selectBy(t.key), key)
	if err != nil || s.models.child == nil {
		return parent.Elem(), children, err
	}
	t = s.models.child.table
	children = reflect.New(s.models.child.slices)
	err = s.db.SelectContext(ctx, children.Interface(), t.selectBy(t.by), key)
	return parent.Elem(), children.Elem(), err
}
