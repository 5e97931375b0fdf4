// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Line has a primary key that contains the sharding key.
type Line struct {
	OrderID int64 `gorm:"primaryKey;autoIncrement:false"`
	No      int   `gorm:"primaryKey;autoIncrement:false"`
	Text    string
}

func TestAKeyThatIsPartOfThePrimaryKeyRoutes(t *testing.T) {
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 2, "lines_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		must(t, dbs[target.DB], "CREATE TABLE "+target.Table+" (order_id INTEGER, no INTEGER, text TEXT, PRIMARY KEY (order_id, no))")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "lines", Key: "order_id", Rule: sharding.Low(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, rec.open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	lines := []Line{{5, 1, "a"}, {5, 2, "b"}, {7, 1, "c"}}
	if err := db.Create(&lines).Error; err != nil {
		t.Fatal(err)
	}
	rec.take()
	for _, s := range []struct {
		run  func() *gorm.DB
		rows int64
		sent string
	}{
		{func() *gorm.DB { return db.Model(&lines[0]).Update("text", "A") }, 1, "db1: UPDATE `lines_1` AS `lines` SET `text`=? WHERE `order_id` = ? AND `no` = ?"},
		{func() *gorm.DB { return db.Save(&Line{5, 3, "new"}) }, 1, "db1: UPDATE `lines_1` AS `lines` SET `text`=? WHERE `order_id` = ? AND `no` = ?"},
		{func() *gorm.DB { return db.Delete(lines[:2]) }, 2, "db1: DELETE FROM `lines_1` WHERE (`lines_1`.`order_id`,`lines_1`.`no`) IN ((?,?),(?,?))"},
		{func() *gorm.DB { return db.Delete(&lines[2]) }, 1, "db1: DELETE FROM `lines_1` WHERE (`lines_1`.`order_id`,`lines_1`.`no`) IN ((?,?))"},
	} {
		if tx := s.run(); tx.Error != nil || tx.RowsAffected != s.rows {
			t.Errorf("%v, %d rows", tx.Error, tx.RowsAffected)
		}
		if events := rec.take(); len(events) < 2 || events[1] != s.sent {
			t.Errorf("sent %q", events)
		}
	}
	if tx := db.Delete(&Line{OrderID: 5}); tx.Error != nil || tx.RowsAffected != 0 { // line 3 is there: gorm names line 0
		t.Errorf("half a primary key: %v, %d rows", tx.Error, tx.RowsAffected)
	}
	if err := db.Delete([]Line{{5, 1, ""}, {6, 1, ""}}).Error; !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("two shards: %v", err)
	}
}

func TestGenericsAreFilledAndRouted(t *testing.T) {
	c := newCluster(t)
	order := Order{Note: "generic"}
	if err := gorm.G[Order](c.DB).Create(t.Context(), &order); err != nil || order.ID == 0 {
		t.Fatal(err, order)
	}
	found, err := gorm.G[Order](c.DB).Where("id = ?", order.ID).First(t.Context())
	if err != nil || found.Note != "generic" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := gorm.G[Order](c.DB).Find(t.Context()); !errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}
