// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"xorm.io/xorm"

	"github.com/shardid/shardid/integration/orms/entorders"
	entorder "github.com/shardid/shardid/integration/orms/entorders/order"
	"github.com/shardid/shardid/sharding"
)

// A form is a call of a library, and what it answers.
type form func(ctx context.Context) (any, error)

// answerAlike runs calls on the routed database and on one table, with a row for each of
// six users.
func answerAlike[S store](t *testing.T, open library, forms func(S, opening) []form) {
	t.Helper()
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on, carrying)
		routed := forms(open(t, shop.driver, shop.routed, shop.nextID()).(S), on)
		whole := forms(open(t, shop.driver, shop.whole, shop.nextID()).(S), on)
		for i := range routed {
			want, wantErr := whole[i](t.Context())
			got, err := routed[i](t.Context())
			if err != nil || wantErr != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("call %d: %v, %v\nwant %v, %v", i, got, err, want, wantErr)
			}
		}
	})
}

// sixOrders is the first call: it makes the rows.
func sixOrders(s store) form {
	return func(ctx context.Context) (any, error) {
		var errs []error
		for user := range int64(6) {
			errs = append(errs, s.create(ctx, order{UserID: user, Amount: user, CreatedAt: morning}))
		}
		return nil, errors.Join(append(errs, s.createItem(ctx, 1, 3<<2+2, "tea"))...)
	}
}

func TestFormsOfEntAnswerAsOnOneTable(t *testing.T) {
	answerAlike(t, openEnt, func(s viaEnt, _ opening) []form {
		return []form{
			sixOrders(s),
			func(ctx context.Context) (any, error) {
				var groups []struct {
					Note  *string
					Count int64
					Mean  float64
				}
				err := s.Order.Query().GroupBy(entorder.FieldNote).Aggregate(entorders.Count(), entorders.As(entorders.Mean(entorder.FieldAmount), "mean")).Scan(ctx, &groups)
				return groups, err
			},
			func(ctx context.Context) (any, error) { return s.Order.Query().Where(entorder.HasItems()).All(ctx) },
			func(ctx context.Context) (any, error) { return s.Order.Query().Exist(ctx) },
			func(ctx context.Context) (any, error) { return s.Order.Query().Order(entorder.ByID()).First(ctx) },
			func(ctx context.Context) (any, error) {
				return s.Order.Query().Where(entorder.Or(entorder.UserID(1), entorder.AmountGT(3))).Order(entorder.ByItemsCount(), entorder.ByID()).IDs(ctx)
			},
			func(ctx context.Context) (any, error) {
				one, err := s.Order.Query().Where(entorder.UserID(2)).Only(ctx)
				if err != nil {
					return nil, err
				}
				return one.Update().AddAmount(1).Save(ctx)
			},
			func(ctx context.Context) (any, error) { return nil, s.Order.DeleteOneID(2<<2 + 1).Exec(ctx) },
		}
	})
}

