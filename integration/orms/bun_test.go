// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
)

func TestBunWorksOnShardsAsOnOneTable(t *testing.T) { worksAsOnOneTable(t, openBun) }

func TestBunGetsTheErrorsOfRefusedStatements(t *testing.T) { refusesWhatNoShardAnswers(t, openBun) }

// bunOrder is an order as bun wants it described.
type bunOrder struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID        int64      `bun:"id,pk"`
	UserID    int64      `bun:"user_id"`
	Note      *string    `bun:"note"`
	Amount    int64      `bun:"amount"`
	PaidAt    *time.Time `bun:"paid_at"`
	CreatedAt time.Time  `bun:"created_at"`
	Items     []*bunItem `bun:"rel:has-many,join:id=order_id"`

	next func(ctx context.Context, user int64) (int64, error)
}

type bunItem struct {
	bun.BaseModel `bun:"table:items,alias:i"`

	ID      int64  `bun:"id,pk"`
	OrderID int64  `bun:"order_id"`
	SKU     string `bun:"sku"`
}

// BeforeAppendModel gives a new order its id.
func (o *bunOrder) BeforeAppendModel(ctx context.Context, query bun.Query) (err error) {
	if _, insert := query.(*bun.InsertQuery); insert && o.ID == 0 {
		o.ID, err = o.next(ctx, o.UserID)
	}
	return err
}

// viaBun uses bun, which writes the arguments into the texts.
type viaBun struct {
	db   *bun.DB // nil in a transaction
	in   bun.IDB
	next func(ctx context.Context, user int64) (int64, error)
}

func openBun(t *testing.T, driver string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store {
	t.Helper()
	var dialect schema.Dialect = mysqldialect.New()
	if driver == "sqlite" {
		dialect = sqlitedialect.New()
	}
	b := bun.NewDB(db, dialect)
	return viaBun{b, b, next}
}

func fromBun(row bunOrder) order {
	return order{row.ID, row.UserID, row.Note, row.Amount, row.PaidAt, row.CreatedAt}
}

// all scans the orders of a query.
func (s viaBun) all(ctx context.Context, query func(q *bun.SelectQuery) *bun.SelectQuery) ([]order, error) {
	var rows []bunOrder
	err := query(s.in.NewSelect().Model(&rows)).Scan(ctx)
	var orders []order
	for _, row := range rows {
		orders = append(orders, fromBun(row))
	}
	return orders, err
}

func (s viaBun) byID(ctx context.Context, id int64) (order, error) {
	row := bunOrder{ID: id}
	err := s.in.NewSelect().Model(&row).WherePK().Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return order{}, errNone
	}
	return fromBun(row), err
}

// ofUser prepares a statement with placeholders, which bun then only scans.
func (s viaBun) ofUser(ctx context.Context, users ...int64) (all [][]order, err error) {
	st, err := s.db.PrepareContext(ctx, "SELECT * FROM orders WHERE user_id = ? ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for _, user := range users {
		orders, err := s.ran(ctx, st, user)
		if err != nil {
			return nil, err
		}
		all = append(all, orders)
	}
	return all, nil
}

// ran returns the orders that a prepared statement reads.
func (s viaBun) ran(ctx context.Context, st bun.Stmt, user int64) (orders []order, err error) {
	rows, err := st.QueryContext(ctx, user)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var found []bunOrder
	if err := errors.Join(s.db.ScanRows(ctx, rows, &found), rows.Err()); err != nil {
		return nil, err
	}
	for _, row := range found {
		orders = append(orders, fromBun(row))
	}
	return orders, nil
}

func (s viaBun) ofUsers(ctx context.Context, users ...int64) ([]order, error) {
	return s.all(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("user_id IN (?)", bun.List(users)).Order("id")
	})
}

func (s viaBun) latest(ctx context.Context, limit, offset int) ([]order, error) {
	return s.all(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Order("created_at DESC", "id DESC").Limit(int64(limit)).Offset(int64(offset))
	})
}

func (s viaBun) since(ctx context.Context, at time.Time) ([]order, error) {
	return s.all(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("created_at >= ?", at).Order("id") })
}

func (s viaBun) unpaid(ctx context.Context) ([]order, error) {
	return s.all(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("paid_at IS NULL").Where("note IS NULL").Order("id")
	})
}

func (s viaBun) count(ctx context.Context, least int64) (int64, error) {
	return s.in.NewSelect().Model((*bunOrder)(nil)).Where("amount >= ?", least).Count(ctx)
}

// skus reads with a join and along the relation, for which bun sends a second query.
func (s viaBun) skus(ctx context.Context, user int64) ([]string, error) {
	var skus []string
	err := s.in.NewSelect().Model((*bunOrder)(nil)).Join("JOIN items AS i ON i.order_id = o.id").
		Column("i.sku").Where("o.user_id = ?", user).Order("i.sku").Scan(ctx, &skus)
	if err != nil {
		return nil, err
	}
	var orders []bunOrder
	if err := s.in.NewSelect().Model(&orders).Relation("Items").Where("user_id = ?", user).Scan(ctx); err != nil {
		return nil, err
	}
	if len(orders) != 1 || len(orders[0].Items) != len(skus) {
		return nil, errors.New("the relation has other rows")
	}
	return skus, nil
}

func (s viaBun) create(ctx context.Context, orders ...order) error {
	var rows []*bunOrder
	for _, o := range orders {
		rows = append(rows, &bunOrder{UserID: o.UserID, Note: o.Note, Amount: o.Amount, PaidAt: o.PaidAt, CreatedAt: o.CreatedAt, next: s.next})
	}
	_, err := s.in.NewInsert().Model(&rows).Exec(ctx)
	return err
}

func (s viaBun) createItem(ctx context.Context, id, order int64, sku string) error {
	_, err := s.in.NewInsert().Model(&bunItem{ID: id, OrderID: order, SKU: sku}).Exec(ctx)
	return err
}

func (s viaBun) pay(ctx context.Context, user, id int64, at time.Time) (int64, error) {
	return affected(s.in.NewUpdate().Model((*bunOrder)(nil)).Set("paid_at = ?", at).Set("note = ?", "paid").
		Where("user_id = ?", user).Where("id = ?", id).Exec(ctx))
}

func (s viaBun) payByID(ctx context.Context, id int64, at time.Time) error {
	row := bunOrder{ID: id, PaidAt: &at, Note: new("paid")}
	_, err := s.in.NewUpdate().Model(&row).Column("paid_at", "note").WherePK().Exec(ctx)
	return err
}

func (s viaBun) remove(ctx context.Context, user, id int64) (int64, error) {
	return affected(s.in.NewDelete().Model((*bunOrder)(nil)).Where("user_id = ?", user).Where("id = ?", id).Exec(ctx))
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (s viaBun) transaction(ctx context.Context, do func(store) error) error {
	return s.db.RunInTx(ctx, nil, func(_ context.Context, tx bun.Tx) error { return do(viaBun{nil, tx, s.next}) })
}
