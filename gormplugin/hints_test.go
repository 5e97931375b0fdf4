// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestAHintSendsRawSQLToItsShard(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	on := c.WithContext(sharding.OnKey(t.Context(), "orders", 5))
	for name, s := range map[string]struct {
		run  func() error
		want []string
	}{
		"Raw": {func() error {
			var n int
			return on.Raw("SELECT count(*) FROM orders WHERE orders.note <> 'orders'").Scan(&n).Error
		},
			[]string{"db1: SELECT count(*) FROM `orders_1` AS orders WHERE orders.note <> 'orders'"}},
		"Exec": {func() error { return on.Exec("UPDATE orders SET note = ? WHERE id = 5", "x").Error },
			[]string{"db1: UPDATE `orders_1` AS orders SET note = ? WHERE id = 5"}},
		"Row": {func() error {
			return on.Raw("SELECT 1 FROM orders o JOIN items i ON o.id = i.order_id").Row().Scan(new(int))
		},
			[]string{"db1: SELECT 1 FROM `orders_1` o JOIN `items_1` i ON o.id = i.order_id"}},
		"table at home": {func() error { return on.Exec("DELETE FROM users WHERE id = 9").Error }, []string{"db0"}},
		"model without a key": {func() error { return on.Find(&[]Order{}).Error },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`"}},
		"another table of the group": {func() error { return on.Where("sku = ?", "a1").Find(&[]Item{}).Error },
			[]string{"db1: SELECT * FROM `items_1` AS `items` WHERE sku = ?"}},
		"a key of its own": {func() error { return on.Find(&[]Order{}, 1).Error }, []string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE `orders`.`id` = ?"}},
		"On, with a key of elsewhere": {func() error {
			return c.WithContext(sharding.On(t.Context(), sharding.Target{DB: "db0", Table: "orders_2"})).Find(&[]Order{}, 5).Error
		}, []string{"db0: SELECT * FROM `orders_2` AS `orders` WHERE `orders`.`id` = ?"}},
		"On": {func() error {
			return c.WithContext(sharding.On(t.Context(), sharding.Target{DB: "db0", Table: "orders_2"})).Model(&Order{}).Where("user_id = 1").Update("note", "y").Error
		}, []string{"db0: BEGIN", "db0: UPDATE `orders_2` AS `orders` SET `note`=? WHERE user_id = 1", "db0: COMMIT"}},
		"Unsharded": {func() error {
			return c.WithContext(sharding.Unsharded(t.Context())).Where("id = 1").Find(&[]Order{}).Error
		},
			[]string{"home: SELECT * FROM `orders` WHERE id = 1"}},
		"AllShards Exec": {func() error {
			tx := c.WithContext(sharding.AllShards(t.Context())).Exec("DELETE FROM orders WHERE id > 2 AND id < 9 AND id % 2 = 0 AND id % 4 = 0")
			return tx.Error
		}, nil},
	} {
		c.rec.take()
		if err := s.run(); err != nil && name != "AllShards Exec" {
			t.Errorf("%s: %v", name, err)
		}
		if s.want == nil {
			continue
		}
		if s.want[0] == "db0" {
			if got := c.rec.take(); len(got) != 1 || !strings.HasPrefix(got[0], "home:") {
				t.Errorf("%s: sent %q", name, got)
			}
			continue
		}
		sameEvents(t, c.rec.take(), s.want...)
	}
}

func TestAHintDoesNotAllowEveryStatement(t *testing.T) {
	c := newCluster(t)
	ctx := sharding.OnKey(t.Context(), "orders", 5)
	on, all := c.WithContext(ctx), c.WithContext(sharding.AllShards(t.Context()))
	for name, s := range map[string]struct {
		err  error
		want error
	}{
		"TRUNCATE":          {on.Exec("TRUNCATE TABLE orders").Error, sharding.ErrRawTable},
		"DROP":              {on.Exec("DROP TABLE orders").Error, sharding.ErrRawTable},
		"DDL everywhere":    {all.Exec("ALTER TABLE orders ADD x INT").Error, sharding.ErrRawTable},
		"two statements":    {on.Exec("DELETE FROM orders; DELETE FROM orders").Error, sharding.ErrRawTable},
		"schema":            {on.Exec("DELETE FROM main.orders").Error, sharding.ErrCrossShard},
		"another shard":     {on.Create(&Order{ID: 6}).Error, sharding.ErrMisplaced},
		"another's key":     {on.Where("id = ?", 6).Find(&[]Order{}).Error, sharding.ErrCrossShard},
		"and another's key": {on.Where("id IN ?", []int{5, 6}).Find(&[]Order{}).Error, sharding.ErrCrossShard},
		"bad key":           {c.WithContext(sharding.OnKey(t.Context(), "orders", "x")).Find(&[]Order{}).Error, sharding.ErrKeyType},
		"no target":         {c.WithContext(sharding.On(t.Context(), sharding.Target{DB: "db0", Table: "x"})).Find(&[]Order{}).Error, sharding.ErrCrossShard},
	} {
		if !errors.Is(s.err, s.want) {
			t.Errorf("%s: %v", name, s.err)
		}
	}
	sameEvents(t, c.rec.take())
}

func TestAWriteToAllShardsByHintAddsItsRowsUp(t *testing.T) {
	c := newCluster(t, sharding.Transactions(sharding.BestEffort))
	c.seed(t)
	tx := c.WithContext(sharding.AllShards(t.Context())).Exec("UPDATE orders SET note = 'all' WHERE user_id = ?", 1)
	if tx.Error != nil || tx.RowsAffected != 3 || c.notes(t, 7) != "all" {
		t.Errorf("%d rows, %v, order 7: %s", tx.RowsAffected, tx.Error, c.notes(t, 7))
	}
}

// Region is in every database.
type Region struct {
	ID   int64 `keygen:""`
	Name string
}

func newBroadcast(t *testing.T, options ...sharding.Option) *cluster {
	t.Helper()
	c := newCluster(t, append(options, sharding.Broadcast("regions"))...)
	must(t, c.home, "CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
	for _, name := range c.router.Databases() {
		must(t, c.router.DB(name), "CREATE TABLE regions (id INTEGER PRIMARY KEY, name TEXT)")
	}
	c.rec.take()
	return c
}

func TestABroadcastTableIsWrittenEverywhereAndReadOnce(t *testing.T) {
	c := newBroadcast(t)
	region := Region{Name: "north"}
	if tx := c.Create(&region); tx.Error != nil || tx.RowsAffected != 1 || region.ID != 100 {
		t.Fatalf("%+v, %d rows, %v", region, tx.RowsAffected, tx.Error)
	}
	const insert = "INSERT INTO `regions` (`id`,`name`) VALUES (?,?)"
	sent := slices.DeleteFunc(c.rec.take(), func(e string) bool { return strings.Contains(e, "SAVEPOINT") })
	sameEvents(t, sent, "home: BEGIN", "home: "+insert, "db0: BEGIN", "db0: "+insert, "db1: BEGIN", "db1: "+insert, "home: COMMIT", "db0: COMMIT", "db1: COMMIT")
	if err := c.First(&Region{}, region.ID).Error; err != nil {
		t.Error(err)
	}
	sameEvents(t, c.rec.take(), "home: SELECT * FROM `regions` WHERE `regions`.`id` = ? ORDER BY `regions`.`id` LIMIT 1")
	err := c.Transaction(func(tx *gorm.DB) error {
		return errors.Join(tx.Create(&Order{ID: 5}).Error, tx.First(&Region{}, region.ID).Error)
	})
	if err != nil {
		t.Errorf("read in a shard's transaction: %v", err)
	}
	if got := c.rec.take(); !strings.HasPrefix(got[2], "db1: SELECT * FROM `regions`") {
		t.Errorf("sent %q", got)
	}
	err = c.Transaction(func(tx *gorm.DB) error { return tx.Model(&region).Update("name", "x").Error })
	if !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("written in a transaction: %v", err)
	}
	if tx := c.Model(&region).Update("name", "south"); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("updated %d, %v", tx.RowsAffected, tx.Error)
	}
	if tx := c.Delete(&region); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("deleted %d, %v", tx.RowsAffected, tx.Error)
	}
}

func TestPreparedStatementsBelongToOneDatabase(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, db := range map[string]*gorm.DB{"session": c.Session(&gorm.Session{PrepareStmt: true}), "opened so": preparedCluster(t, c)} {
		for range 2 {
			for id := int64(1); id <= 4; id++ {
				var o Order
				if err := db.First(&o, id).Error; err != nil || o.ID != id {
					t.Errorf("%s: %+v, %v", name, o, err)
				}
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(tx.Model(&Order{ID: 5}).Update("note", name).Error, tx.First(&Order{}, 5).Error,
					tx.Transaction(func(tx *gorm.DB) error { return tx.First(&Order{}, 1).Error }))
			})
			if err != nil || c.notes(t, 5) != name {
				t.Errorf("%s: %v, %s", name, err, c.notes(t, 5))
			}
			if err := db.Exec("DELETE FROM orders").Error; !errors.Is(err, sharding.ErrMissingKey) {
				t.Errorf("%s: %v", name, err)
			}
			if err := db.Find(&[]Order{}, []int{1, 2, 3}).Error; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		prepares := map[string]int{}
		for _, e := range c.rec.take() {
			if strings.Contains(e, "PREPARE SELECT") && strings.Contains(e, "LIMIT 1") {
				prepares[e]++
			}
		}
		for e, n := range prepares {
			if n > 3 { // on the connections of two transactions, too
				t.Errorf("%s: %d times %s", name, n, e)
			}
		}
		if len(prepares) == 0 {
			t.Errorf("%s: nothing was prepared", name)
		}
	}
}

func preparedCluster(t *testing.T, c *cluster) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqliteOn(c.home), &gorm.Config{Logger: logger.Discard, PrepareStmt: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: c.router})); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestAnObserverIsToldAboutTheStatementsOfGORM(t *testing.T) {
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	var kinds []shardsql.Kind
	db := openGORM(t, dbs["db0"])
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: newRouter(t, dbs), Observer: shardsql.Observer{
		Statement: func(_ context.Context, s shardsql.Statement) { kinds = append(kinds, s.Kind) },
	}})); err != nil {
		t.Fatal(err)
	}
	var orders []Order
	_ = db.Find(&orders, "id = ?", 1) // there is no table
	_ = db.Where("note = 'x'").Delete(&Order{})
	_ = db.Exec("SELECT 1")
	if want := []shardsql.Kind{shardsql.One, shardsql.Refused, shardsql.Home}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

func TestReadsGoToReplicasUnlessTheyMustNot(t *testing.T) {
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	replica := rec.open(t, "replica")
	for _, db := range []*sql.DB{dbs["db1"], replica} {
		must(t, db, "CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	}
	db := openGORM(t, rec.open(t, "home"))
	config := gormplugin.Config{Router: newRouter(t, dbs), Replicas: map[string][]*sql.DB{"db1": {replica}}}
	if err := db.Use(gormplugin.New(config)); err != nil {
		t.Fatal(err)
	}
	from := func(db *gorm.DB) string {
		rec.take()
		if err := db.Find(&[]Order{}, 5).Error; err != nil {
			t.Error(err)
		}
		for _, e := range rec.take() {
			if strings.Contains(e, "SELECT") {
				return strings.Split(e, ":")[0]
			}
		}
		return ""
	}
	tx := db.Begin()
	for name, s := range map[string]struct{ got, want string }{
		"plain":       {from(db), "replica"},
		"primary":     {from(db.WithContext(sharding.Primary(t.Context()))), "db1"},
		"transaction": {from(tx), "db1"},
		"dbresolver":  {from(db.Set("gorm:db_resolver:write", struct{}{})), "db1"},
	} {
		if s.got != s.want {
			t.Errorf("%s: read from %s", name, s.got)
		}
	}
	if err := tx.Rollback().Error; err != nil {
		t.Error(err)
	}
	config.Replicas = map[string][]*sql.DB{"nowhere": {replica}}
	if err := openGORM(t, rec.open(t, "other")).Use(gormplugin.New(config)); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an unknown database: %v", err)
	}
}