func TestFormsOfBunAnswerAsOnOneTable(t *testing.T) {
	answerAlike(t, openBun, func(s viaBun, on opening) []form {
		row := &bunOrder{ID: 3<<2 + 2, UserID: 2, Amount: 90, CreatedAt: morning}
		conflict := map[string]string{"sqlite": "CONFLICT (id) DO UPDATE", "mysql": "DUPLICATE KEY UPDATE"}[on.driver]
		return []form{
			sixOrders(s),
			func(ctx context.Context) (any, error) {
				var rows []*bunOrder
				n, err := s.in.NewSelect().Model(&rows).Where("amount > 1").Order("id").Limit(2).ScanAndCount(ctx)
				return fmt.Sprint(n, len(rows), rows[0].ID), err
			},
			func(ctx context.Context) (any, error) {
				return s.in.NewSelect().Model((*bunOrder)(nil)).Where("user_id = 1").Exists(ctx)
			},
			func(ctx context.Context) (any, error) { return s.in.NewSelect().Model((*bunOrder)(nil)).Exists(ctx) },
			func(ctx context.Context) (any, error) {
				return s.in.NewSelect().Model((*bunOrder)(nil)).Where("amount = 77").Exists(ctx)
			},
			func(ctx context.Context) (any, error) {
				return affected(s.in.NewInsert().Model(row).On(conflict).Exec(ctx))
			},
			func(ctx context.Context) (any, error) {
				return affected(s.in.NewInsert().Model(row).Ignore().Exec(ctx))
			},
			func(ctx context.Context) (any, error) {
				items := s.in.NewSelect().Model((*bunItem)(nil)).Column("order_id")
				return s.in.NewSelect().Model((*bunOrder)(nil)).Where("id IN (?)", items).Count(ctx)
			},
			func(ctx context.Context) (any, error) { // SELECT count(*) FROM (SELECT … GROUP BY amount)
				return s.in.NewSelect().Model((*bunOrder)(nil)).Column("amount").Where("amount > 1").Group("amount").Count(ctx)
			},
			func(ctx context.Context) (any, error) {
				return s.in.NewSelect().Model((*bunOrder)(nil)).ColumnExpr("DISTINCT amount").Count(ctx)
			},
			func(ctx context.Context) (any, error) {
				row.Note = new("changed")
				return affected(s.in.NewUpdate().Model(row).WherePK().Exec(ctx))
			},
			func(ctx context.Context) (any, error) {
				if on.driver == "mysql" {
					return nil, nil // MariaDB refuses the text
				}
				return affected(s.in.NewUpdate().Model(&[]*bunOrder{row}).Column("amount").Bulk().Where("o.user_id = ?", 2).Exec(ctx))
			},
			func(ctx context.Context) (any, error) {
				if on.driver == "mysql" {
					return nil, nil // MariaDB refuses the text
				}
				row.Amount += 7
				return affected(s.in.NewUpdate().Model(&[]*bunOrder{row}).Column("amount").Bulk().Exec(ctx))
			},
			func(ctx context.Context) (any, error) {
				return affected(s.in.NewDelete().Model(row).WherePK().Exec(ctx))
			},
		}
	})
}

func TestFormsOfXormAnswerAsOnOneTable(t *testing.T) {
	answerAlike(t, openXorm, func(s viaXorm, _ opening) []form {
		return []form{
			sixOrders(s),
			func(ctx context.Context) (any, error) { return s.session(ctx).Exist(&xormOrder{UserID: 1}) },
			func(ctx context.Context) (any, error) {
				var rows []xormOrder
				n, err := s.session(ctx).Where("amount > ?", 1).Limit(2).Asc("id").FindAndCount(&rows)
				return fmt.Sprint(n, rows), err
			},
			func(ctx context.Context) (any, error) { return s.session(ctx).GroupBy("amount").Count(new(xormOrder)) },
			func(ctx context.Context) (any, error) { // SELECT DISTINCT count(DISTINCT `created_at`)
				return s.session(ctx).Distinct("created_at").Count(new(xormOrder))
			},
			func(ctx context.Context) (any, error) {
				return s.session(ctx).Where("amount > ?", 0).Sum(new(xormOrder), "amount")
			},
			func(ctx context.Context) (any, error) {
				var users []int64
				err := s.session(ctx).Table("orders").Distinct("user_id").Cols("user_id").Find(&users)
				slices.Sort(users)
				return users, err
			},
			func(ctx context.Context) (any, error) { return total(s.session(ctx).BufferSize(3)) },
			func(ctx context.Context) (any, error) {
				return s.session(ctx).Where("user_id = ?", 4).Incr("amount", 2).Update(new(xormOrder))
			},
		}
	})
}

// total has xorm read the orders in pages.
func total(session *xorm.Session) (sum int64, err error) {
	err = session.Asc("id").Iterate(new(xormOrder), func(_ int, row any) error {
		sum += row.(*xormOrder).Amount
		return nil
	})
	return sum, err
}

func TestLibrariesDoNotMakeTheTablesOfShards(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on, carrying)
		b := openBun(t, on.driver, shop.routed, nil).(viaBun)
		_, viaBun := b.in.NewCreateTable().Model((*bunOrder)(nil)).IfNotExists().Exec(t.Context())
		x := openXorm(t, on.driver, shop.routed, nil).(viaXorm)
		defer runtime.KeepAlive(x.engine) // whose finalizer closes the database
		refused := map[string]error{"bun": viaBun, "xorm": x.engine.Sync(new(xormOrder))}
		if on.driver == "mysql" { // ent wants SQLite's foreign keys switched on first
			refused["ent"] = openEnt(t, on.driver, shop.routed, nil).(viaEnt).Schema.Create(t.Context())
		}
		for who, err := range refused {
			if !errors.Is(err, sharding.ErrRawTable) {
				t.Errorf("%s: %v", who, err)
			}
		}
	})
}
