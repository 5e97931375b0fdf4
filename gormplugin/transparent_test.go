// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// corpus is statements on tables that are neither sharded nor managed. With a Router one thing
// differs, and has its own test: a transaction without a statement is not begun. (gorm also begins
// one for a DryRun.)
func corpus(db *gorm.DB) {
	users := []User{{Name: "a"}, {Name: "b"}, {ID: 40, Name: "c"}}
	var n int64
	db.Create(&users)
	db.Create(&User{Name: "a"}) // violates a constraint
	db.CreateInBatches([]User{{Name: "d"}, {Name: "e"}, {Name: "f"}}, 2)
	db.Model(&User{}).Create(map[string]any{"name": "g"})
	db.Table("users").Create(map[string]any{"name": "h"})
	db.Clauses(clause.OnConflict{DoNothing: true}).Create(&User{Name: "a"})
	db.Save(&User{ID: 40, Name: "cc"})
	db.Save(&User{ID: 41, Name: "x"})
	db.Model(&User{}).Create(&[]map[string]any{{"name": "m1"}, {"name": "m2"}})
	db.Model(&User{}).Create([]map[string]any{{"id": 90, "name": "m3"}})
	db.Create(&[2]User{{Name: "x1"}, {Name: "x2"}})
	db.Create([]*User{{Name: "p1"}, {ID: 95, Name: "p2"}})
	db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]User{{Name: "a"}, {Name: "new"}})
	db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&User{Name: "a"})
	db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&User{ID: 1, Name: "a"})
	db.Clauses(clause.Returning{}).Create(&User{Name: "returned"})
	db.Save(&[]User{{ID: 1, Name: "a"}, {Name: "saved"}})
	db.Select("name").Create(&User{ID: 300, Name: "selected"})
	db.Omit("id").Create(&User{ID: 301, Name: "omitted"})
	db.FirstOrCreate(&User{}, User{Name: "first"})
	db.FirstOrCreate(&User{}, User{Name: "first"})
	db.Session(&gorm.Session{SkipHooks: true}).Create(&User{Name: "without hooks"})
	db.Session(&gorm.Session{CreateBatchSize: 1}).Create(&[]User{{Name: "y1"}, {Name: "y2"}})
	_ = gorm.G[User](db).Create(db.Statement.Context, &User{Name: "generic"})
	db.First(&User{}, 1)
	db.First(&User{}, "name = ? || id = ?", "a", 1)
	db.Where("name = ?", "a").Or("name = 'b' OR\nid = 2").Not("id = 3").Find(&[]User{})
	db.Where("id IN (?)", db.Model(&User{}).Select("id")).Find(&[]User{})
	db.Joins("JOIN users AS u ON u.id = users.id /* self */").Find(&[]User{})
	db.Model(&User{}).Where("id > 1").Count(&n)
	db.Model(&User{ID: 1}).Update("name", "aa")
	db.Delete(&User{ID: 1})
	db.Where("id = ? -- one", 2).Delete(&User{})
	db.Exec("UPDATE users SET name = 'orders of magnitude' WHERE id = ?", 40)
	var name string
	_ = db.Raw("SELECT name FROM users WHERE id = 40").Row().Scan(&name)
	_, _ = readRows(db.Raw("SELECT name FROM users"))
	_ = db.Transaction(func(tx *gorm.DB) error {
		tx.Create(&User{Name: "tx"})
		tx.Exec("SAVEPOINT mine")
		tx.Delete(&User{}, 3)
		tx.Exec("ROLLBACK TO SAVEPOINT mine")
		tx.Create(&User{Name: "tx"}) // violates a constraint
		return tx.Create(&User{Name: "tx2"}).Error
	})
	_ = db.Transaction(func(tx *gorm.DB) error {
		tx.Create(&User{Name: "gone"})
		return errors.New("roll back")
	}, &sql.TxOptions{})
	_ = db.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&User{Name: "no tx"}).Error
	_ = db.Connection(func(tx *gorm.DB) error { return tx.Create(&User{Name: "conn"}).Error })
	db.Migrator().HasTable(&User{})
	_ = db.Migrator().AutoMigrate(&User{})
	db.Session(&gorm.Session{DryRun: true, SkipDefaultTransaction: true}).Create(&User{Name: "dry"})
}

func TestOtherTablesReachTheDriverAsWithoutThePlugin(t *testing.T) {
	run := func(session *gorm.Session, use func(*gorm.DB) error) []string {
		rec := &recorder{args: true}
		home := rec.open(t, "home")
		must(t, home, fmt.Sprintf(createUsers, "users"))
		db := openGORM(t, home)
		if err := use(db); err != nil {
			t.Fatal(err)
		}
		rec.take()
		corpus(db.Session(session))
		return rec.take()
	}
	generators := keygen.Set{Default: keygen.Counting(1, 1)}
	none := func(*gorm.DB) error { return nil }
	fills := func(db *gorm.DB) error {
		return db.Use(gormplugin.New(gormplugin.Config{Generators: generators, Models: []gormplugin.Model{{Struct: &Person{}}}}))
	}
	for _, session := range []*gorm.Session{{}, {PrepareStmt: true}, {SkipDefaultTransaction: true}} {
		plain := run(session, none)
		if len(plain) < 60 {
			t.Fatalf("the corpus sent only %d statements", len(plain))
		}
		sameEvents(t, run(session, fills), plain...)
	}
	other := &recorder{}
	router := newRouter(t, sharding.DBs{"db0": other.open(t, "db0"), "db1": other.open(t, "db1")})
	sameEvents(t, run(&gorm.Session{}, func(db *gorm.DB) error {
		return db.Use(gormplugin.New(gormplugin.Config{Generators: generators, Router: router}))
	}), run(&gorm.Session{}, none)...)
	sameEvents(t, other.take())
}
