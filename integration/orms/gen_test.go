// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gen/field"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/integration/orms/genorders"
	"github.com/shardid/shardid/integration/orms/genorders/model"
)

func TestGenWorksOnShardsAsOnOneTable(t *testing.T) { worksAsOnOneTable(t, openGen) }

func TestGenGetsTheErrorsOfRefusedStatements(t *testing.T) { refusesWhatNoShardAnswers(t, openGen) }

// viaGen uses the code that gorm.io/gen generated. A hook of the model fills the ids.
type viaGen struct {
	db *gorm.DB
	*genorders.Query
	next func(ctx context.Context, user int64) (int64, error)
}

func openGen(t *testing.T, driver string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store {
	t.Helper()
	dialector := mysql.New(mysql.Config{Conn: db})
	if driver == "sqlite" {
		dialector = sqlite.Dialector{DriverName: "sqlite", Conn: db}
	}
	g, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return viaGen{g, genorders.Use(g), next}
}

func fromGen(rows []*model.Order, err error) ([]order, error) {
	var orders []order
	for _, row := range rows {
		orders = append(orders, order{row.ID, row.UserID, row.Note, row.Amount, row.PaidAt, row.CreatedAt})
	}
	return orders, err
}

func (s viaGen) byID(ctx context.Context, id int64) (order, error) {
	row, err := s.Order.WithContext(ctx).Where(s.Order.ID.Eq(id)).First()
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return order{}, errNone
	}
	if err != nil {
		return order{}, err
	}
	orders, err := fromGen([]*model.Order{row}, nil)
	return orders[0], err
}

// ofUser prepares its statement with gorm's PrepareStmt.
func (s viaGen) ofUser(ctx context.Context, users ...int64) (all [][]order, err error) {
	prepared := genorders.Use(s.db.Session(&gorm.Session{PrepareStmt: true}))
	for _, user := range users {
		orders, err := fromGen(prepared.Order.WithContext(ctx).Where(prepared.Order.UserID.Eq(user)).Order(prepared.Order.ID).Find())
		if err != nil {
			return nil, err
		}
		all = append(all, orders)
	}
	return all, nil
}

func (s viaGen) ofUsers(ctx context.Context, users ...int64) ([]order, error) {
	return fromGen(s.Order.WithContext(ctx).Where(s.Order.UserID.In(users...)).Order(s.Order.ID).Find())
}

func (s viaGen) latest(ctx context.Context, limit, offset int) ([]order, error) {
	return fromGen(s.Order.WithContext(ctx).Order(s.Order.CreatedAt.Desc(), s.Order.ID.Desc()).Limit(limit).Offset(offset).Find())
}

func (s viaGen) since(ctx context.Context, at time.Time) ([]order, error) {
	return fromGen(s.Order.WithContext(ctx).Where(s.Order.CreatedAt.Gte(at)).Order(s.Order.ID).Find())
}

func (s viaGen) unpaid(ctx context.Context) ([]order, error) {
	return fromGen(s.Order.WithContext(ctx).Where(s.Order.PaidAt.IsNull(), s.Order.Note.IsNull()).Order(s.Order.ID).Find())
}

func (s viaGen) count(ctx context.Context, least int64) (int64, error) {
	return s.Order.WithContext(ctx).Where(s.Order.Amount.Gte(least)).Count()
}

func (s viaGen) skus(ctx context.Context, user int64) (skus []string, err error) {
	o, i := s.Order.As("o"), s.Item.As("i")
	err = o.WithContext(ctx).Select(i.SKU).Join(i, i.OrderID.EqCol(o.ID)).Where(o.UserID.Eq(user)).Order(i.SKU).Pluck(i.SKU, &skus)
	return skus, err
}

func (s viaGen) create(ctx context.Context, orders ...order) error {
	rows := make([]*model.Order, len(orders))
	for i, o := range orders {
		rows[i] = &model.Order{UserID: o.UserID, Note: o.Note, Amount: o.Amount, PaidAt: o.PaidAt, CreatedAt: o.CreatedAt}
	}
	return s.Order.WithContext(context.WithValue(ctx, model.NextID{}, s.next)).Create(rows...)
}

func (s viaGen) createItem(ctx context.Context, id, order int64, sku string) error {
	return s.Item.WithContext(ctx).Create(&model.Item{ID: id, OrderID: order, SKU: sku})
}

func (s viaGen) pay(ctx context.Context, user, id int64, at time.Time) (int64, error) {
	done, err := s.Order.WithContext(ctx).Where(s.Order.UserID.Eq(user), s.Order.ID.Eq(id)).
		UpdateSimple(s.Order.PaidAt.Value(at), s.Order.Note.Value("paid"))
	return done.RowsAffected, err
}

func (s viaGen) payByID(ctx context.Context, id int64, at time.Time) error {
	_, err := s.Order.WithContext(ctx).Select(s.paid()...).Where(s.Order.ID.Eq(id)).Updates(model.Order{PaidAt: &at, Note: new("paid")})
	return err
}

func (s viaGen) paid() []field.Expr { return []field.Expr{s.Order.PaidAt, s.Order.Note} }

func (s viaGen) remove(ctx context.Context, user, id int64) (int64, error) {
	done, err := s.Order.WithContext(ctx).Where(s.Order.UserID.Eq(user), s.Order.ID.Eq(id)).Delete()
	return done.RowsAffected, err
}

func (s viaGen) transaction(_ context.Context, do func(store) error) error {
	return s.Query.Transaction(func(tx *genorders.Query) error { return do(viaGen{s.db, tx, s.next}) })
}
