// SPDX-License-Identifier: Apache-2.0

package casbin

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/casbin/casbin/v3"
	"github.com/casbin/casbin/v3/model"
	gormadapter "github.com/casbin/gorm-adapter/v3"
	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	db, err := gorm.Open(sqlite.Open(filepath.Join(dir, "shop.db")))
	check(err)
	shop, err := db.DB()
	check(err)
	orders, err := sharding.Spread([]string{"shop"}, 4, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"shop": shop}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	check(err)
	ids := keygen.Counting(1, 1) // of one process that ends; a program takes those of docs/which-generator.md
	rules, err := model.NewModelFromString(rbac)
	check(err)

	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})))
	adapter, err := gormadapter.NewAdapterByDB(db) // casbin_rule is at home
	check(err)
	enforcer, err := casbin.NewEnforcer(rules, adapter)
	check(err)
	_, err = enforcer.AddPolicy("clerk", "orders", "read")
	check(err)
	fmt.Println(enforcer.Enforce("clerk", "orders", "read"))

	check(shop.Close())
	check(os.RemoveAll(dir))
	// Output: true <nil>
}
