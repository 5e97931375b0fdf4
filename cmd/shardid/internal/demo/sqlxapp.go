package demo

import (
	"context"
	"database/sql"
	"reflect"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sqlxhook"
)

// plainSqlx is an application that knows nothing of shards.
type plainSqlx struct {
	db     *sqlx.DB
	models models
}

var _ app = (*plainSqlx)(nil)

func newPlainSqlx(db *sql.DB, m models) *plainSqlx {
	return &plainSqlx{sqlx.NewDb(db, "sqlite"), m}
}

func (p *plainSqlx) structs() models { return p.models }

// in runs f in a transaction.
func (p *plainSqlx) in(ctx context.Context, f func(*sqlx.Tx) error) error {
	tx, err := p.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (p *plainSqlx) create(ctx context.Context, parent reflect.Value, children func(int64) reflect.Value) error {
	return p.in(ctx, func(tx *sqlx.Tx) error {
		if err := insert(ctx, tx, p.models.parent, parent.Elem()); err != nil {
			return err
		}
		rows := children(p.models.parent.key(parent.Elem()))
		if !rows.IsValid() {
			return nil
		}
		for i := range rows.Elem().Len() {
			if err := insert(ctx, tx, p.models.child, rows.Elem().Index(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// insert leaves the key that the database has given in the row.
func insert(ctx context.Context, tx *sqlx.Tx, m *model, row reflect.Value) error {
	key := row.Field(m.table.keyAt)
	result, err := tx.NamedExecContext(ctx, m.table.insertNamed(!key.IsZero()), row.Interface())
	if err != nil {
		return err
	}
	id, err := result.LastInsertId()
	key.SetInt(id)
	return err
}

func (p *plainSqlx) update(ctx context.Context, m *model, stored []any) error {
	query, args := update(m, stored)
	_, err := p.db.ExecContext(ctx, query, args...)
	return err
}

// update returns the statement that gives a row these values.
func update(m *model, stored []any) (query string, args []any) {
	columns, values := m.content(stored)
	return m.table.updateBy(columns), append(values, stored[m.table.keyAt], stored[m.table.byAt])
}

func (p *plainSqlx) remove(ctx context.Context, key int64) error {
	return p.in(ctx, func(tx *sqlx.Tx) error {
		for _, m := range p.models.childFirst() {
			if _, err := tx.ExecContext(ctx, m.table.deleteBy(), key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *plainSqlx) find(ctx context.Context, key int64) (parent, children reflect.Value, err error) {
	t := p.models.parent.table
	parent = reflect.New(p.models.parent.typ)
	err = p.db.GetContext(ctx, parent.Interface(), t.selectBy(t.key), key)
	if err != nil || p.models.child == nil {
		return parent.Elem(), children, err
	}
	t = p.models.child.table
	children = reflect.New(p.models.child.slices)
	err = p.db.SelectContext(ctx, children.Interface(), t.selectBy(t.by), key)
	return parent.Elem(), children.Elem(), err
}

// shardedSqlx asks the hook for the database and the table of each row.
type shardedSqlx struct {
	hook   *sqlxhook.Hook
	models models
}

var _ app = (*shardedSqlx)(nil)

func newShardedSqlx(c sqlxhook.Config, m models) (*shardedSqlx, error) {
	hook, err := sqlxhook.New(c)
	return &shardedSqlx{hook, m}, err
}

func (s *shardedSqlx) structs() models { return s.models }

func (s *shardedSqlx) create(ctx context.Context, parent reflect.Value, children func(int64) reflect.Value) error {
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
func (s *shardedSqlx) createChildren(ctx context.Context, tx *sqlxhook.Tx, parent int64, rows reflect.Value) error {
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

func (s *shardedSqlx) update(ctx context.Context, m *model, stored []any) error {
	shard, err := s.hook.For(m.table.name, stored[m.table.byAt])
	if err != nil {
		return err
	}
	query, args := update(m, stored)
	_, err = shard.ExecContext(ctx, query, args...)
	return err
}

func (s *shardedSqlx) remove(ctx context.Context, key int64) error {
	tx, err := s.hook.Begin(ctx, s.models.parent.table.name, key)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after Commit
	for _, m := range s.models.childFirst() {
		shard, err := tx.For(m.table.name, key)
		if err != nil {
			return err
		}
		if _, err := shard.ExecContext(ctx, m.table.deleteBy(), key); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *shardedSqlx) find(ctx context.Context, key int64) (parent, children reflect.Value, err error) {
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
	if shard, err = s.hook.For(t.name, key); err != nil {
		return parent.Elem(), children.Elem(), err
	}
	err = shard.SelectContext(ctx, children.Interface(), t.selectBy(t.by), key)
	return parent.Elem(), children.Elem(), err
}
