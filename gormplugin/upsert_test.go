// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// upsertAll is an upsert that sets all columns.
func upsertAll(db *gorm.DB) *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}) }

func TestUpsertsDoNotDoubleARowOfAnotherShard(t *testing.T) {
	item1 := func() *Item { return &Item{ID: 1, OrderID: 3, SKU: "new"} } // item 1 lies with order 1
	for name, upsert := range map[string]func(db *gorm.DB) error{
		"Save":            func(db *gorm.DB) error { return db.Save(item1()).Error },
		"Save of a slice": func(db *gorm.DB) error { return db.Save(&[]Item{*item1()}).Error },
		"UpdateAll":       func(db *gorm.DB) error { return upsertAll(db).Create(item1()).Error },
		"among others": func(db *gorm.DB) error {
			return upsertAll(db).Create(&[]Item{{ID: 2, OrderID: 2, SKU: "2"}, {OrderID: 3}, *item1()}).Error
		},
		"in batches": func(db *gorm.DB) error {
			return upsertAll(db).CreateInBatches(&[]Item{{ID: 50, OrderID: 3}, *item1()}, 1).Error
		},
		"map": func(db *gorm.DB) error {
			return upsertAll(db.Model(&Item{})).Create(map[string]any{"id": 1, "order_id": 3}).Error
		},
		"DoUpdates": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"sku"})}).Create(item1()).Error
		},
		"an association": func(db *gorm.DB) error { return db.Save(&Order{ID: 3, Items: []Item{*item1()}}).Error },
		"DO NOTHING": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(item1()).Error
		},
		"DO NOTHING among generated": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]Item{{OrderID: 3}, *item1()}).Error
		},
		"DO NOTHING of the id": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoNothing: true}).Create(item1()).Error
		},
		"INSERT OR IGNORE": func(db *gorm.DB) error {
			return db.Clauses(clause.Insert{Modifier: "OR IGNORE"}).Create(item1()).Error
		},
		"INSERT OR IGNORE with an update of another unique key": func(db *gorm.DB) error {
			on := clause.OnConflict{Columns: []clause.Column{{Name: "sku"}}, DoUpdates: clause.AssignmentColumns([]string{"sku"})}
			return db.Clauses(clause.Insert{Modifier: "OR IGNORE"}, on).Create(item1()).Error
		},
		"INSERT OR REPLACE": func(db *gorm.DB) error {
			return db.Clauses(clause.Insert{Modifier: "or replace"}).Create(item1()).Error
		},
		"INSERT OR REPLACE among generated": func(db *gorm.DB) error {
			return db.Clauses(clause.Insert{Modifier: "OR REPLACE"}).Create(&[]Item{{OrderID: 3}, *item1()}).Error
		},
		"a transaction": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Create(&Order{ID: 19}).Error; err != nil {
					return err
				}
				return upsertAll(tx).Create(item1()).Error
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, sharding.Transactions(sharding.BestEffort))
			if err := c.Create(&[]Item{{ID: 1, OrderID: 1, SKU: "a"}, {ID: 2, OrderID: 2, SKU: "b"}}).Error; err != nil {
				t.Fatal(err)
			}
			err := upsert(c.DB)
			if !errors.Is(err, sharding.ErrKeyChange) || !strings.Contains(err.Error(), "db1/items_1") {
				t.Errorf("%v", err)
			}
			c.rec.take()
			var ids []int64
			if err := c.WithContext(sharding.AllShards(t.Context())).Model(&Item{}).Order("id").Pluck("id", &ids).Error; err != nil || !slices.Equal(ids, []int64{1, 2}) && name != "in batches" {
				t.Errorf("items %v, %v", ids, err)
			}
		})
	}
}

func TestUpsertsDoNotDoubleARowWhoseIDCarriesNoSlot(t *testing.T) {
	for name, upsert := range map[string]func(db *gorm.DB) *gorm.DB{
		"Save":      func(db *gorm.DB) *gorm.DB { return db.Save(&Sale{ID: 5, UserID: 2}) },
		"UpdateAll": func(db *gorm.DB) *gorm.DB { return upsertAll(db).Create(&Sale{ID: 5, UserID: 2}) },
		"DO NOTHING": func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Sale{ID: 5, UserID: 2})
		},
		"among ids that carry one": func(db *gorm.DB) *gorm.DB {
			return upsertAll(db).Create(&[]Sale{{ID: 16003, UserID: 3}, {ID: 5, UserID: 2}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newShop(t, bucketed(t, 4)) // ids from 1000 on carry their slots
			if err := db.Create(&Sale{ID: 5, UserID: 1}).Error; err != nil {
				t.Fatal(err)
			}
			if err := upsert(db).Error; !errors.Is(err, sharding.ErrKeyChange) || !strings.Contains(err.Error(), "/sales_1,") {
				t.Error(err)
			}
			var n int64
			if err := db.Model(&Sale{}).Count(&n).Error; err != nil || n != 1 {
				t.Errorf("%d sales, %v", n, err)
			}
			if err := db.Save(&Sale{ID: 5, UserID: 1, Note: "new"}).Error; err != nil {
				t.Errorf("under its own key: %v", err)
			}
		})
	}
}

