// SPDX-License-Identifier: Apache-2.0

// Minimal stores orders in eight tables of two databases with GORM. It needs no other file: paste it
// into an empty module, and run go mod tidy and go run .
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// Order is a row of orders_0, …, orders_7.
type Order struct {
	ID     keygen.ID `keygen:""` // its last bits are the user's slot, so the id alone finds the shard
	UserID int64
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	// With servers, east and west are databases of two servers, and ids is a second pool of one of them.
	pools := map[string]*sql.DB{}
	for _, name := range []string{"east", "west", "ids"} {
		pool, err := sql.Open("sqlite", name+".db")
		if err != nil {
			return err
		}
		defer func() { _ = pool.Close() }()
		pools[name] = pool
	}
	ids, err := generator(ctx, pools["ids"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	router, err := route(sharding.DBs{"east": pools["east"], "west": pools["west"]})
	if err != nil {
		return err
	}
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: pools["east"]}, &gorm.Config{})
	if err != nil {
		return err
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})); err != nil {
		return err
	}
	if err := gormplugin.Migrate(ctx, db, &Order{}); err != nil {
		return err
	}
	if err := gormplugin.Check(db, &Order{}); err != nil { // finds what would fail at the first insert
		return err
	}
	return use(db.WithContext(ctx))
}

// generator leases a worker id, which no other process has, and makes ids with it.
func generator(ctx context.Context, db *sql.DB) (*snowflake.Generator, error) {
	if err := schema.Apply(ctx, db); err != nil {
		return nil, err
	}
	store, err := sqlstore.New(ctx, db)
	if err != nil {
		return nil, err
	}
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "shop"})
	if err != nil {
		return nil, err
	}
	return snowflake.New(ctx, snowflake.Config{Worker: worker, Layout: keygen.Twitter().WithBucket(3)})
}

// route says where orders lie: by the last three bits of their user, and of their own ids.
func route(dbs sharding.DBs) (*sharding.Router, error) {
	tables, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%d")
	if err != nil {
		return nil, err
	}
	return sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: tables,
		Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(3)}}})
}

func use(db *gorm.DB) error {
	for _, user := range []int64{10, 13} { // a batch for both databases would need sharding.Atomic
		order := Order{UserID: user}
		if err := db.Create(&order).Error; err != nil {
			return err
		}
		var found Order
		if err := db.First(&found, order.ID).Error; err != nil { // reads one table
			return err
		}
		log.Printf("user %d has the order %d in orders_%d", found.UserID, found.ID, found.ID%8)
	}
	var total int64
	err := db.Model(&Order{}).Count(&total).Error // asks all shards
	log.Printf("all shards have %d orders", total)
	return err
}
