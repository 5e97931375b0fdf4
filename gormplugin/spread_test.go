// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

func TestASliceOverSeveralTablesOfOneDatabaseIsOneTransaction(t *testing.T) {
	c := newCluster(t)
	orders := []Order{{ID: 1, Note: "a"}, {ID: 3, Note: "b"}, {ID: 5, Note: "c"}}
	tx := c.Create(&orders)
	if tx.Error != nil || tx.RowsAffected != 3 {
		t.Fatalf("%d rows, %v", tx.RowsAffected, tx.Error)
	}
	sameEvents(t, c.rec.take(), "db1: BEGIN", "db1: SAVEPOINT shardid_statement",
		"db1: INSERT INTO `orders_1` (`id`,`user_id`,`note`) VALUES (?,?,?), (?,?,?)",
		"db1: INSERT INTO `orders_3` (`id`,`user_id`,`note`) VALUES (?,?,?)", "db1: RELEASE SAVEPOINT shardid_statement", "db1: COMMIT")
	for _, o := range orders {
		if got := c.notes(t, o.ID); got != o.Note {
			t.Errorf("order %d holds %q", o.ID, got)
		}
	}
}

func TestASliceWithoutADefaultTransactionIsStoredWholeOrNotAtAll(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	tx := c.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&[]Order{{ID: 21}, {ID: 3}})
	events := c.rec.take()
	if tx.Error == nil || c.notes(t, 21) != "no row" {
		t.Errorf("%v, order 21: %s", tx.Error, c.notes(t, 21))
	}
	if events[0] != "db1: BEGIN" || events[len(events)-1] != "db1: ROLLBACK" {
		t.Errorf("sent %q", events)
	}
	if err := c.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&[]Order{{ID: 21}, {ID: 23}}).Error; err != nil || c.notes(t, 23) != "" {
		t.Errorf("%v, order 23: %q", err, c.notes(t, 23))
	}
}

func TestASliceOverSeveralDatabasesIsRefusedBeforeAnythingIsSent(t *testing.T) {
	c := newCluster(t)
	items := []Item{{OrderID: 1}, {OrderID: 2}}
	for name, tx := range map[string]*gorm.DB{
		"Create":             c.Create(&items),
		"CreateInBatches":    c.CreateInBatches(&items, 2),
		"without default tx": c.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&items),
		"maps":               c.Table("orders").Create([]map[string]any{{"id": 1}, {"id": 2}}),
		"upsert":             c.Clauses(clause.OnConflict{UpdateAll: true}).Create(&[]Order{{ID: 1}, {ID: 2}}),
		"update":             c.Model(&Order{}).Where("id IN ?", []int{1, 2}).Update("note", "x"),
		"delete":             c.Delete(&Order{}, []int{1, 2}),
	} {
		if !errors.Is(tx.Error, sharding.ErrCrossDatabase) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	sameEvents(t, c.rec.take())
	if items[0].ID != 0 || items[1].ID != 0 {
		t.Errorf("the ids were kept: %+v", items)
	}
}

func TestBestEffortSpansDatabases(t *testing.T) {
	c := newCluster(t, sharding.Transactions(sharding.BestEffort))
	orders := make([]Order, 20)
	tx := c.CreateInBatches(&orders, 8)
	if tx.Error != nil || tx.RowsAffected != 20 {
		t.Fatalf("%d rows, %v", tx.RowsAffected, tx.Error)
	}
	for i, o := range orders {
		if o.ID == 0 || c.notes(t, o.ID) != "" {
			t.Errorf("order %d: id %d, %s", i, o.ID, c.notes(t, o.ID))
		}
	}
	begins, commits := 0, 0
	for _, e := range c.rec.take() {
		begins += strings.Count(e, "BEGIN")
		commits += strings.Count(e, "COMMIT")
	}
	if begins != 2 || commits != 2 {
		t.Errorf("%d BEGIN, %d COMMIT", begins, commits)
	}
	failed := c.Create(&[]Order{{ID: 500, Note: "new"}, {ID: orders[1].ID}, {ID: 501}})
	if failed.Error == nil || c.notes(t, 500) != "no row" || c.notes(t, 501) != "no row" {
		t.Errorf("a failed batch left rows: %v", failed.Error)
	}
	tx = c.Model(&Order{}).Where("id IN ?", []int64{orders[0].ID, orders[1].ID, orders[2].ID, 99999}).Update("note", "many")
	if tx.Error != nil || tx.RowsAffected != 3 {
		t.Errorf("updated %d, %v", tx.RowsAffected, tx.Error)
	}
	tx = c.Delete(&Order{}, "id = ? OR id = ?", orders[0].ID, orders[1].ID)
	if tx.Error != nil || tx.RowsAffected != 2 {
		t.Errorf("deleted %d, %v", tx.RowsAffected, tx.Error)
	}
}

