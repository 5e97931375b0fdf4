// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

func TestARefusedChangeOfTheKeyLeavesTheStructAsItWas(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, update := range map[string]func(o *Order) *gorm.DB{
		"map":    func(o *Order) *gorm.DB { return c.Model(o).Updates(map[string]any{"id": 9}) },
		"struct": func(o *Order) *gorm.DB { return c.Model(o).Updates(Order{ID: 9, Note: "x"}) },
		"column": func(o *Order) *gorm.DB { return c.Model(o).UpdateColumn("id", 9) },
	} {
		o := Order{ID: 5}
		if err := update(&o).Error; !errors.Is(err, sharding.ErrKeyChange) || o.ID != 5 {
			t.Errorf("%s: id %d, %v", name, o.ID, err)
		}
	}
	item := Item{ID: 9008, OrderID: 5}
	if err := c.Model(&item).Update("order_id", 6).Error; !errors.Is(err, sharding.ErrKeyChange) || item.OrderID != 5 {
		t.Errorf("order_id %d, %v", item.OrderID, err)
	}
}

func TestColumnsAndAliasesMayHaveTheNameOfAShardedTable(t *testing.T) {
	c := newCluster(t)
	must(t, c.home, "CREATE TABLE stats (id INTEGER PRIMARY KEY, orders INTEGER)")
	type Stat struct {
		ID     int64
		Orders int64
	}
	var n int64
	for name, err := range map[string]error{
		"create": c.Create(&Stat{Orders: 3}).Error,
		"find":   c.Where("orders > 1").Order("orders").Find(&[]Stat{}).Error,
		"update": c.Model(&Stat{ID: 1}).Update("orders", gorm.Expr("orders + 1")).Error,
		"alias":  c.Raw("SELECT count(*) AS orders FROM stats").Scan(&n).Error,
		"string": c.Where("name = 'orders'").Find(&[]User{}).Error,
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamedParametersAndBetweenLeaveAKeyProvable(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, tx := range map[string]*gorm.DB{
		"named":         c.Where("id = @id", map[string]any{"id": 5}).Find(&[]Order{}),
		"BETWEEN":       c.Where("user_id BETWEEN ? AND ? AND id = ?", 0, 9, 5).Find(&[]Order{}),
		"NOT BETWEEN":   c.Where("user_id NOT BETWEEN 5 AND (6) AND (id = ?)", 5).Find(&[]Order{}),
		"parentheses":   c.Where("((id = ? OR (id = 5 AND note <> '')))", 5).Find(&[]Order{}),
		"NOT elsewhere": c.Where("NOT user_id = 9 AND id = 5").Find(&[]Order{}),
	} {
		if tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%s: %d rows, %v", name, tx.RowsAffected, tx.Error)
		}
	}
	for name, tx := range map[string]*gorm.DB{
		"range":            c.Where("id BETWEEN 5 AND 5").Find(&[]Order{}),
		"compared group":   c.Where("(id = 5) = 0").Find(&[]Order{}),
		"negated group":    c.Where("NOT (id = 5)").Find(&[]Order{}),
		"XOR":              c.Where("id = 5 AND 1 XOR 1").Find(&[]Order{}),
		"second condition": c.Where("id = 5 IS NULL").Find(&[]Order{}),
	} {
		if !errors.Is(tx.Error, sharding.ErrMissingKey) && !errors.Is(tx.Error, sharding.ErrRawTable) { // XOR is none of SQLite's
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
}

func TestAssociationsOfShardedChildrenAreDeletedNotOrphaned(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	o := Order{ID: 5}
	if err := c.Model(&o).Association("Items").Clear(); !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("Clear: %v", err)
	}
	var items []Item
	if err := c.Model(&o).Association("Items").Find(&items); err != nil || len(items) != 2 {
		t.Fatalf("%v, %v", items, err)
	}
	if err := c.Model(&o).Association("Items").Unscoped().Delete(&items[0]); err != nil || c.Model(&o).Association("Items").Count() != 1 {
		t.Errorf("Delete: %v", err)
	}
	if err := c.Model(&o).Association("Items").Unscoped().Replace(&Item{SKU: "new"}); err != nil {
		t.Errorf("Replace: %v", err)
	}
	if err := c.Model(&o).Association("Items").Find(&items); err != nil || len(items) != 1 || items[0].SKU != "new" {
		t.Errorf("%v, %v", items, err)
	}
	if err := c.Model(&o).Association("Items").Unscoped().Clear(); err != nil || c.Model(&o).Association("Items").Count() != 0 {
		t.Errorf("Clear: %v", err)
	}
}

func TestTheErrorOfRowContainsTheRefusal(t *testing.T) {
	c := newCluster(t)
	err := c.Table("orders").Create([]map[string]any{{"id": 1}, {"id": "five"}}).Error
	if !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), `"five"`) {
		t.Error(err)
	}
}

func TestAModelIsReadByItsShardingKeyToo(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	var item Item
	if err := c.First(&item, "order_id = ?", 5).Error; err != nil {
		t.Fatal(err)
	}
	again := Item{ID: item.ID, OrderID: 5}
	if err := c.First(&again).Error; err != nil || again != item {
		t.Errorf("%+v, %v", again, err)
	}
	moved := Item{ID: item.ID, OrderID: 6}
	if err := c.First(&moved).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("%+v, %v", moved, err)
	}
}