func TestUpsertsOfRowsOnTheirShardOrNowhereSucceed(t *testing.T) {
	for name, upsert := range map[string]func(c *cluster) *gorm.DB{
		"Save":            func(c *cluster) *gorm.DB { return c.Save(&Item{ID: 1, OrderID: 1, SKU: "new"}) },
		"Save of a slice": func(c *cluster) *gorm.DB { return c.Save(&[]Item{{ID: 1, OrderID: 1, SKU: "new"}}) },
		"UpdateAll":       func(c *cluster) *gorm.DB { return upsertAll(c.DB).Create(&Item{ID: 1, OrderID: 1, SKU: "new"}) },
		"association": func(c *cluster) *gorm.DB {
			return c.Session(&gorm.Session{FullSaveAssociations: true}).Save(&Order{ID: 1, Items: []Item{{ID: 1, OrderID: 1, SKU: "new"}}})
		},
		"a row that is nowhere": func(c *cluster) *gorm.DB {
			if err := c.Delete(&Item{ID: 1, OrderID: 1}).Error; err != nil {
				return &gorm.DB{Error: err}
			}
			return c.Save(&Item{ID: 1, OrderID: 1, SKU: "new"})
		},
		"rows of several shards": func(c *cluster) *gorm.DB {
			return c.Save(&[]Item{{ID: 60, OrderID: 5, SKU: "x"}, {ID: 1, OrderID: 1, SKU: "new"}, {OrderID: 3, SKU: "y"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if err := c.Create(&Item{ID: 1, OrderID: 1, SKU: "a"}).Error; err != nil {
				t.Fatal(err)
			}
			if err := upsert(c).Error; err != nil {
				t.Fatal(err)
			}
			var items []Item
			if err := c.Where("order_id = ? AND id = ?", 1, 1).Find(&items).Error; err != nil || len(items) != 1 || items[0].SKU != "new" {
				t.Errorf("%v, %+v", err, items)
			}
		})
	}
}

func TestDoNothingSkipsRowsThatLieInTheirShard(t *testing.T) {
	skip := clause.OnConflict{DoNothing: true}
	for name, create := range map[string]func(db *gorm.DB) *gorm.DB{
		"a row": func(db *gorm.DB) *gorm.DB { return db.Clauses(skip).Create(&Sale{ID: 5, UserID: 1}) },
		"several": func(db *gorm.DB) *gorm.DB {
			return db.Clauses(skip).Create(&[]Sale{{ID: 5, UserID: 1}, {ID: 6, UserID: 2}})
		},
		"belongs to": func(db *gorm.DB) *gorm.DB { return db.Create(&Refund{ID: 1, Sale: Sale{ID: 5, UserID: 1}}) },
		"many to many": func(db *gorm.DB) *gorm.DB {
			return db.Create(&Refund{ID: 1, Sale: Sale{ID: 6, UserID: 1}, Others: []Sale{{ID: 5, UserID: 1}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newShop(t, bucketed(t, 4))
			home, err := db.DB()
			if err != nil {
				t.Fatal(err)
			}
			must(t, home, "CREATE TABLE refunds (id INTEGER PRIMARY KEY, sale_id INTEGER)")
			must(t, home, "CREATE TABLE refund_others (refund_id INTEGER, sale_id INTEGER, PRIMARY KEY (refund_id, sale_id))")
			if err := db.Create(&Sale{ID: 5, UserID: 1, Note: "old"}).Error; err != nil {
				t.Fatal(err)
			}
			if err := create(db.WithContext(t.Context())).Error; err != nil {
				t.Fatal(err)
			}
			var sales []Sale
			if err := db.Where("id = ?", 5).Find(&sales).Error; err != nil || len(sales) != 1 || sales[0].Note != "old" {
				t.Errorf("%+v, %v", sales, err)
			}
		})
	}
}

// Refund is not sharded, and belongs to a sale.
type Refund struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false"`
	SaleID int64
	Sale   Sale
	Others []Sale `gorm:"many2many:refund_others"`
}

func TestUpsertsThatNeedNoSearchSendNone(t *testing.T) {
	c := newCluster(t)
	for name, upsert := range map[string]func() *gorm.DB{
		"new ids": func() *gorm.DB {
			return upsertAll(c.DB).Create(&[]Item{{OrderID: 1, SKU: "n1"}, {OrderID: 5, SKU: "n2"}})
		},
		"an id that is the key": func() *gorm.DB { return upsertAll(c.DB).Create(&Order{ID: 5}) },
		"the key in the conflict": func() *gorm.DB {
			return c.Session(&gorm.Session{DryRun: true}).Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "order_id"}, {Name: "id"}}, UpdateAll: true}).Create(&Item{ID: 7, OrderID: 1})
		},
	} {
		c.rec.take()
		if err := upsert().Error; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if events := c.rec.take(); slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "SELECT") }) {
			t.Errorf("%s: %q", name, events)
		}
	}
}

