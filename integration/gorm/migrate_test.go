// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"slices"
	"testing"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
)

// gormStock has two checks, and names one of them.
type gormStock struct {
	ID     int64  `gorm:"primaryKey;autoIncrement:false"`
	Pieces int    `gorm:"check:pieces_counted,pieces >= 0"`
	Name   string `gorm:"size:20;check:name <> '' AND name NOT IN ('a','b')"`
}

// TestTablesOfOneDatabaseHaveTheirOwnNamedChecks creates the tables of two shards in one database beside that of a third,
// whose check has the model's name. MySQL allows a name of a check once in a database.
func TestTablesOfOneDatabaseHaveTheirOwnNamedChecks(t *testing.T) {
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t), "PostgreSQL": server.SharePostgres(t)} {
		t.Run(name, func(t *testing.T) {
			pool := s.Open(t, "stocks")
			database.Exec(t, pool, "CREATE TABLE gorm_stocks_0 (id BIGINT PRIMARY KEY, pieces BIGINT, name VARCHAR(20), CONSTRAINT pieces_counted CHECK (pieces >= 0))")
			m, err := sharding.Spread([]string{"only"}, 3, "gorm_stocks_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"only": pool}, sharding.Table{Name: "gorm_stocks", Key: "id", Rule: sharding.Mod(3), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			db := database.OpenGORM(t, pool, false)
			if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := gormplugin.Migrate(t.Context(), db, &gormStock{}, &gormStock{}); err != nil {
					t.Fatal(err)
				}
			}
			for id := range int64(3) {
				id += 6
				bad := db.Create(&[]gormStock{{ID: id, Name: "a"}, {ID: id, Pieces: -1, Name: "c"}}[id%2]).Error
				if err := db.Create(&gormStock{ID: id, Name: "c"}).Error; err != nil || bad == nil {
					t.Errorf("%d: %v, and of a row that violates a check: %v", id, err, bad)
				}
			}
			checks := database.Texts(t, pool, "SELECT constraint_name FROM information_schema.table_constraints WHERE table_name LIKE 'gorm_stocks%' AND constraint_type = 'CHECK' AND constraint_name LIKE '%counted%'")
			if slices.Sort(checks); len(checks) != 3 {
				t.Errorf("checks %v", checks)
			}
		})
	}
}

// TestTableOptionsHoldForTheTablesOfShards gives the tables of shards and of a broadcast table a comment.
func TestTableOptionsHoldForTheTablesOfShards(t *testing.T) {
	pool := server.ShareMariaDB(t).Open(t, "optioned")
	m, err := sharding.Spread([]string{"only"}, 2, "gorm_stocks_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"only": pool}, sharding.Table{Name: "gorm_stocks", Key: "id", Rule: sharding.Mod(2), Map: m}, sharding.Broadcast("readers"))
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenGORM(t, pool, false)
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db.Set("gorm:table_options", "COMMENT='of the shop'"), &gormStock{}, &gormReader{}); err != nil {
		t.Fatal(err)
	}
	tables := database.Texts(t, pool, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_comment = 'of the shop' ORDER BY table_name")
	if want := []string{"gorm_stocks_0", "gorm_stocks_1", "readers"}; !slices.Equal(tables, want) {
		t.Errorf("%q have the comment, want %q", tables, want)
	}
}
