// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

func TestAssociationsOfAShardedParent(t *testing.T) {
	kept := []string{"a5", "b5"}
	for name, c := range map[string]struct {
		run  func(db *gorm.DB, o *Order) error
		why  error
		left []string
	}{
		"Append": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Append(&Item{SKU: "new"})
		}, nil, []string{"a5", "b5", "new"}},
		"Find": {func(db *gorm.DB, o *Order) error {
			var items []Item
			if err := db.Model(o).Association("Items").Find(&items); err != nil || len(items) != 2 {
				return errors.Join(err, errors.New("not both were found"))
			}
			return nil
		}, nil, kept},
		"Count": {func(db *gorm.DB, o *Order) error {
			items := db.Model(o).Association("Items")
			if n := items.Count(); n != 2 {
				return errors.Join(items.Error, errors.New("not both were counted"))
			}
			return nil
		}, nil, kept},
		"Delete": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Delete(&o.Items[0])
		}, sharding.ErrKeyChange, kept},
		"Replace in a transaction": {func(db *gorm.DB, o *Order) error {
			return db.Transaction(func(tx *gorm.DB) error {
				return tx.Model(o).Association("Items").Replace(&Item{SKU: "new"})
			})
		}, sharding.ErrKeyChange, kept},
		"Clear": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Clear()
		}, sharding.ErrKeyChange, kept},
		"Delete behind Unscoped": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Unscoped().Delete(&o.Items[0])
		}, nil, []string{"b5"}},
		"Replace behind Unscoped": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Unscoped().Replace(&Item{SKU: "new"})
		}, nil, []string{"new"}},
		"Clear behind Unscoped": {func(db *gorm.DB, o *Order) error {
			return db.Model(o).Association("Items").Unscoped().Clear()
		}, nil, nil},
		"Select and Delete": {func(db *gorm.DB, o *Order) error {
			return db.Select("Items").Delete(o).Error
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			db := newCluster(t)
			db.seed(t)
			var o Order
			if err := db.Preload("Items").First(&o, 5).Error; err != nil {
				t.Fatal(err)
			}
			if err := c.run(db.DB, &o); !errors.Is(err, c.why) {
				t.Error(err)
			}
			var left []string
			err := db.Model(&Item{}).Where("order_id = ?", 5).Order("id").Pluck("sku", &left).Error
			if err != nil || !slices.Equal(left, c.left) {
				t.Errorf("left %q, %v", left, err)
			}
		})
	}
}

// orderOfOne is an order of one item.
type orderOfOne struct {
	ID   int64
	Item *Item `gorm:"foreignKey:OrderID"`
}

func (orderOfOne) TableName() string { return "orders" }

func TestAppendReplacesTheChildOfAHasOne(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	err := c.Transaction(func(tx *gorm.DB) error {
		return tx.Model(&orderOfOne{ID: 5}).Association("Item").Append(&Item{SKU: "new"})
	})
	if !errors.Is(err, sharding.ErrKeyChange) || !strings.Contains(err.Error(), "Unscoped") {
		t.Errorf("Append: %v", err)
	}
	if err := c.Model(&orderOfOne{ID: 5}).Association("Item").Unscoped().Append(&Item{SKU: "new"}); err != nil {
		t.Errorf("Append behind Unscoped: %v", err)
	}
	var left []string
	if err := c.Model(&Item{}).Where("order_id = ?", 5).Pluck("sku", &left).Error; err != nil || !slices.Equal(left, []string{"new"}) {
		t.Errorf("left %q, %v", left, err)
	}
}
