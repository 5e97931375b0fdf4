// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/orms/sqlcorders"
)

func TestSqlcWorksOnShardsAsOnOneTable(t *testing.T) { worksAsOnOneTable(t, openSqlc) }

func TestSqlcGetsTheErrorsOfRefusedStatements(t *testing.T) { refusesWhatNoShardAnswers(t, openSqlc) }

// viaSqlc runs the statements that sqlc generated; all of them are prepared.
type viaSqlc struct {
	db   *sql.DB
	q    *sqlcorders.Queries
	next func(ctx context.Context, user int64) (int64, error)
}

func openSqlc(t *testing.T, _ string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store {
	t.Helper()
	q, err := sqlcorders.Prepare(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return viaSqlc{db, q, next}
}

func fromSqlc(rows []sqlcorders.Order, err error) ([]order, error) {
	var orders []order
	for _, r := range rows {
		o := order{ID: r.ID, UserID: r.UserID, Amount: r.Amount, CreatedAt: r.CreatedAt}
		if r.Note.Valid {
			o.Note = &r.Note.String
		}
		if r.PaidAt.Valid {
			o.PaidAt = &r.PaidAt.Time
		}
		orders = append(orders, o)
	}
	return orders, err
}

func (s viaSqlc) byID(ctx context.Context, id int64) (order, error) {
	row, err := s.q.Order(ctx, id)
	if errors.Is(err, sql.ErrNoRows) {
		return order{}, errNone
	}
	orders, err := fromSqlc([]sqlcorders.Order{row}, err)
	return orders[0], err
}

func (s viaSqlc) ofUser(ctx context.Context, users ...int64) ([][]order, error) {
	var all [][]order
	for _, user := range users {
		orders, err := fromSqlc(s.q.OrdersOfUser(ctx, user))
		if err != nil {
			return nil, err
		}
		all = append(all, orders)
	}
	return all, nil
}

func (s viaSqlc) ofUsers(ctx context.Context, users ...int64) ([]order, error) {
	return fromSqlc(s.q.OrdersOfUsers(ctx, users))
}

func (s viaSqlc) latest(ctx context.Context, limit, offset int) ([]order, error) {
	return fromSqlc(s.q.LatestOrders(ctx, sqlcorders.LatestOrdersParams{Limit: int32(limit), Offset: int32(offset)}))
}

func (s viaSqlc) since(ctx context.Context, at time.Time) ([]order, error) {
	return fromSqlc(s.q.OrdersSince(ctx, at))
}

func (s viaSqlc) unpaid(ctx context.Context) ([]order, error) {
	return fromSqlc(s.q.UnpaidOrders(ctx))
}

func (s viaSqlc) count(ctx context.Context, least int64) (int64, error) {
	return s.q.CountOrders(ctx, least)
}

func (s viaSqlc) skus(ctx context.Context, user int64) ([]string, error) {
	return s.q.SKUsOfUser(ctx, user)
}

func (s viaSqlc) create(ctx context.Context, orders ...order) error {
	for _, o := range orders {
		id, err := s.next(ctx, o.UserID)
		if err != nil {
			return err
		}
		row := sqlcorders.CreateOrderParams{ID: id, UserID: o.UserID, Amount: o.Amount, CreatedAt: o.CreatedAt}
		if o.Note != nil {
			row.Note = sql.NullString{String: *o.Note, Valid: true}
		}
		if err := s.q.CreateOrder(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (s viaSqlc) createItem(ctx context.Context, id, order int64, sku string) error {
	return s.q.CreateItem(ctx, sqlcorders.CreateItemParams{ID: id, OrderID: order, Sku: sku})
}

func (s viaSqlc) pay(ctx context.Context, user, id int64, at time.Time) (int64, error) {
	return s.q.PayOrder(ctx, sqlcorders.PayOrderParams{
		PaidAt: sql.NullTime{Time: at, Valid: true}, Note: sql.NullString{String: "paid", Valid: true}, UserID: user, ID: id,
	})
}

func (s viaSqlc) payByID(ctx context.Context, id int64, at time.Time) error {
	_, err := s.q.PayOrderByID(ctx, sqlcorders.PayOrderByIDParams{
		PaidAt: sql.NullTime{Time: at, Valid: true}, Note: sql.NullString{String: "paid", Valid: true}, ID: id,
	})
	return err
}

func (s viaSqlc) remove(ctx context.Context, user, id int64) (int64, error) {
	return s.q.DeleteOrder(ctx, sqlcorders.DeleteOrderParams{UserID: user, ID: id})
}

func (s viaSqlc) transaction(ctx context.Context, do func(store) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(viaSqlc{s.db, s.q.WithTx(tx), s.next}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
