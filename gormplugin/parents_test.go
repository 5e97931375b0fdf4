// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Cart has lines that refer to it by its id alone, which carries no slot.
type Cart struct {
	ID     int64 `keygen:""`
	UserID int64
	Lines  []CartLine `gorm:"foreignKey:CartID"`
}

// CartLine is stored under the user of its cart.
type CartLine struct {
	ID     int64 `keygen:""`
	UserID int64
	CartID *int64 `gorm:"index"`
	Amount int64
	Cart   *Cart
}

func (CartLine) TableName() string { return "lines" }

func newCarts(t *testing.T) *gorm.DB {
	t.Helper()
	dbs := sharding.DBs{"db0": memory(t), "db1": memory(t)}
	table := func(name string, parents ...sharding.Parent) sharding.Table {
		m, err := sharding.Spread([]string{"db0", "db1"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: m, Group: "shop", Parents: parents}
	}
	router, err := sharding.New(dbs, table("carts"), table("lines", sharding.Parent{Column: "cart_id", Table: "carts"}))
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, memory(t))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Cart{}, &CartLine{}); err != nil {
		t.Fatal(err)
	}
	for user := range int64(4) {
		cart := Cart{UserID: user + 1}
		for amount := range user + 1 {
			cart.Lines = append(cart.Lines, CartLine{UserID: cart.UserID, Amount: amount + 1})
		}
		if err := db.Create(&cart).Error; err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestChildrenAreFoundByTheIDOfTheirParent(t *testing.T) {
	db := newCarts(t)
	var cart Cart
	if err := db.Preload("Lines").First(&cart, "user_id = ?", 3).Error; err != nil || len(cart.Lines) != 3 {
		t.Fatal(cart, err)
	}
	var lines []CartLine
	if err := db.InnerJoins("Cart").Where("lines.user_id = ?", 3).Find(&lines).Error; err != nil || len(lines) != 3 || lines[0].Cart.ID != cart.ID {
		t.Error(lines, err)
	}
	var sums []string
	if err := db.Model(&Cart{}).Joins("LEFT JOIN lines ON lines.cart_id = carts.id").Group("carts.id").Order("SUM(amount) DESC").Pluck("SUM(amount)", &sums).Error; err != nil || fmt.Sprint(sums) != "[10 6 3 1]" {
		t.Error(sums, err)
	}
	for name, write := range map[string]func(tx *gorm.DB) error{
		"update": func(tx *gorm.DB) error {
			return tx.Model(&CartLine{}).Where("cart_id = ?", cart.ID).Update("amount", 9).Error
		},
		"clear":              func(tx *gorm.DB) error { return tx.Model(&cart).Association("Lines").Clear() },
		"unscoped clear":     func(tx *gorm.DB) error { return tx.Model(&cart).Association("Lines").Unscoped().Clear() },
		"delete with parent": func(tx *gorm.DB) error { return tx.Select("Lines").Delete(&cart).Error },
	} {
		t.Run(name, func(t *testing.T) {
			rolledBack := errors.New("undo")
			err := db.Transaction(func(tx *gorm.DB) error {
				if err := write(tx); err != nil {
					t.Error(err)
				}
				var left, all int64
				if err := tx.Model(&CartLine{}).Where("cart_id = ? AND amount < 9", cart.ID).Count(&left).Error; err != nil || left != 0 {
					t.Errorf("%d lines are as before, %v", left, err)
				}
				if err := tx.Model(&CartLine{}).Where("user_id = 1").Count(&all).Error; err != nil || all != 1 {
					t.Errorf("%d lines of another cart, %v", all, err)
				}
				return rolledBack
			})
			if err != rolledBack { //nolint:errorlint // it is returned as it is
				t.Error(err)
			}
		})
	}
}
