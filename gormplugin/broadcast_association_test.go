// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

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

// Pallet has rows of a broadcast table through its baskets.
type Pallet struct {
	ID      int64 `gorm:"autoIncrement:false"`
	Baskets []PalletBasket
	Labels  []Label `gorm:"many2many:pallet_labels"`
	Marks   []Label `gorm:"many2many:pallet_marks"`
}

type PalletBasket struct {
	ID       int64 `gorm:"autoIncrement:false"`
	PalletID int64
	ShopID   string
	Shop     *Shop
}

func newBaskets(t *testing.T) *gorm.DB {
	t.Helper()
	dbs := sharding.DBs{"a": openShared(t, "a"), "b": openShared(t, "b")}
	options := []sharding.Option{sharding.Broadcast("shops", "labels")}
	for name, key := range map[string]string{"baskets": "id", "basket_labels": "basket_id", "pallets": "id", "pallet_baskets": "pallet_id", "pallet_labels": "pallet_id", "pallet_marks": "pallet_id"} {
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
	if err := gormplugin.Migrate(t.Context(), db, &Shop{}, &Label{}, &Basket{}, &BasketLabel{}, &Pallet{}, &PalletBasket{}); err != nil {
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

func TestTheRefusalOfARowOfABroadcastTableSaysOnceWhatToOmit(t *testing.T) {
	db := newBaskets(t)
	const refused = "sharding: write of broadcast table %s refused: transaction spans databases; "
	const left = "it is written in every database; write it outside of the transaction, and leave it out of this one by %s, or let transactions span databases with sharding.Transactions, Atomic or BestEffort"
	labels := fmt.Sprintf(refused+left, "labels", `db.Omit("Labels.*").Create(&basket) (or Save), db.Model(&basket).Omit("Labels.*").Association("Labels").Append(…)`)
	shops := fmt.Sprintf(refused+left, "shops", `db.Omit("Shop").Create(&basket) (or Save), with ShopID set, which gorm then leaves as it is`)
	pallet := fmt.Sprintf(refused+left, "shops", `db.Omit("Baskets.Shop").Create(&pallet) (or Save), with Baskets.ShopID set, which gorm then leaves as it is`)
	if err := db.Create(&Basket{ID: 1}).Error; err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"create with labels": {db.Create(&Basket{ID: 5, Labels: []Label{{ID: 1}}}).Error, labels},
		"append of labels":   {db.Model(&Basket{ID: 1}).Association("Labels").Append(&Label{ID: 2}), labels},
		"save with labels":   {db.Save(&Basket{ID: 1, Labels: []Label{{ID: 1}}}).Error, labels},
		"create with a shop": {db.Create(&Basket{ID: 5, Shop: &Shop{ID: "north"}}).Error, shops},
		"save with a shop":   {db.Save(&Basket{ID: 1, Shop: &Shop{ID: "north"}}).Error, shops},
		"shops of a pallet":  {db.Create(&Pallet{ID: 1, Baskets: []PalletBasket{{ID: 7, Shop: &Shop{ID: "north"}}}}).Error, pallet},
		"its own transaction": {db.Transaction(func(tx *gorm.DB) error { return tx.Create(&Label{ID: 9}).Error }), fmt.Sprintf(refused, "labels") +
			`it is written in every database; write it outside of the transaction (with gorm, db.Omit("Tags.*").Create(&order) leaves the rows of labels in a relation Tags out), or let transactions span databases with sharding.Transactions, Atomic or BestEffort`},
	} {
		if !errors.Is(c.err, sharding.ErrCrossDatabase) || c.err.Error() != c.want {
			t.Errorf("%s:\n%v\nwant\n%s", what, c.err, c.want)
		}
	}
	shop := Shop{ID: "north"}
	if err := db.Create(&shop).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Omit("Baskets.Shop").Create(&Pallet{ID: 1, Baskets: []PalletBasket{{ID: 7, ShopID: "north", Shop: &shop}}}).Error; err != nil {
		t.Error(err)
	}
	other := Pallet{ID: 2, Baskets: []PalletBasket{{ID: 7, ShopID: "north"}}, Labels: []Label{{ID: 1}}, Marks: []Label{{ID: 1}}}
	if err := db.Omit("Labels.*", "Marks.*").Create(&other).Error; !errors.Is(err, sharding.ErrKeyChange) || strings.Count(err.Error(), "refused") != 1 {
		t.Errorf("a basket of another pallet beside other relations: %v", err)
	}
}

// Crate is sharded by its owner; its ids lead to the shard only with also.
type Crate struct {
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	OwnerID int64
	Labels  []Label `gorm:"many2many:crate_labels"`
}

func newCrates(t *testing.T, also bool, more ...string) *gorm.DB {
	t.Helper()
	dbs := sharding.DBs{"a": openShared(t, "a"), "b": openShared(t, "b")}
	options := []sharding.Option{sharding.Broadcast("labels")}
	table := func(name, key string) sharding.Table {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		return sharding.Table{Name: name, Key: key, Rule: sharding.Low(2), Map: m, Group: "crates"}
	}
	crates := table("crates", "owner_id")
	if also {
		crates.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(2)}}
	}
	options = append(options, crates)
	for _, key := range more {
		options = append(options, table("crate_labels", key))
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, dbs["a"])
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	return db
}

