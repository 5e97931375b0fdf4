// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
)

// keepTexts acts like a query cache, which stores results by the text.
func keepTexts(t *testing.T, db *gorm.DB) {
	t.Helper()
	core := db.Callback().Query().Get("gorm:query")
	if err := db.Callback().Query().Replace("gorm:query", func(db *gorm.DB) { callbacks.BuildQuerySQL(db); core(db) }); err != nil {
		t.Fatal(err)
	}
}

func TestAQueryThatAnotherPluginHasWrittenIsRouted(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	keepTexts(t, c.DB)
	var orders []Order
	if err := c.Find(&orders, "id = ?", 5).Error; err != nil || len(orders) != 1 {
		t.Errorf("%+v, %v", orders, err)
	}
	if err := c.Find(&[]User{}).Error; err != nil {
		t.Errorf("a table that is not sharded: %v", err)
	}
	sameEvents(t, c.rec.take(), "db1: SELECT * FROM `orders_1` AS `orders` WHERE id = ?", "home: SELECT * FROM `users`")
}