func TestRowsOfKeysOnSeveralShardsAreFoundOnce(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	var orders []Order
	for name, tx := range map[string]*gorm.DB{
		"text":        c.Where("id IN ?", []int64{1, 2, 5}).Find(&orders),
		"parentheses": c.Where("id IN (?) AND 1", []int64{1, 2, 5}).Find(&orders),
		"clause":      c.Find(&orders, []int64{1, 2, 5}),
		"map":         c.Where(map[string]any{"id": []int64{1, 2, 5}}).Find(&orders),
		"nested":      c.Where(clause.Where{Exprs: []clause.Expression{clause.IN{Column: "id", Values: []any{1, 2, 5}}}}).Find(&orders),
	} {
		if tx.Error != nil || len(orders) != 3 {
			t.Errorf("%s: %d orders, %v", name, len(orders), tx.Error)
		}
	}
	if sent := c.rec.take(); len(sent) != 5*2 {
		t.Errorf("sent %q", sent)
	}
	c.Where("NOT (id IN ?)", []int64{1}).Where("id IN ?", []int64{1, 2}).Find(&orders)
	if len(orders) != 1 || orders[0].ID != 2 {
		t.Errorf("with NOT: %+v", orders)
	}
}

// likeOneTable compares the results of the cluster with those of one table.
func likeOneTable(t *testing.T, c *cluster, whole *gorm.DB, name string, query func(db *gorm.DB) (any, error)) {
	t.Helper()
	got, err := query(c.DB)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	want, err := query(whole)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("%s:\n\tgot  %v\n\twant %v", name, got, want)
	}
}

func (c *cluster) beside(t *testing.T) *gorm.DB {
	t.Helper()
	whole := openGORM(t, c.rec.open(t, "whole"))
	for ddl, name := range map[string]string{createOrders: "orders", createItems: "items", createPapers: "papers"} {
		if err := whole.Exec(fmt.Sprintf(ddl, name)).Error; err != nil {
			t.Fatal(err)
		}
	}
	for id := int64(1); id <= 12; id++ {
		o := Order{ID: id, UserID: id * 7 % 5, Note: string(rune('a' + id*5%4))}
		i := Item{ID: 100 + id, OrderID: id, SKU: fmt.Sprint("s", id)}
		p := Paper{ID: id, Title: "t"}
		if err := errors.Join(c.Create(&o).Error, whole.Create(&o).Error, c.Create(&i).Error, whole.Create(&i).Error, c.Create(&p).Error, whole.Create(&p).Error); err != nil {
			t.Fatal(err)
		}
	}
	return whole
}