// OwnedCrate has both keys in the join table.
type OwnedCrate struct {
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	OwnerID int64
	Labels  []Label `gorm:"many2many:crate_labels;foreignKey:ID,OwnerID;joinForeignKey:CrateID,OwnerID"`
}

func (OwnedCrate) TableName() string { return "crates" }

func TestMigrateCreatesTheJoinTableOfAShardedModel(t *testing.T) {
	labels := []Label{{ID: 1}, {ID: 2}}
	for key, model := range map[string]any{
		"crate_id": &Crate{ID: 5, OwnerID: 9, Labels: labels},
		"owner_id": &OwnedCrate{ID: 6, OwnerID: 9, Labels: labels},
	} {
		db := newCrates(t, key == "crate_id", key)
		for range 2 { // it may be run again
			if err := gormplugin.Migrate(t.Context(), db, model, &Label{}); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
		if err := db.Create(&labels).Error; err != nil {
			t.Fatal(err)
		}
		if err := db.Omit("Labels.*").Create(model).Error; err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if n := db.Model(model).Association("Labels").Count(); n != 2 {
			t.Errorf("%s: %d labels", key, n)
		}
	}
}

func TestMigrateSaysWhichJoinTableTheRouterLacks(t *testing.T) {
	for want, also := range map[string]bool{
		`gormplugin: migrate: sharding: relation Crate.Labels to crate_labels refused: not a sharded table; add it to the router with the Key crate_id in the Group of crates, or tag the relation gorm:"-:migration" if you create it yourself`:                                                                                                                true,
		`gormplugin: migrate: sharding: relation Crate.Labels to crate_labels refused: not a sharded table; tag the relation gorm:"many2many:crate_labels;foreignKey:ID,OwnerID;joinForeignKey:CrateID,OwnerID" and add the table to the router with the Key owner_id in the Group of crates, or tag the relation gorm:"-:migration" if you create it yourself`: false,
	} {
		if err := gormplugin.Migrate(t.Context(), newCrates(t, also), &Crate{}, &Label{}); !errors.Is(err, sharding.ErrUnknownTable) || err.Error() != want {
			t.Errorf("the error is\n%v\nwant\n%s", err, want)
		}
	}
}

// CrateLabel is a model of the join table whose OwnerID no reference of the relation fills.
type CrateLabel struct {
	CrateID int64 `gorm:"primaryKey;autoIncrement:false"`
	LabelID int64 `gorm:"primaryKey;autoIncrement:false"`
	OwnerID int64
}

func (CrateLabel) TableName() string { return "crate_labels" }

func TestMigrateSaysWhichTagPutsTheKeyIntoAJoinTableOfTheRouter(t *testing.T) {
	for key, want := range map[string]string{
		"owner_id": `gormplugin: migrate: sharding: relation Crate.Labels to crate_labels refused: no sharding key (owner_id); tag the relation gorm:"many2many:crate_labels;foreignKey:ID,OwnerID;joinForeignKey:CrateID,OwnerID"`,
		"owner":    `gormplugin: migrate: sharding: relation Crate.Labels to crate_labels refused: no sharding key (owner); tag the relation gorm:"many2many:crate_labels;foreignKey:ID,OwnerID;joinForeignKey:CrateID,OwnerID" and give the table the Key owner_id in the router`,
	} {
		err := gormplugin.Migrate(t.Context(), newCrates(t, false, key), &Crate{}, &Label{})
		if !errors.Is(err, sharding.ErrMissingKey) || err.Error() != want {
			t.Errorf("the error is\n%v\nwant\n%s", err, want)
		}
	}
	err := gormplugin.Migrate(t.Context(), newCrates(t, true, "owner_id"), &Crate{}, &Label{})
	if want := `gormplugin: migrate: sharding: relation Crate.Labels to crate_labels refused: no sharding key (owner_id); give the table the Key crate_id in the router`; err == nil || err.Error() != want {
		t.Errorf("the error is\n%v\nwant\n%s", err, want)
	}
}

func TestCheckWarnsOfAJoinTableWhoseKeyNoReferenceFills(t *testing.T) {
	for _, c := range []struct {
		model any
		warns bool
	}{{&Crate{}, true}, {&OwnedCrate{}, false}} {
		db := newCrates(t, false, "owner_id")
		if err := gormplugin.Migrate(t.Context(), db, &OwnedCrate{}, &Label{}); err != nil {
			t.Fatal(err)
		}
		if err := db.SetupJoinTable(c.model, "Labels", &CrateLabel{}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		logged := db.Session(&gorm.Session{Logger: logger.New(log.New(&out, "", 0), logger.Config{LogLevel: logger.Warn})})
		if err := gormplugin.Check(logged, c.model); err != nil {
			t.Fatal(err)
		}
		want := `gormplugin: sharding: relation Crate.Labels to crate_labels refused: no sharding key (owner_id); tag the relation gorm:"many2many:crate_labels;foreignKey:ID,OwnerID;joinForeignKey:CrateID,OwnerID"`
		if got := strings.Contains(out.String(), want); got != c.warns || strings.Contains(out.String(), "relation") != c.warns {
			t.Errorf("%T: the log is %s", c.model, out.String())
		}
	}
}
