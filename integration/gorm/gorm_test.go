// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

type gormOrder struct {
	ID    int64 `keygen:""`
	Note  string
	Items []gormItem `gorm:"foreignKey:OrderID"`
}

type gormItem struct {
	ID      int64 `keygen:"item"`
	OrderID int64
	SKU     string
}

func (gormOrder) TableName() string { return "orders" }
func (gormItem) TableName() string  { return "items" }

const (
	gormOrders = "CREATE TABLE %s (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40)) ENGINE=InnoDB"
	gormItems  = "CREATE TABLE %s (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id BIGINT, sku VARCHAR(40) UNIQUE) ENGINE=InnoDB"
)

func gormSet() keygen.Set {
	return keygen.Set{
		Default: keygen.Counting(1000, 7),
		Named:   map[string]keygen.Generator[int64]{"item": keygen.Counting(90000, 1)},
	}
}

// bothPaths runs a test as on MariaDB and as on MySQL.
func bothPaths(t *testing.T, test func(t *testing.T, lastInsertID bool)) {
	t.Run("RETURNING", func(t *testing.T) { test(t, false) })
	t.Run("LastInsertId", func(t *testing.T) { test(t, true) })
}

func TestGormIdsInStructsAreThoseInTheTableOnMariaDB(t *testing.T) {
	m := server.RunMariaDB(t, "--auto-increment-increment=3")
	bothPaths(t, func(t *testing.T, lastInsertID bool) {
		conn := m.Open(t, fmt.Sprintf("fill_%t", lastInsertID))
		database.Exec(t, conn, fmt.Sprintf(gormOrders, "orders"))
		database.Exec(t, conn, fmt.Sprintf(gormItems, "items"))
		db := database.OpenGORM(t, conn, lastInsertID)
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: gormSet()})); err != nil {
			t.Fatal(err)
		}
		one := gormOrder{Note: "one", Items: []gormItem{{SKU: "a"}, {SKU: "b"}}}
		slice := []gormOrder{{Note: "s0"}, {ID: 5, Note: "s1"}, {Note: "s2"}}
		batch := make([]*gormOrder, 25)
		for i := range batch {
			batch[i] = &gormOrder{Note: fmt.Sprint("b", i)}
		}
		row := map[string]any{"note": "map"}
		err := errors.Join(db.Create(&one).Error, db.Create(&slice).Error, db.CreateInBatches(batch, 10).Error,
			db.Model(&gormOrder{}).Create(row).Error)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"one": one.ID, "map": row["id"].(int64)}
		for _, o := range slice {
			want[o.Note] = o.ID
		}
		for _, o := range batch {
			want[o.Note] = o.ID
		}
		if want["one"] != 1000 || want["s1"] != 5 || want["s2"] != 1014 || want["map"] != 1000+7*28 {
			t.Errorf("ids %v", want)
		}
		var stored []gormOrder
		if err := db.Preload("Items").Find(&stored).Error; err != nil || len(stored) != len(want) {
			t.Fatalf("%d rows, %v", len(stored), err)
		}
		for _, o := range stored {
			if want[o.Note] != o.ID {
				t.Errorf("%s: %d in the value, %d in the table", o.Note, want[o.Note], o.ID)
			}
		}
		var items []gormItem
		if err := db.Order("id").Find(&items).Error; err != nil || fmt.Sprint(items) != fmt.Sprint(one.Items) || one.Items[1].ID != 90001 {
			t.Errorf("stored %v, in the value %v, %v", items, one.Items, err)
		}
	})
}

func TestGormTakesAnIdBackWhenMariaDBRefusesTheRow(t *testing.T) {
	conn := server.RunMariaDB(t).Open(t, "shop")
	database.Exec(t, conn, fmt.Sprintf(gormItems, "items"))
	db := database.OpenGORM(t, conn, false)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: gormSet()})); err != nil {
		t.Fatal(err)
	}
	item, again := gormItem{SKU: "a"}, gormItem{SKU: "a"}
	if err := db.Create(&item).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&again).Error; err == nil || again.ID != 0 {
		t.Errorf("%v, id %d", err, again.ID)
	}
	if err := db.First(&again, "sku = ?", "a").Error; err != nil || again.ID != item.ID {
		t.Errorf("%v, id %d", err, again.ID)
	}
}

