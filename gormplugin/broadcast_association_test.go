// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Basket has rows of broadcast tables as associations.
type Basket struct {
	ID     int64
	ShopID string
	Shop   *Shop
	Labels []Label `gorm:"many2many:basket_labels"`
}

type Shop struct {
	ID   string
	Name string
}

type Label struct {
	ID   int64 `gorm:"autoIncrement:false"`
	Name string
}

// BasketLabel is the join table.
type BasketLabel struct {
	BasketID int64 `gorm:"primaryKey;autoIncrement:false"`
	LabelID  int64 `gorm:"primaryKey;autoIncrement:false"`
}

func newBaskets(t *testing.T) *gorm.DB {
	t.Helper()
	dbs := sharding.DBs{"a": openShared(t, "a"), "b": openShared(t, "b")}
	options := []sharding.Option{sharding.Broadcast("shops", "labels")}
	for name, key := range map[string]string{"baskets": "id", "basket_labels": "basket_id"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: m, Group: "baskets"})
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, dbs["a"])
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Shop{}, &Label{}, &Basket{}, &BasketLabel{}); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestOmitLeavesRowsOfBroadcastTablesOutOfATransaction(t *testing.T) {
	db := newBaskets(t)
	basket := Basket{ID: 5, Shop: &Shop{ID: "north"}, Labels: []Label{{ID: 1}, {ID: 2}}}
	if err := db.Create(&basket).Error; !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "Omit") {
		t.Fatalf("shops and labels were written in a transaction of one database: %v", err)
	}
	basket.ShopID = "north"
	shops, labels := []Shop{{ID: "north"}}, []Label{{ID: 1}, {ID: 2}, {ID: 3}}
	for what, err := range map[string]error{
		"shops": db.Create(&shops).Error, "labels": db.Create(&labels).Error, "the basket": db.Omit("Shop", "Labels.*").Create(&basket).Error,
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if err := db.Model(&basket).Omit("Labels.*").Association("Labels").Append(&Label{ID: 3, Name: "not written"}); err != nil {
		t.Error(err)
	}
	var found Basket
	if err := db.Preload("Shop").Preload("Labels").First(&found, 5).Error; err != nil || found.Shop == nil || len(found.Labels) != 3 || found.Labels[2].Name != "" {
		t.Fatalf("%+v, %v", found, err)
	}
	if err := db.Omit("Shop", "Labels.*").Save(&found).Error; err != nil {
		t.Error(err)
	}
	if err := db.Model(&found).Omit("Labels.*").Association("Labels").Replace(&Label{ID: 2}); err != nil {
		t.Error(err)
	}
	if n := db.Model(&Basket{ID: 5}).Association("Labels").Count(); n != 1 {
		t.Errorf("%d labels", n)
	}
}