func TestResultsOfSeveralShardsAreThoseOfOneTable(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads)
	whole := c.beside(t)
	for name, query := range map[string]func(db *gorm.DB) (any, error){
		"rows by key":    func(db *gorm.DB) (any, error) { return rowsOf(db.Order("id")) },
		"by two columns": func(db *gorm.DB) (any, error) { return rowsOf(db.Order("user_id DESC, orders.note").Order("id DESC")) },
		"LIMIT":          func(db *gorm.DB) (any, error) { return rowsOf(db.Order("note, id").Limit(3).Offset(2)) },
		"OFFSET beyond":  func(db *gorm.DB) (any, error) { return rowsOf(db.Order("id").Limit(3).Offset(99)) },
		"LIMIT 0":        func(db *gorm.DB) (any, error) { return rowsOf(db.Order("id").Limit(0)) },
		"not selected":   func(db *gorm.DB) (any, error) { return pluck[string](db.Order("id DESC"), "note") },
		"IN":             func(db *gorm.DB) (any, error) { return rowsOf(db.Where("id IN ?", []int{7, 2, 4, 99}).Order("id")) },
		"OR": func(db *gorm.DB) (any, error) {
			return rowsOf(db.Where("id = 3 OR (id = 4 AND note <> '')").Order("id"))
		},
		"BETWEEN": func(db *gorm.DB) (any, error) {
			return rowsOf(db.Where("user_id BETWEEN 1 AND 3 AND id = ?", 3).Order("id"))
		},
		"named": func(db *gorm.DB) (any, error) {
			return rowsOf(db.Where("id IN @ids", map[string]any{"ids": []int{1, 2}}).Order("id"))
		},
		"First":           func(db *gorm.DB) (any, error) { var o Order; return &o, db.First(&o).Error },
		"Last":            func(db *gorm.DB) (any, error) { var o Order; return &o, db.Last(&o).Error },
		"COUNT":           func(db *gorm.DB) (any, error) { return count(db.Model(&Order{})) },
		"COUNT of IN":     func(db *gorm.DB) (any, error) { return count(db.Model(&Order{}).Where("id IN ?", []int{1, 2, 3, 50})) },
		"COUNT of groups": func(db *gorm.DB) (any, error) { return count(db.Model(&Order{}).Group("note")) },
		"COUNT DISTINCT":  func(db *gorm.DB) (any, error) { return count(db.Model(&Order{}).Distinct("id")) },
		"soft deletion":   func(db *gorm.DB) (any, error) { return count(db.Model(&Paper{})) },
		"aggregates": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("COUNT(*) AS n, SUM(user_id) s, MIN(note) lo, MAX(id) hi, AVG(user_id) a"))
		},
		"of no rows": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Where("note = 'zz'").Select("COUNT(*) AS n, SUM(user_id) s, MIN(note) lo, AVG(id) a"))
		},
		"SUM or zero": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("COALESCE(SUM(user_id), 0) s, ifnull(sum(orders.id), 0), note").Group("note").Order("s, note"))
		},
		"SUM or zero of a few": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Where("id < 2").Select("COALESCE(SUM(id * 2), 0) s"))
		},
		"names with dots": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("SUM(orders.id), MAX(user_id + 5), AVG(orders.id)"))
		},
		"zero of no rows": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Where("note = 'zz'").Select("COALESCE(SUM(id), 0), AVG(id) a"))
		},
		"GROUP BY": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("note, count(*) n, avg(user_id) a").Group("note").Order("n DESC, note"))
		},
		"GROUP BY hidden": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("count(*) n, max(id) hi").Group("note").Order("hi"))
		},
		"GROUP BY two": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("user_id, note, count(*) n").Group("user_id, note").Order("user_id,note"))
		},
		"GROUP BY key": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Item{}).Select("order_id, count(*) AS n").Group("order_id").Having("count(*) > 0").Order("order_id DESC").Limit(4))
		},
		"DISTINCT": func(db *gorm.DB) (any, error) {
			return pluck[string](db.Distinct("note").Order("note").Limit(3), "note")
		},
		"DISTINCT by another spelling": func(db *gorm.DB) (any, error) {
			return pluck[string](db.Model(&Order{}).Distinct().Order("orders.note DESC").Limit(3), "orders.note")
		},
		"DISTINCT key": func(db *gorm.DB) (any, error) { return pluck[int64](db.Distinct("id").Order("id").Limit(3), "id") },
		"scalar": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Select("id, upper(note) AS big").Order("big, id"))
		},
		"Scan": func(db *gorm.DB) (any, error) {
			var n []int64
			return &n, db.Model(&Order{}).Select("id").Order("id").Scan(&n).Error
		},
		"Rows": func(db *gorm.DB) (any, error) { return readRows(db.Model(&Order{}).Select("note").Order("note")) },
		"Row": func(db *gorm.DB) (any, error) {
			var n [1]int64
			return &n, db.Model(&Order{}).Select("max(id)").Row().Scan(&n[0])
		},
		"FindInBatches": inBatches,
		"Preload": func(db *gorm.DB) (any, error) {
			var o []Order
			return &o, db.Preload("Items").Order("id").Find(&o).Error
		},
		"into maps": func(db *gorm.DB) (any, error) {
			var m []map[string]any
			return &m, db.Table("orders").Order("id").Find(&m).Error
		},
		"generics": func(db *gorm.DB) (any, error) {
			return gorm.G[Order](db).Where("id IN ?", []int{1, 2, 3}).Order("id").Find(context.Background())
		},
	} {
		likeOneTable(t, c, whole, name, query)
	}
}

