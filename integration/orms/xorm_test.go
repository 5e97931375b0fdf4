// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"xorm.io/xorm"
	"xorm.io/xorm/core"
)

func TestXormWorksOnShardsAsOnOneTable(t *testing.T) { worksAsOnOneTable(t, openXorm) }

func TestXormGetsTheErrorsOfRefusedStatements(t *testing.T) { refusesWhatNoShardAnswers(t, openXorm) }

// xormOrder is an order as xorm wants it described.
type xormOrder struct {
	ID        int64      `xorm:"pk 'id'"`
	UserID    int64      `xorm:"'user_id'"`
	Note      *string    `xorm:"'note'"`
	Amount    int64      `xorm:"'amount'"`
	PaidAt    *time.Time `xorm:"DATETIME(6) 'paid_at'"`
	CreatedAt time.Time  `xorm:"DATETIME(6) 'created_at'"`
}

// TableName returns the logical name.
func (xormOrder) TableName() string { return "orders" }

type xormItem struct {
	ID      int64  `xorm:"pk 'id'"`
	OrderID int64  `xorm:"'order_id'"`
	SKU     string `xorm:"'sku'"`
}

// TableName returns the logical name.
func (xormItem) TableName() string { return "items" }

// viaXorm uses xorm. Its hooks before an insert have neither a context nor an error, so
// the program gives an order its id before it hands it over.
type viaXorm struct {
	engine  *xorm.Engine
	session func(context.Context) *xorm.Session
	next    func(ctx context.Context, user int64) (int64, error)
}

func openXorm(t *testing.T, driver string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store {
	t.Helper()
	dsn := "app:app@/app" // of which xorm reads the kind of the database
	engine, err := xorm.NewEngineWithDB(driver, dsn, core.FromDB(db))
	if err != nil {
		t.Fatal(err)
	}
	engine.TZLocation, engine.DatabaseTZ = time.UTC, time.UTC
	return viaXorm{engine, func(ctx context.Context) *xorm.Session { return engine.Context(ctx) }, next}
}

func fromXorm(rows []xormOrder, err error) ([]order, error) {
	var orders []order
	for _, row := range rows {
		orders = append(orders, order(row))
	}
	return orders, err
}

func (s viaXorm) all(query *xorm.Session) ([]order, error) {
	var rows []xormOrder
	err := query.Find(&rows)
	return fromXorm(rows, err)
}

func (s viaXorm) byID(ctx context.Context, id int64) (order, error) {
	var row xormOrder
	found, err := s.session(ctx).ID(id).Get(&row)
	if err == nil && !found {
		err = errNone
	}
	return order(row), err
}

// ofUser has xorm keep the prepared statement in its session.
func (s viaXorm) ofUser(ctx context.Context, users ...int64) ([][]order, error) {
	session := s.engine.NewSession().Context(ctx)
	defer func() { _ = session.Close() }()
	var all [][]order
	for _, user := range users {
		orders, err := s.all(session.Prepare().Where("user_id = ?", user).Asc("id"))
		if err != nil {
			return nil, err
		}
		all = append(all, orders)
	}
	return all, nil
}

func (s viaXorm) ofUsers(ctx context.Context, users ...int64) ([]order, error) {
	return s.all(s.session(ctx).In("user_id", users).Asc("id"))
}

func (s viaXorm) latest(ctx context.Context, limit, offset int) ([]order, error) {
	return s.all(s.session(ctx).Desc("created_at", "id").Limit(limit, offset))
}

func (s viaXorm) since(ctx context.Context, at time.Time) ([]order, error) {
	return s.all(s.session(ctx).Where("created_at >= ?", at).Asc("id"))
}

func (s viaXorm) unpaid(ctx context.Context) ([]order, error) {
	return s.all(s.session(ctx).Where("paid_at IS NULL").And("note IS NULL").Asc("id"))
}

func (s viaXorm) count(ctx context.Context, least int64) (int64, error) {
	return s.session(ctx).Where("amount >= ?", least).Count(new(xormOrder))
}

func (s viaXorm) skus(ctx context.Context, user int64) ([]string, error) {
	var skus []string
	err := s.session(ctx).Table("orders").Join("INNER", "items", "items.order_id = orders.id").
		Where("orders.user_id = ?", user).Asc("items.sku").Cols("items.sku").Find(&skus)
	return skus, err
}

func (s viaXorm) create(ctx context.Context, orders ...order) error {
	var rows []xormOrder
	for _, o := range orders {
		var err error
		if o.ID, err = s.next(ctx, o.UserID); err != nil {
			return err
		}
		rows = append(rows, xormOrder(o))
	}
	_, err := s.session(ctx).Insert(&rows)
	return err
}

func (s viaXorm) createItem(ctx context.Context, id, order int64, sku string) error {
	_, err := s.session(ctx).Insert(&xormItem{id, order, sku})
	return err
}

func (s viaXorm) pay(ctx context.Context, user, id int64, at time.Time) (int64, error) {
	return s.session(ctx).Where("user_id = ?", user).ID(id).Update(&xormOrder{PaidAt: &at, Note: new("paid")})
}

func (s viaXorm) payByID(ctx context.Context, id int64, at time.Time) error {
	_, err := s.session(ctx).ID(id).Update(&xormOrder{PaidAt: &at, Note: new("paid")})
	return err
}

func (s viaXorm) remove(ctx context.Context, user, id int64) (int64, error) {
	return s.session(ctx).Where("user_id = ?", user).ID(id).Delete(new(xormOrder))
}

func (s viaXorm) transaction(ctx context.Context, do func(store) error) error {
	session := s.engine.NewSession().Context(ctx)
	defer func() { _ = session.Close() }() // rolls back what is not committed
	if err := session.Begin(); err != nil {
		return err
	}
	if err := do(viaXorm{s.engine, func(context.Context) *xorm.Session { return session }, s.next}); err != nil {
		return err
	}
	return session.Commit()
}
