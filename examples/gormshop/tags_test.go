// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/examples/internal/setup"
	"github.com/shardid/shardid/examples/internal/shoptest"
	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

func TestOrdersHaveTagsByAJoinTable(t *testing.T) {
	shoptest.OnEveryDatabase(t, func(t *testing.T, f setup.Flags) {
		if err := tagOrders(t, f); err != nil {
			t.Error(err)
		}
	})
}

func tagOrders(t *testing.T, f setup.Flags) error {
	t.Helper()
	type Tag struct {
		ID   int64 `gorm:"primaryKey;autoIncrement:false"`
		Name string
	}

	type Order struct {
		ID     int64 `gorm:"primaryKey;autoIncrement:false"`
		UserID int64
		Tags   []Tag `gorm:"many2many:order_tags"`
	}

	ctx := t.Context()
	opened, err := setup.Connect(f)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = opened.Close() })
	dbs, err := opened.Shards()
	if err != nil {
		return err
	}
	table := func(name, key string) sharding.Table {
		m, err := sharding.Spread([]string{"east", "west"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: m, Group: "shop"}
	}
	orders := table("orders", "user_id")
	orders.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(2)}}
	router, err := sharding.New(dbs, orders, table("order_tags", "order_id"), sharding.Broadcast("tags"))
	if err != nil {
		return err
	}
	dialector := gorm.Dialector(sqlite.Dialector{DriverName: "sqlite", Conn: dbs["east"]})
	if opened.Driver == "mysql" {
		dialector = mysql.New(mysql.Config{Conn: dbs["east"]})
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		return err
	}
	if err := gormplugin.Migrate(ctx, db, &Order{}, &Tag{}); err != nil { // creates order_tags, too
		return err
	}
	tags := []Tag{{ID: 1, Name: "gift"}, {ID: 2, Name: "urgent"}}
	if err := db.Create(&tags).Error; err != nil { // in every database, so not in the transaction of an order
		return err
	}
	order := Order{ID: 7, UserID: 3, Tags: tags[:1]}
	if err := db.Omit("Tags.*").Create(&order).Error; err != nil { // the order and its row of order_tags
		return err
	}
	if err := db.Model(&order).Omit("Tags.*").Association("Tags").Append(&tags[1]); err != nil {
		return err
	}

	var found Order
	if err := db.Preload("Tags").First(&found, 7).Error; err != nil || len(found.Tags) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	return nil
}