func rowsOf(db *gorm.DB) (any, error) {
	var orders []Order
	err := db.Find(&orders).Error
	return orders, err
}

func pluck[T any](db *gorm.DB, column string) (any, error) {
	var values []T
	err := db.Model(&Order{}).Pluck(column, &values).Error
	return values, err
}

func count(db *gorm.DB) (any, error) {
	var n int64
	err := db.Count(&n).Error
	return n, err
}

func asMaps(db *gorm.DB) (any, error) {
	var m []map[string]any
	err := db.Find(&m).Error
	return m, err
}

func inBatches(db *gorm.DB) (any, error) {
	var all, batch []Order
	err := db.FindInBatches(&batch, 5, func(*gorm.DB, int) error {
		all = append(all, batch...)
		return nil
	}).Error
	return all, err
}

func TestQueriesThatCannotBeMergedAreRefusedBeforeTheyAreSent(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads)
	orders := func() *gorm.DB { return c.Model(&Order{}) }
	if err := orders().Order("note").Find(&[]Order{}).Error; err != nil { // reads the table's definition
		t.Fatal(err)
	}
	c.rec.take()
	for name, tx := range map[string]*gorm.DB{
		"AVG DISTINCT":         orders().Select("AVG(DISTINCT user_id)").Find(&[]map[string]any{}),
		"unknown aggregate":    orders().Select("group_concat(note)").Find(&[]map[string]any{}),
		"window":               orders().Select("row_number() OVER (ORDER BY id)").Find(&[]map[string]any{}),
		"column not grouped":   orders().Select("id, count(*)").Find(&[]map[string]any{}),
		"ORDER BY ordinal":     orders().Order("1").Find(&[]Order{}),
		"ORDER BY COLLATE":     orders().Order("note COLLATE german").Find(&[]Order{}),
		"DISTINCT not ordered": orders().Distinct("note").Order("id").Find(&[]map[string]any{}),
	} {
		var route *sharding.RouteError
		if !errors.As(tx.Error, &route) || !errors.Is(tx.Error, sharding.ErrUnmergeable) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	sameEvents(t, c.rec.take())
}

func TestWritesNeverFanOutByDefault(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads, sharding.Transactions(sharding.BestEffort))
	c.seed(t)
	for name, tx := range map[string]*gorm.DB{
		"update": c.Model(&Order{}).Where("user_id = 1").Update("note", "x"),
		"delete": c.Where("user_id = 1").Delete(&Order{}),
	} {
		if !errors.Is(tx.Error, sharding.ErrMissingKey) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	sameEvents(t, c.rec.take())
	all := c.WithContext(sharding.AllShards(t.Context()))
	if tx := all.Model(&Order{}).Where("user_id = 1").Update("note", "x"); tx.Error != nil || tx.RowsAffected != 3 {
		t.Errorf("allowed by a hint: %d, %v", tx.RowsAffected, tx.Error)
	}
}

func TestTooManyShardsAreRefused(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads, sharding.FanOut(3, 2))
	for name, tx := range map[string]*gorm.DB{
		"everywhere": c.Find(&[]Order{}),
		"by keys":    c.Find(&[]Order{}, []int{1, 2, 3, 4}),
	} {
		if !errors.Is(tx.Error, sharding.ErrTooManyShards) {
			t.Errorf("%s: %v", name, tx.Error)
		}
	}
	sameEvents(t, c.rec.take())
	if err := c.Find(&[]Order{}, []int{1, 2, 3}).Error; err != nil {
		t.Error(err)
	}
}