// gormShards has its home and the shard east on one server, west on another,
// and the old orders table still at home.
func gormShards(t *testing.T, first, second *server.MariaDB, lastInsertID bool) (*gorm.DB, *sharding.Router) {
	t.Helper()
	suffix := fmt.Sprintf("_%t", lastInsertID)
	home := first.Open(t, "home"+suffix)
	database.Exec(t, home, fmt.Sprintf(gormOrders, "orders"))
	database.Exec(t, home, "INSERT INTO orders (id, note) VALUES (1, 'stale'), (2, 'stale')")
	dbs := sharding.DBs{"east": first.Open(t, "east"+suffix), "west": second.Open(t, "west"+suffix)}
	var tables []sharding.Table
	for name, t2 := range map[string]struct{ key, ddl string }{"orders": {"id", gormOrders}, "items": {"order_id", gormItems}} {
		m, err := sharding.Spread([]string{"east", "west"}, 4, name+"_%02d")
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range m.Targets() {
			database.Exec(t, dbs[target.DB], fmt.Sprintf(t2.ddl, target.Table))
		}
		tables = append(tables, sharding.Table{Name: name, Key: t2.key, Rule: sharding.Low(10), Map: m})
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenGORM(t, home, lastInsertID)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: gormSet(), Router: router})); err != nil {
		t.Fatal(err)
	}
	return db, router
}

func TestGormRoutesOverTwoMariaDBServers(t *testing.T) {
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	bothPaths(t, func(t *testing.T, lastInsertID bool) {
		db, router := gormShards(t, first, second, lastInsertID)
		var ids []int64
		for i := range 40 {
			o := gormOrder{Note: fmt.Sprint("n", i), Items: []gormItem{{SKU: fmt.Sprint("a", i)}, {SKU: fmt.Sprint("b", i)}}}
			if err := db.Create(&o).Error; err != nil {
				t.Fatal(err)
			}
			ids = append(ids, o.ID)
		}
		rows := 0
		for _, target := range router.Targets("orders") {
			var n, wrong int
			err := router.DB(target.DB).QueryRow("SELECT COUNT(*), COALESCE(SUM(id % 4 <> ?), 0) FROM "+target.Table, target.Table[len(target.Table)-1:]).Scan(&n, &wrong)
			if err != nil || n == 0 || wrong != 0 {
				t.Errorf("%s: %d rows, %d misrouted, %v", target, n, wrong, err)
			}
			rows += n
		}
		if rows != 40 {
			t.Errorf("%d rows", rows)
		}
		for i, id := range ids {
			var o gormOrder
			if err := db.Preload("Items").First(&o, id).Error; err != nil || o.Note != fmt.Sprint("n", i) || len(o.Items) != 2 || o.Items[1].SKU != fmt.Sprint("b", i) {
				t.Errorf("%d: %+v, %v", id, o, err)
			}
		}
	})
}

func TestGormUpdatesAndDeletesOnMariaDBShards(t *testing.T) {
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	bothPaths(t, func(t *testing.T, lastInsertID bool) {
		db, _ := gormShards(t, first, second, lastInsertID)
		o := gormOrder{ID: 7, Note: "old", Items: []gormItem{{SKU: "a"}, {SKU: "b"}, {SKU: "c"}, {SKU: "d"}, {SKU: "e"}, {SKU: "f"}}}
		if err := db.Create(&o).Error; err != nil {
			t.Fatal(err)
		}
		left := func() string {
			t.Helper()
			var skus []string
			if err := db.Model(&gormItem{}).Where("order_id = ?", 7).Order("sku").Pluck("sku", &skus).Error; err != nil {
				t.Fatal(err)
			}
			return strings.Join(skus, "")
		}
		saved, upserted := int64(0), int64(2) // as MySQL counts unchanged and upserted rows
		if !lastInsertID {
			saved, upserted = 1, 1 // the rows returned
		}
		for _, s := range []struct {
			what string
			run  func() *gorm.DB
			rows int64
			left string
		}{
			{"Update", func() *gorm.DB { return db.Model(&o.Items[0]).Update("sku", "A") }, 1, "Abcdef"},
			{"Update with LIMIT", func() *gorm.DB {
				return db.Model(&gormItem{}).Where("order_id = ? AND items.sku > ?", 7, "").Limit(1).Order("sku").Update("sku", "AA")
			}, 1, "AAbcdef"},
			{"Save", func() *gorm.DB { return db.Save(&gormItem{ID: o.Items[0].ID, OrderID: 7, SKU: "a"}) }, 1, "abcdef"},
			{"Save of the same", func() *gorm.DB { return db.Save(&gormItem{ID: o.Items[0].ID, OrderID: 7, SKU: "a"}) }, saved, "abcdef"},
			{"Delete of a struct", func() *gorm.DB { return db.Delete(&o.Items[5]) }, 1, "abcde"},
			{"Delete by text", func() *gorm.DB { return db.Where("items.order_id = ? AND items.sku = 'e'", 7).Delete(&gormItem{}) }, 1, "abcd"},
			{"Delete with LIMIT", func() *gorm.DB { return db.Where("order_id = ?", 7).Order("sku DESC").Limit(1).Delete(&gormItem{}) }, 1, "abc"},
			{"Delete of a slice", func() *gorm.DB { return db.Delete([]gormItem{o.Items[0], o.Items[1]}) }, 2, "c"},
			{"upsert", func() *gorm.DB {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&gormItem{ID: o.Items[2].ID, OrderID: 7, SKU: "C"})
			}, upserted, "C"},
			{"FOR UPDATE", func() *gorm.DB { return db.Clauses(clause.Locking{Strength: "UPDATE"}).First(&gormOrder{}, 7) }, 1, "C"},
			{"FORCE INDEX", func() *gorm.DB { return db.Clauses(indexHint{}).Where("`orders`.id = ?", 7).Find(&[]gormOrder{}) }, 1, "C"},
		} {
			if tx := s.run(); tx.Error != nil || tx.RowsAffected != s.rows || left() != s.left {
				t.Errorf("%s: %v, %d rows, left %s", s.what, tx.Error, tx.RowsAffected, left())
			}
		}
		if lastInsertID {
			return
		}
		var gone []gormItem
		if err := db.Clauses(clause.Returning{}).Where("order_id = ?", 7).Delete(&gone).Error; err != nil || len(gone) != 1 || gone[0].SKU != "C" {
			t.Errorf("RETURNING: %+v, %v", gone, err)
		}
	})
}

