// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

func TestATransactionBeginsWithItsFirstStatementOnItsDatabase(t *testing.T) {
	c := newCluster(t)
	err := c.Transaction(func(tx *gorm.DB) error {
		sameEvents(t, c.rec.take())
		if err := tx.Create(&Order{ID: 5, Note: "o"}).Error; err != nil {
			return err
		}
		return tx.Create(&Item{OrderID: 5, SKU: "i"}).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, c.rec.take(), "db1: BEGIN",
		"db1: INSERT INTO `orders_1` (`id`,`user_id`,`note`) VALUES (?,?,?)",
		"db1: INSERT INTO `items_1` (`id`,`order_id`,`sku`) VALUES (?,?,?)", "db1: COMMIT")
}

func TestAnOrderAndItsItemsAreStoredTogetherOrNotAtAll(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, create := range map[string]func() error{
		"in Transaction": func() error {
			return c.Transaction(func(tx *gorm.DB) error {
				if err := tx.Create(&Order{ID: 21, Note: "o"}).Error; err != nil {
					return err
				}
				return tx.Create(&Item{OrderID: 21, SKU: "a5"}).Error
			})
		},
		"with associations": func() error {
			return c.Create(&Order{ID: 21, Note: "o", Items: []Item{{SKU: "new"}, {SKU: "a5"}}}).Error
		},
		"by Begin": func() error {
			tx := c.Begin()
			defer tx.Rollback()
			return errors.Join(tx.Create(&Order{ID: 21}).Error, tx.Create(&Item{OrderID: 21, SKU: "a5"}).Error)
		},
	} {
		err := create()
		if err == nil || !strings.Contains(err.Error(), "UNIQUE") {
			t.Fatalf("%s: %v", name, err)
		}
		if got := c.notes(t, 21); got != "no row" {
			t.Errorf("%s: the order is there: %q", name, got)
		}
	}
}

func TestAStatementForAnotherDatabaseIsRefusedBeforeItIsSent(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, second := range map[string]func(tx *gorm.DB) error{
		"other shard":   func(tx *gorm.DB) error { return tx.Create(&Order{ID: 30}).Error },
		"read there":    func(tx *gorm.DB) error { return tx.First(&Order{}, 2).Error },
		"row there":     func(tx *gorm.DB) error { return tx.Model(&Order{}).Where("id = 2").Row().Err() },
		"home table":    func(tx *gorm.DB) error { return tx.Create(&User{Name: "u"}).Error },
		"raw at home":   func(tx *gorm.DB) error { return tx.Exec("DELETE FROM users").Error },
		"query at home": func(tx *gorm.DB) error { return tx.Raw("SELECT COUNT(*) FROM users").Row().Err() },
		"nested": func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{DisableNestedTransaction: true}).Transaction(func(tx *gorm.DB) error { return tx.First(&Order{}, 2).Error })
		},
	} {
		c.rec.take()
		err := c.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Order{ID: 5}).Update("note", "in tx").Error; err != nil {
				return err
			}
			return second(tx)
		})
		var route *sharding.RouteError
		if !errors.Is(err, sharding.ErrCrossDatabase) || !errors.As(err, &route) {
			t.Errorf("%s: %v", name, err)
		}
		sameEvents(t, c.rec.take(), "db1: BEGIN", "db1: UPDATE `orders_1` AS `orders` SET `note`=? WHERE `id` = ?", "db1: ROLLBACK")
		if got := c.notes(t, 5); got != "note 5" {
			t.Errorf("%s: not rolled back: %q", name, got)
		}
	}
}

func TestATransactionOnHomeRefusesShards(t *testing.T) {
	c := newCluster(t)
	err := c.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&User{Name: "u"}).Error; err != nil {
			return err
		}
		return tx.Create(&Order{Note: "o"}).Error
	})
	if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "transaction spans databases: it has begun on the home database, and this statement is for database db0;") {
		t.Error(err)
	}
}

func TestHomeMayBeAShardsDatabase(t *testing.T) {
	rec := &recorder{}
	db0, db1 := rec.open(t, "db0"), rec.open(t, "db1")
	router := newRouter(t, sharding.DBs{"db0": db0, "db1": db1})
	must(t, db0, "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	must(t, db0, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
	db := openGORM(t, db0)
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	rec.take()
	err := db.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&User{Name: "u"}).Error, tx.Table("orders").Create(map[string]any{"id": 4}).Error)
	})
	if err != nil {
		t.Error(err)
	}
	sameEvents(t, rec.take(), "db0: BEGIN", "db0: INSERT INTO `users` (`name`) VALUES (?) RETURNING `id`",
		"db0: INSERT INTO `orders_0` (`id`) VALUES (?)", "db0: COMMIT")
}

