// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

func TestATableMayHaveAnAliasInAStatement(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads)
	whole := c.beside(t)
	for name, query := range map[string]func(db *gorm.DB) (any, error){
		"one shard": func(db *gorm.DB) (any, error) {
			return asMaps(db.Table("orders AS o").Where("o.id = ?", 5))
		},
		"without AS": func(db *gorm.DB) (any, error) {
			return asMaps(db.Table("orders o").Select("o.id, o.note").Where("o.id IN ?", []int{1, 2, 5}).Order("o.id"))
		},
		"model": func(db *gorm.DB) (any, error) {
			var orders []Order
			return &orders, db.Model(&Order{}).Table("orders AS o").Where(&Order{ID: 5}).Or("o.id", 2).Order("o.id").Find(&orders).Error
		},
		"as a table of the group": func(db *gorm.DB) (any, error) {
			return asMaps(db.Table("orders AS items").Where("items.id = ?", 5))
		},
		"all shards": func(db *gorm.DB) (any, error) {
			return asMaps(db.Table("orders AS o").Select("o.user_id, COUNT(*) AS n, MAX(o.id) AS last").Group("o.user_id").Order("o.user_id"))
		},
		"count": func(db *gorm.DB) (any, error) { return count(db.Table("orders AS o").Where("o.note <> 'a'")) },
		"join": func(db *gorm.DB) (any, error) {
			return asMaps(db.Table("orders AS o").Joins("JOIN items AS i ON i.order_id = o.id").Select("o.id, i.sku").Order("o.id DESC").Limit(5))
		},
		"join of itself": func(db *gorm.DB) (any, error) {
			return count(db.Table("orders AS o").Joins("JOIN orders p ON p.id = o.id").Where("o.id = ?", 5))
		},
		"update": func(db *gorm.DB) (any, error) {
			tx := db.Table("orders AS o").Where("o.id = ?", 5).Update("note", "new")
			return tx.RowsAffected, tx.Error
		},
		"delete": func(db *gorm.DB) (any, error) {
			tx := db.Table("orders AS o").Where("o.id = ?", 12).Delete(nil)
			return tx.RowsAffected, tx.Error
		},
	} {
		likeOneTable(t, c, whole, name, query)
	}
	c.rec.take()
	if err := c.Table("orders o").Where("o.id = ?", 5).Order("o.id").Take(&map[string]any{}).Error; err != nil {
		t.Error(err)
	}
	sameEvents(t, c.rec.take(), "db1: SELECT * FROM `orders_1` o WHERE o.id = ? ORDER BY o.id LIMIT 1")
}

func TestAnAliasProvesNothingUnderTheTablesName(t *testing.T) {
	c := newCluster(t)
	missing := sharding.ErrMissingKey
	for text, want := range map[string]error{
		"orders AS o":                       missing, // orders.id is no column of o
		"orders o":                          missing,
		"orders /* x */ AS o":               missing,
		"orders /*! PARTITION (p0) */ AS o": missing,
		"orders -- x\n AS o":                missing,
		"main.orders AS o":                  sharding.ErrCrossShard,
		"orders AS o, users AS u":           missing,
		"orders INDEXED BY i AS o":          sharding.ErrRawTable,
		"(SELECT * FROM orders) AS o":       missing,
	} {
		if err := c.Table(text).Where("orders.id = ?", 5).Find(&[]map[string]any{}).Error; !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := c.Table("orders AS o").Joins("JOIN items AS orders ON orders.order_id = o.id").Where("orders.id = ?", 5).Find(&[]map[string]any{}).Error; !errors.Is(err, missing) {
		t.Error(err)
	}
	sameEvents(t, c.rec.take())
}