// indexHint adds FORCE INDEX as gorm's hints package does.
type indexHint struct{}

func (indexHint) ModifyStatement(stmt *gorm.Statement) {
	c := stmt.Clauses["FROM"]
	c.AfterExpression = clause.Expr{SQL: "FORCE INDEX (PRIMARY)"}
	stmt.Clauses["FROM"] = c
}

func (indexHint) Build(clause.Builder) {}

func TestGormTransactionsStayOnOneMariaDBServer(t *testing.T) {
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	db, _ := gormShards(t, first, second, false)
	count := func(id int64) (n int64) {
		t.Helper()
		if err := db.Model(&gormOrder{}).Where("id = ?", id).Count(&n).Error; err != nil {
			t.Fatal(err)
		}
		return n
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&gormOrder{ID: 1, Note: "o"}).Error, tx.Create(&gormItem{OrderID: 1, SKU: "x"}).Error)
	})
	if err != nil || count(1) != 1 {
		t.Errorf("commit: %v, %d rows", err, count(1))
	}
	err = db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&gormOrder{ID: 5, Note: "o"}).Error; err != nil {
			return err
		}
		return tx.Create(&gormItem{OrderID: 5, SKU: "x"}).Error // taken
	})
	if err == nil || count(5) != 0 {
		t.Errorf("rollback: %v, %d rows", err, count(5))
	}
	err = db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&gormOrder{ID: 9, Note: "o"}).Error; err != nil {
			return err
		}
		return tx.Create(&gormOrder{ID: 10, Note: "on the other server"}).Error
	})
	if !errors.Is(err, sharding.ErrCrossDatabase) || count(9) != 0 || count(10) != 0 {
		t.Errorf("two servers: %v, %d and %d rows", err, count(9), count(10))
	}
}

func TestGormRefusesOnMariaDBWhatHasNoProvenShard(t *testing.T) {
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	db, _ := gormShards(t, first, second, false)
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"no key":          {db.Where("note = ?", "x").Delete(&gormOrder{}).Error, sharding.ErrMissingKey},
		"batch":           {db.Create([]*gormOrder{{ID: 1}, {ID: 2}}).Error, sharding.ErrCrossDatabase},
		"raw":             {db.Exec("DELETE FROM orders").Error, sharding.ErrMissingKey},
		"version comment": {db.Exec("DELETE FROM /*! orders */").Error, sharding.ErrRawTable},
		"ANSI quotes":     {db.Exec(`DELETE FROM "orders"`).Error, sharding.ErrRawTable},
		"backslash":       {db.Exec(`DELETE FROM home.orders WHERE note = '\' OR 'orders'`).Error, sharding.ErrRawTable},
		"subquery":        {db.Table("users").Where("EXISTS (?)", db.Model(&gormOrder{}).Select("1").Where("orders.id = users.id")).Find(&[]map[string]any{}).Error, sharding.ErrUnmergeable},
		"pipes":           {db.Where("id = ? || 1", 1).Delete(&gormOrder{}).Error, sharding.ErrMissingKey},
		"key":             {db.Model(&gormItem{ID: 1, OrderID: 1}).Update("order_id", 2).Error, sharding.ErrKeyChange},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	for id := range int64(2) {
		if err := db.Create(&gormOrder{ID: 4*id + 4, Note: "keep"}).Error; err != nil {
			t.Fatal(err)
		}
	}
	// gorm puts no brackets around ||, which is OR here: this reaches every row.
	tx := db.Where("id = ?", 4).Where("note = 'keep' || 1").Delete(&gormOrder{})
	if !errors.Is(tx.Error, sharding.ErrMissingKey) || tx.RowsAffected != 0 {
		t.Errorf("deleted %d rows, %v", tx.RowsAffected, tx.Error)
	}
}