func TestUpsertsThatDependOnAnotherUniqueKeySearchForIt(t *testing.T) {
	skip := clause.OnConflict{DoNothing: true}
	bySKU := []clause.Column{{Name: "sku"}}
	for name, on := range map[string]clause.OnConflict{
		"DO NOTHING": skip, "DO NOTHING of the key": {Columns: bySKU, DoNothing: true},
		"DO UPDATE": {Columns: bySKU, DoUpdates: clause.AssignmentColumns([]string{"sku"})},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if err := c.Create(&Item{OrderID: 1, SKU: "a"}).Error; err != nil {
				t.Fatal(err)
			}
			if err := c.Clauses(on).Create(&Item{OrderID: 2, SKU: "a"}).Error; !errors.Is(err, sharding.ErrKeyChange) {
				t.Errorf("a row of another shard has the key: %v", err)
			}
			if err := c.Clauses(on).Create(&Item{OrderID: 1, SKU: "a"}).Error; err != nil {
				t.Errorf("one of its own shard has it: %v", err)
			}
			if err := c.Clauses(on).Create(&Item{OrderID: 2, SKU: "b"}).Error; err != nil {
				t.Errorf("none has it: %v", err)
			}
			var skus []string
			if err := c.WithContext(sharding.AllShards(t.Context())).Model(&Item{}).Order("sku").Pluck("sku", &skus).Error; err != nil || !slices.Equal(skus, []string{"a", "b"}) {
				t.Errorf("%q, %v", skus, err)
			}
		})
	}
}

