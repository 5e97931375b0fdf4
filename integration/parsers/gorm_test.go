// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // the driver
)

type order struct {
	ID        int64
	UserID    int64
	State     string
	Amount    *int
	Items     []item `gorm:"foreignKey:OrderID"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt
}

func (order) TableName() string { return "orders" }

type item struct {
	ID      int64
	OrderID int64
	UserID  int64
	Order   *order
	Price   int
}

func (item) TableName() string { return "items" }

// written are statements that GORM writes for MySQL and SQLite. Nothing is sent.
func written(t testing.TB) []string {
	t.Helper()
	var texts []string
	for _, dialector := range []gorm.Dialector{
		mysql.New(mysql.Config{DSN: "root@tcp(127.0.0.1:1)/none", SkipInitializeWithVersion: true}),
		sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: ":memory:"}),
	} {
		db, err := gorm.Open(dialector, &gorm.Config{DryRun: true, SkipDefaultTransaction: true, DisableAutomaticPing: true, Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range programs {
			tx := run(db.Session(&gorm.Session{}))
			if tx.Error != nil {
				t.Fatal(tx.Error)
			}
			texts = append(texts, tx.Statement.SQL.String())
		}
	}
	return texts
}

var two = []order{{ID: 1, UserID: 5, State: "new"}, {ID: 2, UserID: 6, State: "new"}}

var programs = []func(db *gorm.DB) *gorm.DB{
	func(db *gorm.DB) *gorm.DB { return db.First(&order{}, 5) },
	func(db *gorm.DB) *gorm.DB { return db.Where("user_id = ?", 5).Take(&order{}) },
	func(db *gorm.DB) *gorm.DB { return db.Where(&order{UserID: 5, State: "new"}).Find(&[]order{}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Where(map[string]any{"user_id": 5, "state": []string{"a", "b"}}).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Where("user_id = ?", 5).Or("user_id = ? AND state <> ?", 6, "x").Not("amount > ?", 3).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Select("state, SUM(amount) AS total").Group("state").Having("SUM(amount) > ?", 5).Order("total DESC").Limit(3).Offset(4).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB { return db.Distinct("user_id", "state").Order("user_id").Find(&[]order{}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Joins("JOIN items ON items.order_id = orders.id AND items.price BETWEEN ? AND ?", 1, 9).Where("orders.user_id IN ?", []int{1, 2}).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB { return db.Joins("Order").Where("items.user_id = ?", 5).Find(&[]item{}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Where("id IN (?)", db.Model(&item{}).Select("order_id").Where("user_id = ?", 5)).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Table("(?) AS u", db.Model(&order{}).Select("user_id, COUNT(*) AS n").Group("user_id")).Where("n > ?", 2).Find(&[]map[string]any{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Where("EXISTS (?)", db.Model(&item{}).Select("1").Where("items.order_id = orders.id")).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.Locking{Strength: "UPDATE"}).Where("user_id = ?", 5).Find(&[]order{})
	},
	func(db *gorm.DB) *gorm.DB {
		var n int64
		return db.Model(&order{}).Where("user_id = ? AND (state = ? OR state IS NULL)", 5, "x").Count(&n)
	},
	func(db *gorm.DB) *gorm.DB { return db.Create(&two) },
	func(db *gorm.DB) *gorm.DB { return db.Create(&order{UserID: 5}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Model(&order{}).Create([]map[string]any{{"id": 1, "user_id": 5}, {"id": 2, "user_id": 6}})
	},
	func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&two) },
	func(db *gorm.DB) *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&two) },
	func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"state": gorm.Expr("UPPER(orders.state)")})}).Create(&two)
	},
	func(db *gorm.DB) *gorm.DB { return db.Save(&order{ID: 1, UserID: 5}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Model(&order{}).Where("user_id = ?", 5).Update("amount", gorm.Expr("amount + ?", 1))
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Model(&order{ID: 1}).Updates(map[string]any{"state": "x", "amount": 3})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Model(&order{}).Where("user_id = ?", 5).Order("id").Limit(3).UpdateColumn("state", "x")
	},
	func(db *gorm.DB) *gorm.DB { return db.Delete(&order{}, []int{1, 2, 3}) },
	func(db *gorm.DB) *gorm.DB { return db.Unscoped().Where("user_id = ?", 5).Delete(&order{}) },
	func(db *gorm.DB) *gorm.DB {
		return db.Clauses(clause.Returning{}).Where("user_id = 5").Delete(&[]item{})
	},
	func(db *gorm.DB) *gorm.DB {
		return db.Raw("SELECT * FROM orders WHERE user_id = @user AND id > @id ORDER BY id", map[string]any{"user": 5, "id": 3}).Find(&[]order{})
	},
}
