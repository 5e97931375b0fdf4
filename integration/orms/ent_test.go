// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/shardid/shardid/integration/orms/entorders"
	"github.com/shardid/shardid/integration/orms/entorders/hook"
	"github.com/shardid/shardid/integration/orms/entorders/item"
	entorder "github.com/shardid/shardid/integration/orms/entorders/order"
	"github.com/shardid/shardid/integration/server"
)

func TestEntWorksOnShardsAsOnOneTable(t *testing.T) {
	worksAsOnOneTable(t, openEnt)
	t.Run("PostgreSQL", func(t *testing.T) { worksAsOnOneTableOf(t, onPostgres(server.SharePostgres(t)), openEnt) })
}

func TestEntGetsTheErrorsOfRefusedStatements(t *testing.T) { refusesWhatNoShardAnswers(t, openEnt) }

// viaEnt uses the client that ent generated. A hook fills the ids.
type viaEnt struct {
	begin func(context.Context) (*entorders.Tx, error)
	*entorders.Client
}

func openEnt(t *testing.T, driver string, db *sql.DB, next func(ctx context.Context, user int64) (int64, error)) store {
	t.Helper()
	client := entorders.NewClient(entorders.Driver(entsql.OpenDB(entDialect(driver), db)))
	client.Order.Use(hook.On(fillOrderID(next), entorders.OpCreate))
	return viaEnt{client.Tx, client}
}

func entDialect(driver string) string {
	switch driver {
	case "sqlite":
		return dialect.SQLite
	case "pgx":
		return dialect.Postgres
	}
	return dialect.MySQL
}

// fillOrderID gives each new order its id.
func fillOrderID(nextID func(ctx context.Context, user int64) (int64, error)) entorders.Hook {
	return func(next entorders.Mutator) entorders.Mutator {
		return hook.OrderFunc(func(ctx context.Context, m *entorders.OrderMutation) (entorders.Value, error) {
			user, _ := m.UserID()
			id, err := nextID(ctx, user)
			if err != nil {
				return nil, err
			}
			m.SetID(id)
			return next.Mutate(ctx, m)
		})
	}
}

func fromEnt(row *entorders.Order) order {
	return order{row.ID, row.UserID, row.Note, row.Amount, row.PaidAt, row.CreatedAt}
}

func allFromEnt(rows []*entorders.Order, err error) ([]order, error) {
	var orders []order
	for _, row := range rows {
		orders = append(orders, fromEnt(row))
	}
	return orders, err
}

func (s viaEnt) byID(ctx context.Context, id int64) (order, error) {
	row, err := s.Order.Get(ctx, id)
	if entorders.IsNotFound(err) {
		return order{}, errNone
	}
	if err != nil {
		return order{}, err
	}
	return fromEnt(row), nil
}

// ent prepares nothing: this is its plain read.
func (s viaEnt) ofUser(ctx context.Context, users ...int64) ([][]order, error) {
	var all [][]order
	for _, user := range users {
		orders, err := s.ofUsers(ctx, user)
		if err != nil {
			return nil, err
		}
		all = append(all, orders)
	}
	return all, nil
}

func (s viaEnt) ofUsers(ctx context.Context, users ...int64) ([]order, error) {
	return allFromEnt(s.Order.Query().Where(entorder.UserIDIn(users...)).Order(entorder.ByID()).All(ctx))
}

func (s viaEnt) latest(ctx context.Context, limit, offset int) ([]order, error) {
	return allFromEnt(s.Order.Query().Limit(limit).Offset(offset).
		Order(entorder.ByCreatedAt(entsql.OrderDesc()), entorder.ByID(entsql.OrderDesc())).All(ctx))
}

func (s viaEnt) since(ctx context.Context, at time.Time) ([]order, error) {
	return allFromEnt(s.Order.Query().Where(entorder.CreatedAtGTE(at)).Order(entorder.ByID()).All(ctx))
}

func (s viaEnt) unpaid(ctx context.Context) ([]order, error) {
	return allFromEnt(s.Order.Query().Where(entorder.PaidAtIsNil(), entorder.NoteIsNil()).Order(entorder.ByID()).All(ctx))
}

func (s viaEnt) count(ctx context.Context, least int64) (int64, error) {
	n, err := s.Order.Query().Where(entorder.AmountGTE(least)).Count(ctx)
	return int64(n), err
}

// skus reads along edges twice: in a subquery, and in the query that ent sends after
// that of the orders.
func (s viaEnt) skus(ctx context.Context, user int64) ([]string, error) {
	skus, err := s.Order.Query().Where(entorder.UserID(user)).QueryItems().Order(item.BySku()).Select(item.FieldSku).Strings(ctx)
	if err != nil {
		return nil, err
	}
	orders, err := s.Order.Query().Where(entorder.UserID(user)).WithItems().All(ctx)
	if err != nil {
		return nil, err
	}
	if n := len(orders[0].Edges.Items); n != len(skus) {
		return nil, fmt.Errorf("%d items beside their order, want %d", n, len(skus))
	}
	return skus, nil
}

func (s viaEnt) create(ctx context.Context, orders ...order) error {
	return s.Order.MapCreateBulk(orders, func(c *entorders.OrderCreate, i int) {
		o := orders[i]
		c.SetUserID(o.UserID).SetNillableNote(o.Note).SetAmount(o.Amount).SetNillablePaidAt(o.PaidAt).SetCreatedAt(o.CreatedAt)
	}).Exec(ctx)
}

func (s viaEnt) createItem(ctx context.Context, id, order int64, sku string) error {
	return s.Item.Create().SetID(id).SetOrderID(order).SetSku(sku).Exec(ctx)
}

func (s viaEnt) pay(ctx context.Context, user, id int64, at time.Time) (int64, error) {
	n, err := s.Order.Update().Where(entorder.UserID(user), entorder.ID(id)).SetPaidAt(at).SetNote("paid").Save(ctx)
	return int64(n), err
}

// payByID is a transaction of ent's own: it updates the row and reads it.
func (s viaEnt) payByID(ctx context.Context, id int64, at time.Time) error {
	return s.Order.UpdateOneID(id).SetPaidAt(at).SetNote("paid").Exec(ctx)
}

func (s viaEnt) remove(ctx context.Context, user, id int64) (int64, error) {
	n, err := s.Order.Delete().Where(entorder.UserID(user), entorder.ID(id)).Exec(ctx)
	return int64(n), err
}

func (s viaEnt) transaction(ctx context.Context, do func(store) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := do(viaEnt{nil, tx.Client()}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
