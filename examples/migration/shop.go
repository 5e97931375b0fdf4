// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/web"
	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// User is not migrated, because there are few users.
type User struct {
	ID    keygen.ID `gorm:"primaryKey"`
	Name  string
	Email string
}

// Order is migrated. The database numbers its rows until the switch, and a generator afterwards.
type Order struct {
	ID     keygen.ID `gorm:"primaryKey" keygen:"orders"`
	UserID keygen.ID
	Items  []Item
}

// Item is migrated, too. It has the user of its order, whose id is the sharding key of both.
type Item struct {
	ID        keygen.ID `gorm:"primaryKey" keygen:"items"`
	UserID    keygen.ID
	OrderID   keygen.ID
	ProductID int64
	Quantity  int64
}

// numberedTables maps each migrated table to the column that the database numbers.
var numberedTables = map[string]string{"orders": "id", "items": "id"}

const (
	users    = 100
	slotBits = 3
	// margin is the number of ids that the database may assign between the seed and the switch.
	margin = 1_000_000
	// perSegment is the number of ids that a process reserves at a time.
	perSegment = 1000
)

// shop is the program that runs before and after the switch.
type shop struct {
	*setup.Databases

	legacy *sql.DB      // has all tables when the program begins; on MySQL it is the pool of east
	source string       // the router's name of legacy
	shards sharding.DBs // east and west
	forIDs *sql.DB      // a pool of its own, because a pool whose connections are all in transactions cannot fetch a segment

	db     *gorm.DB
	router *sharding.Router
	store  *sqlstore.Store
	ids    keygen.Set
	seeds  map[string]int64 // the lowest id of the generator, by table
	users  int
}

func openShop(ctx context.Context, f setup.Flags, orders int) (s *shop, err error) {
	s = &shop{users: users, seeds: map[string]int64{}}
	if s.Databases, err = setup.Connect(f); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.shards, err = s.Shards(); err != nil {
		return s, err
	}
	if s.forIDs, err = s.Open("ids"); err != nil {
		return s, err
	}
	if s.source = "east"; s.Driver == "sqlite" {
		s.source = "legacy"
	}
	if s.legacy = s.shards[s.source]; s.legacy == nil {
		if s.legacy, err = s.Open(s.source); err != nil {
			return s, err
		}
	}
	if err := s.makeTables(ctx, orders); err != nil {
		return s, err
	}
	if err := s.number(ctx); err != nil {
		return s, err
	}
	if s.router, err = s.route(); err != nil {
		return s, err
	}
	if err := s.router.Load(ctx); err != nil { // reads which side serves now
		return s, err
	}
	return s, s.use()
}

// number starts generators above all ids that the database has assigned or may assign until the switch.
func (s *shop) number(ctx context.Context) (err error) {
	if err := schema.Apply(ctx, s.forIDs); err != nil {
		return err
	}
	if s.store, err = sqlstore.New(ctx, s.forIDs); err != nil {
		return err
	}
	s.ids.Named = map[string]keygen.Generator[int64]{}
	for table, column := range numberedTables {
		next, err := schema.NextID(ctx, s.legacy, table, column)
		if err != nil {
			return err
		}
		if s.seeds[table], err = schema.Seed(ctx, s.forIDs, table, next+margin, perSegment); err != nil {
			return err
		}
		generator, err := segment.New(ctx, segment.Config{Source: s.store.Tag(table)})
		if err != nil {
			return err
		}
		s.Undo(generator.Close)
		s.ids.Named[table] = generator
	}
	return nil
}

// tables places all rows of a user in one slot.
func tables() (all []sharding.Table, err error) {
	for _, name := range []string{"orders", "items"} { // parents first
		m, err := sharding.Spread([]string{"east", "west"}, 1<<slotBits, name+"_%d")
		if err != nil {
			return nil, err
		}
		all = append(all, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Low(slotBits), Map: m, Group: "shop"})
	}
	return all, nil
}

func (s *shop) route() (*sharding.Router, error) {
	all, err := tables()
	if err != nil {
		return nil, err
	}
	dbs := maps.Clone(s.shards)
	dbs[s.source] = s.legacy
	return sharding.New(dbs, sharding.Tables(all...), sharding.Broadcast("products"),
		sharding.Migration{Source: s.source, Tables: numberedTables, Patience: 30 * time.Second})
}