func TestAnUnusedTransactionSendsNothing(t *testing.T) {
	c := newCluster(t)
	if err := c.Transaction(func(*gorm.DB) error { return nil }); err != nil {
		t.Error(err)
	}
	tx := c.Begin()
	if err := tx.Rollback().Error; err != nil {
		t.Error(err)
	}
	if err := tx.Commit().Error; !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("Commit after Rollback: %v", err)
	}
	if err := c.Begin().Rollback().Exec("SELECT 1").Error; !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("a statement after Rollback: %v", err)
	}
	sameEvents(t, c.rec.take())
}

func TestATransactionWhoseContextHasEndedIsAnError(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := c.WithContext(ctx).Transaction(func(*gorm.DB) error { cancel(); return nil })
	if !isEnded(err) {
		t.Errorf("Commit: %v", err)
	}
	if err := c.WithContext(ctx).Begin().Error; !errors.Is(err, context.Canceled) {
		t.Errorf("Begin: %v", err)
	}
	for range 20 { // what waits for the connection finds it free and its context ended
		ctx, cancel := context.WithCancel(t.Context())
		err := c.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			cancel()
			tx.First(&Order{}, 1)
			return nil
		})
		if !isEnded(err) {
			t.Fatalf("Transaction: %v", err)
		}
	}
}

// isEnded reports whether database/sql says that the context has ended, or that it has
// rolled the transaction back for that.
func isEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone)
}

func TestSavepointsAreRepeatedWhereTheTransactionBegins(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	err := c.Transaction(func(tx *gorm.DB) error {
		failed := tx.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Order{ID: 5}).Update("note", "inner").Error; err != nil {
				return err
			}
			return errors.New("give up")
		})
		if failed == nil || failed.Error() != "give up" {
			t.Errorf("inner: %v", failed)
		}
		return tx.Model(&Order{ID: 1}).Update("note", "outer").Error
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.notes(t, 5) != "note 5" || c.notes(t, 1) != "outer" {
		t.Errorf("5 holds %q, 1 holds %q", c.notes(t, 5), c.notes(t, 1))
	}
	var verbs []string
	for _, event := range c.rec.take() {
		verbs = append(verbs, strings.Join(strings.Fields(event)[:2], " "))
	}
	if got, want := strings.Join(verbs[:6], ", "), "db1: BEGIN, db1: SAVEPOINT, db1: UPDATE, db1: ROLLBACK, db1: UPDATE, db1: COMMIT"; got != want {
		t.Errorf("sent %s", got)
	}
}

func TestTheTransactionKeepsItsOwnContextAndOptions(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	tx := c.Begin(&sql.TxOptions{ReadOnly: true})
	ctx, cancel := context.WithCancel(t.Context())
	if err := tx.WithContext(ctx).First(&Order{}, 5).Error; err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := tx.First(&Order{}, 5).Error; err != nil {
		t.Errorf("the end of a statement's context ended the transaction: %v", err)
	}
	if err := tx.Commit().Error; err != nil {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	tx = c.WithContext(ctx).Begin()
	if err := tx.WithContext(t.Context()).Model(&Order{ID: 5}).Update("note", "undone").Error; err != nil {
		t.Error(err)
	}
	cancel()
	if err := tx.Commit().Error; !isEnded(err) || c.notes(t, 5) != "note 5" {
		t.Errorf("Commit of a transaction that has outlived its context: %v, order 5: %s", err, c.notes(t, 5))
	}
}

func TestAnImpossibleConditionDoesNotBindTheTransaction(t *testing.T) {
	c := newCluster(t)
	err := c.Transaction(func(tx *gorm.DB) error {
		none := func() error { return tx.Where("id IN ?", []int64{}).Find(&[]Order{}).Error }
		return errors.Join(none(), tx.Create(&Order{ID: 5}).Error, none())
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConcurrentStatementsShareOneTransaction(t *testing.T) {
	c := newCluster(t)
	tx := c.Begin()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := tx.Create(&Order{ID: int64(4*i + 1)}).Error; err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := tx.Rollback().Error; err != nil {
		t.Error(err)
	}
	begins := 0
	for _, event := range c.rec.take() {
		if strings.HasSuffix(event, "BEGIN") {
			begins++
		}
	}
	if begins != 1 || c.notes(t, 1) != "no row" {
		t.Errorf("%d BEGINs, order 1: %s", begins, c.notes(t, 1))
	}
}
