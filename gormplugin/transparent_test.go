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

// corpus is work on tables that are neither sharded nor managed. With a Router
// one thing differs, and has a test of its own: a transaction in which nothing
// is executed (GORM opens them around a DryRun, too) is not begun.
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
	run := func(use func(*gorm.DB) error) []string {
		rec := &recorder{}
		home := rec.open(t, "home")
		must(t, home, fmt.Sprintf(createUsers, "users"))
		db := openGORM(t, home)
		if err := use(db); err != nil {
			t.Fatal(err)
		}
		rec.take()
		corpus(db)
		return rec.take()
	}
	plain := run(func(*gorm.DB) error { return nil })
	if len(plain) < 60 {
		t.Fatalf("the corpus sent only %d statements", len(plain))
	}
	generators := keygen.Set{Default: keygen.Counting(1, 1)}
	sameEvents(t, run(func(db *gorm.DB) error {
		return db.Use(gormplugin.New(gormplugin.Config{Generators: generators}))
	}), plain...)
	other := &recorder{}
	router := newRouter(t, sharding.DBs{"db0": other.open(t, "db0"), "db1": other.open(t, "db1")})
	sameEvents(t, run(func(db *gorm.DB) error {
		return db.Use(gormplugin.New(gormplugin.Config{Generators: generators, Router: router}))
	}), plain...)
	sameEvents(t, other.take())
}
