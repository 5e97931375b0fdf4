// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// lockShop has orders in two databases, one of which has a replica without
// replication, so that a result shows which server was read.
type lockShop struct {
	*sqlxhook.Hook
	db   *sqlx.DB // routed
	gorm *gorm.DB
	dbs  sharding.DBs
}

func newLockShop(t *testing.T, s database.Server) *lockShop {
	t.Helper()
	shop := &lockShop{dbs: sharding.DBs{"east": s.Open(t, "east"), "west": s.Open(t, "west")}}
	replica, home := s.Open(t, "replica"), s.Open(t, "home")
	m, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		database.Exec(t, shop.dbs[target.DB], fmt.Sprintf(gormOrders, target.Table))
		database.Exec(t, replica, fmt.Sprintf(gormOrders, target.Table))
	}
	database.Exec(t, shop.dbs["east"], "INSERT INTO orders_0 (id, note) VALUES (4, 'source'), (8, 'source')")
	database.Exec(t, replica, "INSERT INTO orders_0 (id, note) VALUES (4, 'replica')")
	router, err := sharding.New(shop.dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	if shop.Hook, err = sqlxhook.New(sqlxhook.Config{Router: router}); err != nil {
		t.Fatal(err)
	}
	shop.db = database.RoutedSqlx(t, router, home)
	shop.gorm = database.OpenGORM(t, home, true)
	plugin := gormplugin.New(gormplugin.Config{Generators: gormSet(), Router: router, Replicas: map[string][]*sql.DB{"east": {replica}}})
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{mysql.New(mysql.Config{Conn: replica})}})
	if err := errors.Join(shop.gorm.Use(plugin), shop.gorm.Use(resolver)); err != nil {
		t.Fatal(err)
	}
	return shop
}

// isLocked reports whether somebody else has locked an order.
func (s *lockShop) isLocked(t *testing.T, id int64) bool {
	t.Helper()
	err := s.dbs["east"].QueryRowContext(t.Context(), fmt.Sprintf("SELECT id FROM orders_0 WHERE id = %d FOR UPDATE NOWAIT", id)).Scan(&id)
	if err != nil && !isLockWait(err) {
		t.Fatal(err)
	}
	return err != nil
}

// isLockWait: MariaDB says 1205, MySQL 3572.
func isLockWait(err error) bool {
	var said *driver.MySQLError
	return errors.As(err, &said) && (said.Number == 1205 || said.Number == 3572)
}

const lockOrder = "SELECT note FROM orders WHERE id = ? FOR UPDATE"

// lockingForms are transactions that lock order 4 and go on.
func (s *lockShop) lockingForms() map[string]func(ctx context.Context, note *string) (end func() error, err error) {
	begin := func(ctx context.Context, lock func(tx *sqlx.Tx) error) (func() error, error) {
		tx, err := s.db.BeginTxx(ctx, nil)
		if err != nil {
			return nil, err
		}
		return tx.Commit, lock(tx)
	}
	return map[string]func(ctx context.Context, note *string) (end func() error, err error){
		"sqlx": func(ctx context.Context, note *string) (func() error, error) {
			return begin(ctx, func(tx *sqlx.Tx) error { return tx.GetContext(ctx, note, lockOrder, 4) })
		},
		"sqlx, after another shard of the database": func(ctx context.Context, note *string) (func() error, error) {
			return begin(ctx, func(tx *sqlx.Tx) error {
				if _, err := tx.ExecContext(ctx, "UPDATE orders SET note = 'x' WHERE id = ?", 6); err != nil {
					return err
				}
				return tx.GetContext(ctx, note, lockOrder, 4)
			})
		},
		"sqlx by names": func(ctx context.Context, note *string) (func() error, error) {
			return begin(ctx, func(tx *sqlx.Tx) error {
				rows, err := s.NamedQuery(ctx, tx, "SELECT note FROM orders WHERE id = :id FOR UPDATE", map[string]any{"id": 4})
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				rows.Next()
				return errors.Join(rows.Scan(note), rows.Err())
			})
		},
		"gorm": func(ctx context.Context, note *string) (func() error, error) {
			tx := s.gorm.WithContext(ctx).Begin()
			var o gormOrder
			err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&o, 4).Error
			*note = o.Note
			return func() error { return tx.Commit().Error }, err
		},
		"gorm, raw": func(ctx context.Context, note *string) (func() error, error) {
			tx := s.gorm.WithContext(sharding.OnKey(ctx, "orders", 4)).Begin()
			err := tx.Raw(lockOrder, 4).Scan(note).Error
			return func() error { return tx.Commit().Error }, err
		},
	}
}

func TestForUpdateLocksTheRowOfItsShardOnItsSource(t *testing.T) {
	database.OnEachMySQL(t, func(t *testing.T, server database.Server) {
		s := newLockShop(t, server)
		for name, lock := range s.lockingForms() {
			var note string
			end, err := lock(t.Context(), &note)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if note != "source" || !s.isLocked(t, 4) || s.isLocked(t, 8) {
				t.Errorf("%s: read %q; order 4 is locked: %t, order 8: %t", name, note, s.isLocked(t, 4), s.isLocked(t, 8))
			}
			s.waits(t, name)
			if err := end(); err != nil || s.isLocked(t, 4) {
				t.Errorf("%s: %v, and order 4 is locked still: %t", name, err, s.isLocked(t, 4))
			}
		}
	})
}

// waits checks that statements outside of transactions wait for the lock, too.
func (s *lockShop) waits(t *testing.T, name string) {
	t.Helper()
	var note string
	if err := s.db.GetContext(t.Context(), &note, lockOrder+" NOWAIT", 4); !isLockWait(err) {
		t.Errorf("%s: sqlx read %q, %v", name, note, err)
	}
	if err := s.db.GetContext(t.Context(), &note, lockOrder+" NOWAIT", 8); err != nil || note != "source" {
		t.Errorf("%s: sqlx read %q, %v", name, note, err)
	}
	err := s.gorm.Clauses(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}).First(&gormOrder{}, 4).Error
	if !isLockWait(err) {
		t.Errorf("%s: gorm: %v", name, err)
	}
}
