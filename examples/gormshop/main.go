// SPDX-License-Identifier: Apache-2.0

// Gormshop is a shop on shards with GORM: go run ./gormshop, or with two databases,
// go run ./gormshop -east DSN -west DSN.
package main

import (
	"context"
	"errors"
	"strings"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

func main() { setup.Main(open) }

// User is a row of users_0, …, users_7.
type User struct {
	gormplugin.Base

	Name  string
	Email string `gorm:"size:200;uniqueIndex"` // unique on each shard; the lookup table makes it unique over all shards
}

// Order is a row of orders_0, …, orders_7: the table's number is that of its user's table.
type Order struct {
	gormplugin.Base

	UserID keygen.ID `gorm:"index"`
	Items  []Item
}

// Item is a row of items_0, …, items_7.
type Item struct {
	gormplugin.Base

	OrderID   keygen.ID `gorm:"index"`
	ProductID int64
	Quantity  int64
}

// Product has a copy in each database.
type Product struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Name string
}

type shop struct{ db *gorm.DB }

func open(ctx context.Context, s *setup.Shop) (web.Shop, error) {
	dialector := gorm.Dialector(sqlite.Dialector{DriverName: "sqlite", Conn: s.Home})
	if s.Driver == "mysql" {
		dialector = mysql.New(mysql.Config{Conn: s.Home})
	}
	db, err := gorm.Open(dialector, &gorm.Config{TranslateError: true, Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: s.IDs}, Router: s.Router})); err != nil {
		return nil, err
	}
	if err := gormplugin.Migrate(ctx, db, &User{}, &Order{}, &Item{}, &Product{}); err != nil {
		return nil, err
	}
	if err := gormplugin.Check(db, &User{}, &Order{}, &Item{}); err != nil { // finds what would fail at the first insert
		return nil, err
	}
	products := []Product{{1, "apples"}, {2, "pears"}, {3, "plums"}}
	err = db.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&products).Error // writes every copy
	return &shop{db}, err
}

func (s *shop) AddUser(ctx context.Context, u *web.User) error {
	row := User{Name: u.Name, Email: u.Email}
	err := s.db.WithContext(ctx).Create(&row).Error
	// GORM translates no error of the SQLite driver that needs no C compiler.
	if errors.Is(err, gorm.ErrDuplicatedKey) || err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed") {
		return web.ErrTaken
	}
	u.ID = row.ID
	return err
}

// UserByEmail reads the user's id from the lookup table, and the user from one shard.
func (s *shop) UserByEmail(ctx context.Context, email string) (web.User, error) {
	var row User
	err := missing(s.db.WithContext(ctx).First(&row, "email = ?", email).Error)
	return web.User{ID: row.ID, Name: row.Name, Email: row.Email}, err
}

// AddOrder writes to one shard in one transaction, because the order's id carries the slot of the
// user, and the items' ids carry the slot of the order.
func (s *shop) AddOrder(ctx context.Context, o *web.Order) error {
	row := Order{UserID: o.UserID}
	for _, i := range o.Items {
		row.Items = append(row.Items, Item{ProductID: i.ProductID, Quantity: i.Quantity})
	}
	err := s.db.WithContext(ctx).Create(&row).Error
	o.ID = row.ID
	return err
}

// Order finds the shard by the id alone.
func (s *shop) Order(ctx context.Context, id keygen.ID) (web.Order, error) {
	var row Order
	err := missing(s.db.WithContext(ctx).Preload("Items").First(&row, id).Error)
	return row.order(), err
}

func (s *shop) OrdersOf(ctx context.Context, user keygen.ID) ([]web.Order, error) {
	var rows []Order
	err := s.db.WithContext(ctx).Preload("Items").Order("id").Find(&rows, "user_id = ?", user).Error
	list := make([]web.Order, len(rows))
	for i, row := range rows {
		list[i] = row.order()
	}
	return list, err
}

// BestSellers queries all shards and adds up their results. Each shard joins its items with its
// database's copy of the products.
func (s *shop) BestSellers(ctx context.Context, limit int) (list []web.Sold, err error) {
	err = s.db.WithContext(ctx).Model(&Item{}).
		Select("products.name AS product, SUM(items.quantity) AS sold").
		Joins("JOIN products ON products.id = items.product_id").
		Group("products.name").Order("sold DESC, products.name").Limit(limit).Scan(&list).Error
	return list, err
}

func (o Order) order() web.Order {
	as := web.Order{ID: o.ID, UserID: o.UserID}
	for _, i := range o.Items {
		as.Items = append(as.Items, web.Item{ProductID: i.ProductID, Quantity: i.Quantity})
	}
	return as
}

func missing(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return web.ErrMissing
	}
	return err
}
