// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/driver/mysql"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// namedOrder is a row of orders, which are called so in each database.
type namedOrder struct {
	ID     int64  `keygen:""`
	UserID int64  `gorm:"index:by_user"`
	Note   string `gorm:"size:20"`
}

func (namedOrder) TableName() string { return "orders" }

func TestGORMMakesAndUsesTablesOfOneName(t *testing.T) {
	onEachNamed(t, func(t *testing.T, open namedDatabase) {
		dbs := sharding.DBs{"a": open(t, "gorm_a"), "b": open(t, "gorm_b")}
		router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: layouts(t)["named"]})
		if err != nil {
			t.Fatal(err)
		}
		db := openNamed(t, dbs["a"])
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := gormplugin.Migrate(t.Context(), db, &namedOrder{}); err != nil {
				t.Fatal(err)
			}
		}
		for user := int64(1); user <= 4; user++ {
			if err := db.Create(&[]namedOrder{{UserID: user}, {UserID: user}}).Error; err != nil {
				t.Fatal(err)
			}
		}
		var found []namedOrder
		if err := db.Where("user_id IN ?", []int64{1, 2}).Order("id").Find(&found).Error; err != nil || fmt.Sprint(found) != "[{1 1 } {2 1 } {3 2 } {4 2 }]" {
			t.Error(found, err)
		}
		found[0].Note = "saved"
		if err := db.Save(&found[0]).Error; err != nil {
			t.Error(err)
		}
		if err := db.Where("user_id = ?", 2).Delete(&namedOrder{}).Error; err != nil {
			t.Error(err)
		}
		for name, want := range map[string]string{"a": "2 0", "b": "4 1"} {
			var all, saved int
			if err := dbs[name].QueryRow("SELECT COUNT(*), COALESCE(SUM(note = 'saved'), 0) FROM orders").Scan(&all, &saved); err != nil || fmt.Sprint(all, saved) != want {
				t.Errorf("%s: %d rows, %d saved, %v, want %s", name, all, saved, err, want)
			}
		}
	})
}

// openNamed opens a database of MySQL, MariaDB or SQLite with GORM.
func openNamed(t *testing.T, pool *sql.DB) *gorm.DB {
	t.Helper()
	dialector := mysql.New(mysql.Config{Conn: pool})
	if pool.QueryRow("SELECT sqlite_version()").Scan(new(string)) == nil {
		dialector = gormsqlite.Dialector{Conn: pool}
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// From the switch on the plugin makes the ids that the source makes now, and adds the
// sharding keys of models, so a preview does not mind that both are missing.
func TestAPreviewMindsWhatGORMWillNotComplete(t *testing.T) {
	onEachNamed(t, func(t *testing.T, open namedDatabase) {
		preview := new(sharding.Preview)
		source := open(t, "foreseen")
		dbs := sharding.DBs{"source": source, "a": open(t, "foreseen_a"), "b": open(t, "foreseen_b")}
		router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: layouts(t)["named"]},
			sharding.Migration{Source: "source", Tables: map[string]string{"orders": "id"}, Preview: preview})
		if err != nil {
			t.Fatal(err)
		}
		db := openNamed(t, source)
		if err := db.AutoMigrate(&namedOrder{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1000, 1)}, Router: router})); err != nil {
			t.Fatal(err)
		}
		order := namedOrder{UserID: 3}
		for i, send := range []func() *gorm.DB{
			func() *gorm.DB { return db.Create(&order) },
			func() *gorm.DB { order.Note = "saved"; return db.Save(&order) },
			func() *gorm.DB { return db.Model(&order).Update("note", "x") },
			func() *gorm.DB { return db.First(&order) },
			func() *gorm.DB { return db.Delete(&order) },
		} {
			if result := send(); result.Error != nil || result.RowsAffected != 1 {
				t.Errorf("statement %d: %d rows, %v", i, result.RowsAffected, result.Error)
			}
		}
		if found := preview.Statements(); len(found) > 0 {
			t.Errorf("%+v", found)
		}
		if err := db.Model(&namedOrder{}).Where("note = ?", "x").Update("note", "y").Error; err != nil {
			t.Fatal(err)
		}
		if found := preview.Statements(); len(found) != 1 || !errors.Is(found[0].Err, sharding.ErrMissingKey) {
			t.Errorf("%+v", found)
		}
		for _, rows := range [][]namedOrder{{{UserID: 1}, {UserID: 3}}, {{UserID: 1}, {ID: 500, UserID: 2}}} {
			if err := db.Create(&rows).Error; err != nil {
				t.Fatal(err)
			}
		}
		if found := preview.Statements(); len(found) != 2 || !errors.Is(errors.Join(found[0].Err, found[1].Err), sharding.ErrCrossDatabase) {
			t.Errorf("a batch of users in two databases: %+v", found)
		}
	})
}