func TestUpsertsSearchForTheirRowsOnce(t *testing.T) {
	c := newCluster(t)
	if err := c.Create(&Item{ID: 1, OrderID: 1, SKU: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	c.rec.take()
	if err := c.Save(&[]Item{{ID: 1, OrderID: 1, SKU: "b"}, {ID: 40, OrderID: 1, SKU: "c"}}).Error; err != nil {
		t.Fatal(err)
	}
	sent := c.rec.take()
	slices.Sort(sent[1:min(3, len(sent))]) // the databases are asked at the same time
	sameEvents(t, sent,
		"db1: SELECT 1, `id`, `order_id` FROM `items_1` WHERE `id` IN (?, ?)",
		"db0: SELECT 0, `id`, `order_id` FROM `items_0` WHERE `id` IN (?) UNION ALL SELECT 2, `id`, `order_id` FROM `items_2` WHERE `id` IN (?)",
		"db1: SELECT 3, `id`, `order_id` FROM `items_3` WHERE `id` IN (?)",
		"db1: BEGIN",
		"db1: INSERT INTO `items_1` (`id`,`order_id`,`sku`) VALUES (?,?,?),(?,?,?) ON CONFLICT (`id`) DO UPDATE SET `order_id`=`excluded`.`order_id`,`sku`=`excluded`.`sku`",
		"db1: COMMIT")
}

func TestAKeyOfAnotherSlotIsAnotherKeyInTheSameTableToo(t *testing.T) {
	c := newCluster(t) // 16 slots in 4 tables
	if err := c.Create(&Item{ID: 1, OrderID: 1, SKU: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	if err := c.Save(&Item{ID: 1, OrderID: 5, SKU: "a"}).Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("another slot: %v", err)
	}
	if err := c.Save(&Item{ID: 1, OrderID: 17, SKU: "b"}).Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("the row that Save updates has another key: %v", err)
	}
	if err := upsertAll(c.DB).Create(&Item{ID: 1, OrderID: 17, SKU: "b"}).Error; err != nil {
		t.Errorf("the same slot: %v", err)
	}
	var items []Item
	if err := c.Where("order_id IN ?", []int64{1, 17}).Find(&items).Error; err != nil || len(items) != 1 || items[0].SKU != "b" {
		t.Errorf("%v, %+v", err, items)
	}
}

func TestACopyThatAMoveOfASlotLeftBehindIsIgnored(t *testing.T) {
	c := newCluster(t)
	must(t, c.router.DB("db0"), "INSERT INTO items_2 (id, order_id, sku) VALUES (1, 5, 'old')")
	if err := c.Save(&Item{ID: 1, OrderID: 5, SKU: "new"}).Error; err != nil {
		t.Error(err)
	}
}

func TestUpsertsSetTheShardingKeyToThatOfTheirRowOnly(t *testing.T) {
	c := newCluster(t)
	on := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"order_id", "sku"})}
	if err := c.Clauses(on).Create(&Item{OrderID: 5, SKU: "a"}).Error; err != nil {
		t.Errorf("to the value of a row that is new: %v", err)
	}
	on.DoUpdates = clause.Assignments(map[string]any{"order_id": 5})
	if err := c.Clauses(on).Create(&Item{OrderID: 5, SKU: "b"}).Error; !errors.Is(err, sharding.ErrKeyChange) || !strings.Contains(err.Error(), "leave order_id out") {
		t.Error(err)
	}
	db, _ := newShop(t, bucketed(t, 4))
	on.DoUpdates = clause.Assignments(map[string]any{"id": 16007})
	if err := db.Clauses(on).Create(&Sale{UserID: 5}).Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
}

func TestUpsertsOverMoreShardsThanAllowedAreRefused(t *testing.T) {
	c := newCluster(t, sharding.FanOut(3, 2))
	err := c.Save(&Item{ID: 40, OrderID: 1, SKU: "c"}).Error
	if !errors.Is(err, sharding.ErrTooManyShards) {
		t.Error(err)
	}
}

func TestOnKeyMustAgreeWithTheStatementsOwnKey(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	of4 := c.WithContext(sharding.OnKey(t.Context(), "orders", 4))
	target, err := c.router.Target("orders", 4)
	if err != nil {
		t.Fatal(err)
	}
	on4 := c.WithContext(sharding.On(t.Context(), target))
	for name, run := range map[string]func(db *gorm.DB) *gorm.DB{
		"query":        func(db *gorm.DB) *gorm.DB { return db.Where("id = ?", 3).Find(&[]Order{}) },
		"IN":           func(db *gorm.DB) *gorm.DB { return db.Find(&[]Order{}, []int64{3, 4}) },
		"count":        func(db *gorm.DB) *gorm.DB { var n int64; return db.Model(&Order{}).Where("id = ?", 3).Count(&n) },
		"update":       func(db *gorm.DB) *gorm.DB { return db.Model(&Order{ID: 3}).Update("note", "x") },
		"delete":       func(db *gorm.DB) *gorm.DB { return db.Delete(&Order{}, 3) },
		"of its group": func(db *gorm.DB) *gorm.DB { return db.Where("order_id = ?", 3).Delete(&Item{}) },
		"model's key":  func(db *gorm.DB) *gorm.DB { return db.Save(&Item{ID: 9001, OrderID: 3, SKU: "s"}) },
	} {
		if err := run(of4).Error; !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "leave sharding.OnKey out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := on4.Where("id = ?", 3).Delete(&Order{}).Error; err != nil {
		t.Errorf("a target that is named: %v", err)
	}
	for _, condition := range []string{"id = 4", "note <> ''", "id IN (NULL)"} {
		if err := of4.Where(condition).Find(&[]Order{}).Error; err != nil {
			t.Errorf("%s: %v", condition, err)
		}
	}
	if got := c.notes(t, 3); got != "note 3" {
		t.Errorf("order 3: %s", got)
	}
}

