// SPDX-License-Identifier: Apache-2.0

// Sqlxshop is a shop on shards with sqlx: go run ./sqlxshop, or with two databases,
// go run ./sqlxshop -east DSN -west DSN.
package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

func main() { setup.Main(open) }

// user is a row of users_0, …, users_7.
type user struct {
	ID    keygen.ID `db:"id" keygen:""`
	Name  string    `db:"name"`
	Email string    `db:"email"`
}

// order is a row of orders_0, …, orders_7: the table's number is that of its user's table.
type order struct {
	ID     keygen.ID `db:"id" keygen:""`
	UserID keygen.ID `db:"user_id"`
}

// item is a row of items_0, …, items_7.
type item struct {
	ID        keygen.ID `db:"id" keygen:""`
	OrderID   keygen.ID `db:"order_id"`
	ProductID int64     `db:"product_id"`
	Quantity  int64     `db:"quantity"`
}

//go:embed migrations
var migrations embed.FS

type shop struct {
	db   *sqlx.DB // routes statements, which name logical tables
	hook *sqlxhook.Hook
}

func open(ctx context.Context, s *setup.Shop) (web.Shop, error) {
	if err := makeTables(ctx, s); err != nil {
		return nil, err
	}
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Default: s.IDs}, Router: s.Router})
	if err != nil {
		return nil, err
	}
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: s.Router, Home: s.Home}), s.Driver)
	ignore := map[string]string{"mysql": "INSERT IGNORE", "sqlite": "INSERT OR IGNORE"}[s.Driver]
	_, err = db.ExecContext(ctx, ignore+" INTO products (id, name) VALUES (1, 'apples'), (2, 'pears'), (3, 'plums')") // writes every copy
	return &shop{db, hook}, err
}

func makeTables(ctx context.Context, s *setup.Shop) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	runner, err := versions.New(ctx, versions.Config{Router: s.Router, Files: files})
	if err != nil {
		return err
	}
	if err := runner.Up(ctx, runner.Newest()); err != nil {
		return err
	}
	return lookups.Create(ctx, lookups.Config{Router: s.Router, Home: s.Home, Table: "users", Column: "email"})
}

func (s *shop) AddUser(ctx context.Context, u *web.User) error {
	row := user{Name: u.Name, Email: u.Email}
	_, err := s.hook.Insert(ctx, s.db, "users", &row)
	if err != nil && (strings.Contains(err.Error(), "1062") || strings.Contains(err.Error(), "UNIQUE")) {
		return web.ErrTaken
	}
	u.ID = row.ID
	return err
}

// UserByEmail reads the user's id from the lookup table, and the user from one shard.
func (s *shop) UserByEmail(ctx context.Context, email string) (web.User, error) {
	var row user
	err := missing(s.db.GetContext(ctx, &row, "SELECT id, name, email FROM users WHERE email = ?", email))
	return web.User{ID: row.ID, Name: row.Name, Email: row.Email}, err
}

// AddOrder writes to one shard in one transaction, because the order's id carries the slot of the
// user, and order_id leads the items to the same shard.
func (s *shop) AddOrder(ctx context.Context, o *web.Order) (err error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	row := order{UserID: o.UserID}
	if _, err := s.hook.Insert(ctx, tx, "orders", &row); err != nil {
		return err
	}
	items := make([]item, len(o.Items))
	for i, of := range o.Items {
		items[i] = item{OrderID: row.ID, ProductID: of.ProductID, Quantity: of.Quantity}
	}
	if len(items) > 0 {
		if _, err := s.hook.Insert(ctx, tx, "items", items); err != nil {
			return err
		}
	}
	o.ID = row.ID
	return tx.Commit()
}

// Order finds the shard by the id alone.
func (s *shop) Order(ctx context.Context, id keygen.ID) (web.Order, error) {
	var row order
	if err := missing(s.db.GetContext(ctx, &row, "SELECT id, user_id FROM orders WHERE id = ?", id)); err != nil {
		return web.Order{}, err
	}
	list, err := s.withItems(ctx, []order{row})
	return list[0], err
}

func (s *shop) OrdersOf(ctx context.Context, user keygen.ID) ([]web.Order, error) {
	var rows []order
	if err := s.db.SelectContext(ctx, &rows, "SELECT id, user_id FROM orders WHERE user_id = ? ORDER BY id", user); err != nil {
		return nil, err
	}
	return s.withItems(ctx, rows)
}

// withItems reads the items of orders with one query, which goes to the shards of the orders.
func (s *shop) withItems(ctx context.Context, rows []order) ([]web.Order, error) {
	list := make([]web.Order, len(rows))
	if len(rows) == 0 {
		return list, nil
	}
	at, ids := map[keygen.ID]*web.Order{}, make([]keygen.ID, len(rows))
	for i, row := range rows {
		list[i] = web.Order{ID: row.ID, UserID: row.UserID}
		at[row.ID], ids[i] = &list[i], row.ID
	}
	query, args, err := sqlx.In("SELECT id, order_id, product_id, quantity FROM items WHERE order_id IN (?) ORDER BY id", ids)
	if err != nil {
		return list, err
	}
	var items []item
	err = s.db.SelectContext(ctx, &items, query, args...)
	for _, i := range items {
		o := at[i.OrderID]
		o.Items = append(o.Items, web.Item{ProductID: i.ProductID, Quantity: i.Quantity})
	}
	return list, err
}

// BestSellers queries all shards and adds up their results. Each shard joins its items with its
// database's copy of the products.
func (s *shop) BestSellers(ctx context.Context, limit int) (list []web.Sold, err error) {
	err = s.db.SelectContext(ctx, &list, `SELECT products.name AS product, SUM(items.quantity) AS sold
		FROM items JOIN products ON products.id = items.product_id
		GROUP BY products.name ORDER BY sold DESC, products.name LIMIT ?`, limit)
	return list, err
}

func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return web.ErrMissing
	}
	return err
}
