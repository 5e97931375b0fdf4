// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"slices"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

type household struct {
	ID   int64 `keygen:""`
	Note string
	Kids []kid `gorm:"foreignKey:ParentID"`
}

type kid struct {
	ID       int64 `keygen:""`
	ParentID int64
	Name     string `gorm:"size:40"`
}

// Save upserts all children in one statement, and without RETURNING the server
// does not say which of them were there.
func TestANewChildBesideOldOnesKeepsItsIDOnItsShard(t *testing.T) {
	database.OnEachMySQL(t, func(t *testing.T, server database.Server) {
		home := server.Open(t, "home")
		dbs := sharding.DBs{"a": server.Open(t, "a"), "b": server.Open(t, "b")}
		var tables []sharding.Option
		for name, key := range map[string]string{"households": "id", "kids": "parent_id"} {
			m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
			if err != nil {
				t.Fatal(err)
			}
			tables = append(tables, sharding.Table{Name: name, Key: key, Rule: sharding.Mod(4), Map: m, Group: "households"})
		}
		router, err := sharding.New(dbs, tables...)
		if err != nil {
			t.Fatal(err)
		}
		db, err := gorm.Open(mysql.New(mysql.Config{Conn: home, DisableWithReturning: true}), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})); err != nil {
			t.Fatal(err)
		}
		if err := gormplugin.Migrate(t.Context(), db, &household{}, &kid{}); err != nil {
			t.Fatal(err)
		}
		parent := household{Note: "at first", Kids: []kid{{Name: "first"}}}
		if err := db.Create(&parent).Error; err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"second", "third"} {
			var found household
			if err := db.Preload("Kids").First(&found, parent.ID).Error; err != nil {
				t.Fatal(err)
			}
			found.Kids = slices.Insert(found.Kids, 1, kid{Name: name})
			for range 2 { // the second one knows the new child
				found.Note += "!"
				if err := db.Save(&found).Error; err != nil {
					t.Fatal(err)
				}
			}
		}
		var kids []kid
		if err := db.Order("id").Find(&kids, "parent_id = ?", parent.ID).Error; err != nil {
			t.Fatal(err)
		}
		if len(kids) != 3 || kids[1].Name != "second" || kids[2].Name != "third" {
			t.Errorf("the children are %v", kids)
		}
	})
}