func TestErrorsOfOneOfSeveralShardsNameIt(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads, sharding.Transactions(sharding.BestEffort))
	must(t, c.router.DB("db0"), "DROP TABLE orders_2")
	for name, err := range map[string]error{
		"query":  c.Where("note <> ?", "").Find(&[]Order{}).Error,
		"count":  c.Model(&Order{}).Where("note <> ?", "").Count(new(int64)).Error,
		"create": c.WithContext(sharding.AllShards(t.Context())).Create(&[]Order{{ID: 4}, {ID: 6}}).Error,
		"raw":    c.WithContext(sharding.AllShards(t.Context())).Exec("UPDATE orders SET note = 'x'").Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "shard db0/orders_2: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnErrorOfOneShardIsTheDriversOwn(t *testing.T) {
	c := newCluster(t)
	must(t, c.router.DB("db0"), "DROP TABLE orders_2")
	for name, err := range map[string]error{
		"query":    c.First(&Order{}, 2).Error,
		"row":      c.Model(&Order{}).Where("id = ?", 2).Count(new(int64)).Error,
		"create":   c.Create(&Order{ID: 2}).Error,
		"update":   c.Model(&Order{ID: 2}).Update("note", "x").Error,
		"delete":   c.Delete(&Order{ID: 2}).Error,
		"prepared": c.Session(&gorm.Session{PrepareStmt: true}).First(&Order{}, 2).Error,
	} {
		if _, own := err.(interface{ Code() int }); !own || dialect.FaultOf(err) != dialect.NoTable {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}

func TestTheErrorOfADatabaseThatIsClosedNamesItOnce(t *testing.T) {
	c := newCluster(t)
	if err := c.router.DB("db0").Close(); err != nil {
		t.Fatal(err)
	}
	order := Order{ID: 2}
	for name, err := range map[string]error{"create": c.Create(&order).Error, "read": c.First(&Order{}, 2).Error} {
		if err == nil || err.Error() != "database db0: sql: database is closed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// translator knows errors as the driver returns them, like those of GORM.
type translator struct{ gorm.Dialector }

func (translator) Translate(err error) error {
	if driver, ok := err.(*sqlite.Error); ok && driver.Code() == 1555 { //nolint:errorlint // see above
		return gorm.ErrDuplicatedKey
	}
	return err
}

func TestErrorsOfSeveralShardsAreTranslated(t *testing.T) {
	c := newCluster(t)
	db := c.Session(&gorm.Session{})
	config := *db.Config
	config.TranslateError, config.Dialector = true, translator{config.Dialector}
	db.Config = &config
	if err := db.Create(&[]Item{{ID: 1, OrderID: 4, SKU: "a"}, {ID: 1, OrderID: 2, SKU: "b"}, {ID: 1, OrderID: 2, SKU: "b"}}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) || !strings.Contains(err.Error(), "items_2") {
		t.Error(err)
	}
}

// The replicas are empty: a query on one would not find the row.
func TestUpsertsSearchForTheirRowsOnTheSourceAndNotOnReplicas(t *testing.T) {
	c := newCluster(t)
	if err := c.Create(&Item{ID: 1, OrderID: 1, SKU: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	replica := memory(t)
	for _, name := range []string{"items_1", "items_3"} {
		must(t, replica, fmt.Sprintf(createItems, name))
	}
	db := openGORM(t, c.home)
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: c.router, Replicas: map[string][]*sql.DB{"db1": {replica}}})); err != nil {
		t.Fatal(err)
	}
	db = db.WithContext(gormplugin.Off(t.Context()))
	if tx := db.Find(&[]Item{}, "order_id = 1"); tx.Error != nil || tx.RowsAffected != 0 {
		t.Errorf("a read is not one of the replica: %d rows, %v", tx.RowsAffected, tx.Error)
	}
	for name, send := range map[string]func(tx *gorm.DB) error{
		"Save":      func(tx *gorm.DB) error { return tx.Save(&Item{ID: 1, OrderID: 3, SKU: "b"}).Error },
		"UpdateAll": func(tx *gorm.DB) error { return upsertAll(tx).Create(&Item{ID: 1, OrderID: 3, SKU: "b"}).Error },
		"a transaction": func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return upsertAll(tx).Create(&Item{ID: 1, OrderID: 3, SKU: "b"}).Error })
		},
	} {
		if err := send(db); !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := db.Save(&Item{ID: 1, OrderID: 1, SKU: "own"}).Error; err != nil {
		t.Error(err)
	}
	var items []Item
	if err := c.Find(&items, "order_id IN ?", []int{1, 3}).Error; err != nil || len(items) != 1 || items[0].SKU != "own" {
		t.Errorf("%+v, %v", items, err)
	}
}