// job migrates the tables. In production a program of its own does this: shardid migrate.
func (s *shop) job() (*migrate.Job, error) {
	all, err := tables()
	if err != nil {
		return nil, err
	}
	cfg := migrate.Config{Source: s.legacy, Shards: s.shards, Ready: s.ready}
	for _, t := range all {
		cfg.Tables = append(cfg.Tables, migrate.Table{Table: t})
	}
	return migrate.New(cfg)
}

// ready refuses the switch if the database's own ids have reached the first id of the generators.
func (s *shop) ready(_ context.Context, highest map[string]int64) error {
	for table, id := range highest {
		if id >= s.seeds[table] {
			return fmt.Errorf("%s has the id %d, and its generator began at %d: seed it with a larger margin", table, id, s.seeds[table])
		}
	}
	return nil
}

func (s *shop) use() (err error) {
	dialector := gorm.Dialector(sqlite.Dialector{DriverName: "sqlite", Conn: s.legacy})
	if s.Driver == "mysql" {
		dialector = mysql.New(mysql.Config{Conn: s.legacy})
	}
	if s.db, err = gorm.Open(dialector, &gorm.Config{TranslateError: true, Logger: logger.Discard}); err != nil {
		return err
	}
	if err := s.db.Use(gormplugin.New(gormplugin.Config{Generators: s.ids, Router: s.router})); err != nil {
		return err
	}
	return gormplugin.Check(s.db, &Order{}, &Item{}) // finds what would fail at the first insert after the switch
}

// AddUser implements [web.Shop].
func (s *shop) AddUser(ctx context.Context, u *web.User) error {
	row := User{Name: u.Name, Email: u.Email}
	err := s.db.WithContext(ctx).Create(&row).Error
	if errors.Is(err, gorm.ErrDuplicatedKey) || err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed") {
		return web.ErrTaken
	}
	u.ID = row.ID
	return err
}

// UserByEmail implements [web.Shop].
func (s *shop) UserByEmail(ctx context.Context, email string) (web.User, error) {
	var row User
	err := missing(s.db.WithContext(ctx).First(&row, "email = ?", email).Error)
	return web.User(row), err
}

// AddOrder writes one transaction. It repeats a transaction that the switch has rolled back, with new structs,
// because those of the first attempt have ids of rows that do not exist.
func (s *shop) AddOrder(ctx context.Context, o *web.Order) error {
	for {
		row := Order{UserID: o.UserID}
		for _, i := range o.Items {
			row.Items = append(row.Items, Item{UserID: o.UserID, ProductID: i.ProductID, Quantity: i.Quantity})
		}
		err := s.db.WithContext(ctx).Create(&row).Error
		if !undone(err) || ctx.Err() != nil {
			o.ID = row.ID
			return err
		}
	}
}

// undone reports whether the transaction was rolled back and can be repeated: the tables were
// switched, or the server detected a deadlock.
func undone(err error) bool {
	var server *driver.MySQLError
	return errors.Is(err, sharding.ErrRouteMoved) || errors.As(err, &server) && server.Number == deadlock
}

const deadlock = 1213

// Order queries all shards for the order, because ids of AUTO_INCREMENT do not carry a slot, and one
// shard for its items.
func (s *shop) Order(ctx context.Context, id keygen.ID) (web.Order, error) {
	var row Order
	db := s.db.WithContext(ctx)
	if err := missing(db.First(&row, id).Error); err != nil {
		return web.Order{}, err
	}
	err := db.Order("id").Find(&row.Items, "user_id = ? AND order_id = ?", row.UserID, id).Error
	return row.order(), err
}

// OrdersOf asks one shard.
func (s *shop) OrdersOf(ctx context.Context, user keygen.ID) ([]web.Order, error) {
	var rows []Order
	err := s.db.WithContext(ctx).Preload("Items", "user_id = ?", user).Order("id").Find(&rows, "user_id = ?", user).Error
	list := make([]web.Order, len(rows))
	for i, row := range rows {
		list[i] = row.order()
	}
	return list, err
}

// BestSellers queries the old tables until the switch, and all shards afterwards.
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
