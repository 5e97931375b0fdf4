// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

func TestStatementsGoToTheTableOfTheirKey(t *testing.T) {
	order, item := func() *Order { return &Order{ID: 5, Note: "n"} }, func() *Item { return &Item{ID: 9008, OrderID: 5} }
	var n int64
	var notes []string
	const where5 = " WHERE `orders`.`id` = ?"
	for name, s := range map[string]struct {
		run  func(c *cluster) *gorm.DB
		want []string
	}{
		"First": {func(c *cluster) *gorm.DB { return c.First(&Order{}, 5) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5 + " ORDER BY `orders`.`id` LIMIT 1"}},
		"First by struct": {func(c *cluster) *gorm.DB { return c.First(&Order{ID: 5}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5 + " ORDER BY `orders`.`id` LIMIT 1"}},
		"Find text": {func(c *cluster) *gorm.DB { return c.Find(&[]Order{}, "5") },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5}},
		"Take Where struct": {func(c *cluster) *gorm.DB { return c.Where(&Order{ID: 5}).Take(&Order{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5 + " LIMIT 1"}},
		"Where map": {func(c *cluster) *gorm.DB { return c.Where(map[string]any{"id": 5, "note": "note 5"}).Find(&[]Order{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5 + " AND `orders`.`note` = ?"}},
		"Where raw": {func(c *cluster) *gorm.DB { return c.Where("orders.id = ?", 5).Find(&[]Order{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE orders.id = ?"}},
		"IN of one target": {func(c *cluster) *gorm.DB { return c.Where("id IN ?", []int64{1, 5}).Find(&[]Order{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE id IN (?,?)"}},
		"Count": {func(c *cluster) *gorm.DB { return c.Model(&Order{}).Where("id", 5).Count(&n) },
			[]string{"db1: SELECT count(*) FROM `orders_1` AS `orders` WHERE `id` = ?"}},
		"Pluck": {func(c *cluster) *gorm.DB {
			return c.Model(&Order{}).Where("id = ? AND user_id = ?", 5, 2).Pluck("note", &notes)
		},
			[]string{"db1: SELECT `note` FROM `orders_1` AS `orders` WHERE id = ? AND user_id = ?"}},
		"Table into map": {func(c *cluster) *gorm.DB { return c.Table("ORDERS").Where("id = ?", 5).Take(&map[string]any{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `ORDERS` WHERE id = ? LIMIT 1"}},
		"Joined by AND": {func(c *cluster) *gorm.DB { return c.Where("note <> ?", "x").Where("id = 5").Find(&[]Order{}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE note <> ? AND id = 5"}},
		"OR on one target": {func(c *cluster) *gorm.DB {
			return c.Where("id = ?", 1).Or("id = ? AND note = ?", 5, "x").Find(&[]Order{})
		},
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE id = ? OR (id = ? AND note = ?)"}},
		"clause in a clause": {func(c *cluster) *gorm.DB {
			return c.Where(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: "note", Value: ""}, clause.IN{Column: "id", Values: []any{1, 5}}}}).Find(&[]Order{})
		},
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE `note` = ? AND `id` IN (?,?)"}},
		"impossible condition": {func(c *cluster) *gorm.DB { return c.Where("id IN ?", []int64{}).Find(&[]Order{}) },
			[]string{"db0: SELECT * FROM `orders_0` AS `orders` WHERE id IN (NULL)"}},
		"Preload": {func(c *cluster) *gorm.DB { return c.Preload("Items").Find(&[]Order{}, []int64{1, 5}) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE `orders`.`id` IN (?,?)",
				"db1: SELECT * FROM `items_1` AS `items` WHERE `items`.`order_id` IN (?,?)"}},
		"Update": {func(c *cluster) *gorm.DB { return c.Model(order()).Update("note", "z") },
			[]string{"db1: BEGIN", "db1: UPDATE `orders_1` AS `orders` SET `note`=? WHERE `id` = ?", "db1: COMMIT"}},
		"Updates by condition": {func(c *cluster) *gorm.DB { return c.Model(&Order{}).Where("id = ?", 5).Updates(Order{Note: "z"}) },
			[]string{"db1: BEGIN", "db1: UPDATE `orders_1` AS `orders` SET `note`=? WHERE id = ?", "db1: COMMIT"}},
		"UpdateColumn Expr": {func(c *cluster) *gorm.DB {
			return c.Model(order()).UpdateColumn("user_id", gorm.Expr("user_id + ?", 1))
		},
			[]string{"db1: BEGIN", "db1: UPDATE `orders_1` AS `orders` SET `user_id`=user_id + ? WHERE `id` = ?", "db1: COMMIT"}},
		"Save": {func(c *cluster) *gorm.DB { return c.Save(order()) },
			[]string{"db1: BEGIN", "db1: UPDATE `orders_1` AS `orders` SET `user_id`=?,`note`=? WHERE `id` = ?", "db1: COMMIT"}},
		"child Save": {func(c *cluster) *gorm.DB { return c.Save(item()) },
			[]string{"db1: BEGIN", "db1: UPDATE `items_1` AS `items` SET `order_id`=?,`sku`=? WHERE `items`.`order_id` = ? AND `id` = ?", "db1: COMMIT"}},
		"child Delete": {func(c *cluster) *gorm.DB { return c.Delete(item()) },
			[]string{"db1: BEGIN", "db1: DELETE FROM `items_1` WHERE `items_1`.`order_id` = ? AND `items_1`.`id` = ?", "db1: COMMIT"}},
		"children Delete": {func(c *cluster) *gorm.DB { return c.Delete([]*Item{{ID: 9008, OrderID: 5}, {ID: 9000, OrderID: 1}}) },
			[]string{"db1: BEGIN", "db1: SAVEPOINT shardid_statement",
				"db1: DELETE FROM `items_1` WHERE `items_1`.`order_id` IN (?,?) AND `items_1`.`id` IN (?,?)", "db1: RELEASE SAVEPOINT shardid_statement", "db1: COMMIT"}},
		"Delete by Model": {func(c *cluster) *gorm.DB { return c.Model(order()).Delete(&Order{}) },
			[]string{"db1: BEGIN", "db1: DELETE FROM `orders_1` WHERE `orders_1`.`id` = ?", "db1: COMMIT"}},
		"Delete by condition": {func(c *cluster) *gorm.DB { return c.Where("orders.note = ?", "?").Delete(&Order{}, 5) },
			[]string{"db1: BEGIN", "db1: DELETE FROM `orders_1` WHERE `orders_1`.note = ? AND `orders_1`.`id` = ?", "db1: COMMIT"}},
		"soft Delete": {func(c *cluster) *gorm.DB { return c.Delete(&Paper{ID: 5}) },
			[]string{"db1: BEGIN", "db1: UPDATE `papers_1` AS `papers` SET `deleted_at`=? WHERE `papers`.`id` = ? AND `papers`.`deleted_at` IS NULL", "db1: COMMIT"}},
		"Unscoped Delete": {func(c *cluster) *gorm.DB { return c.Unscoped().Delete(&Paper{ID: 5}) },
			[]string{"db1: BEGIN", "db1: DELETE FROM `papers_1` WHERE `papers_1`.`id` = ?", "db1: COMMIT"}},
		"negative key": {func(c *cluster) *gorm.DB { return c.Find(&[]Order{}, -1) },
			[]string{"db1: SELECT * FROM `orders_3` AS `orders`" + where5}},
		"pointer key": {func(c *cluster) *gorm.DB {
			return c.Where("id = ?", sql.NullInt64{Int64: 5, Valid: true}).Find(&[]Order{})
		},
			[]string{"db1: SELECT * FROM `orders_1` AS `orders` WHERE id = ?"}},
		"FOR UPDATE": {func(c *cluster) *gorm.DB { return c.Clauses(clause.Locking{Strength: "UPDATE"}).Find(&[]Order{}, 5) },
			[]string{"db1: SELECT * FROM `orders_1` AS `orders`" + where5 + " "}},
		"Group Having": {func(c *cluster) *gorm.DB {
			return c.Model(&Order{}).Select("orders.note, count(*)").Where("id = ?", 5).Group("orders.note").Having("count(*) > ?", 0).Find(&[]map[string]any{})
		}, []string{"db1: SELECT orders.note, count(*) FROM `orders_1` AS `orders` WHERE id = ? GROUP BY `orders`.`note` HAVING count(*) > ?"}},
		"upsert": {func(c *cluster) *gorm.DB { return c.Clauses(clause.OnConflict{UpdateAll: true}).Create(order()) },
			[]string{"db1: BEGIN", "db1: INSERT INTO `orders_1` (`id`,`user_id`,`note`) VALUES (?,?,?) ON CONFLICT (`id`) DO UPDATE SET `user_id`=`excluded`.`user_id`,`note`=`excluded`.`note`", "db1: COMMIT"}},
		"map create": {func(c *cluster) *gorm.DB { return c.Table("orders").Create(map[string]any{"id": 21, "note": "m"}) },
			[]string{"db1: BEGIN", "db1: INSERT INTO `orders_1` (`id`,`note`) VALUES (?,?)", "db1: COMMIT"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.seed(t)
			if err := s.run(c).Error; err != nil {
				t.Error(err)
			}
			sameEvents(t, c.rec.take(), s.want...)
		})
	}
}

func TestRowsAreReadBackFromTheirShard(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for id := int64(1); id <= 8; id++ {
		var o Order
		if err := c.Preload("Items").First(&o, id).Error; err != nil {
			t.Fatal(err)
		}
		if o.Note != fmt.Sprint("note ", id) || len(o.Items) != 2 || o.Items[1].SKU != fmt.Sprint("b", id) {
			t.Errorf("read %+v", o)
		}
		if got := c.notes(t, id); got != o.Note {
			t.Errorf("order %d holds %q", id, got)
		}
		target, err := c.router.Target("orders", id)
		if err != nil || target != (sharding.Target{DB: fmt.Sprint("db", id%2), Table: fmt.Sprint("orders_", id%4)}) {
			t.Errorf("order %d is on %s, %v", id, target, err)
		}
	}
	if err := c.Model(&Order{ID: 3}).Update("note", "changed").Error; err != nil || c.notes(t, 3) != "changed" {
		t.Errorf("%v, holds %q", err, c.notes(t, 3))
	}
	if err := c.Delete(&Order{}, 3).Error; err != nil || c.notes(t, 3) != "no row" {
		t.Errorf("%v, holds %q", err, c.notes(t, 3))
	}
}

func TestStatementsWithoutAProvenTargetAreRefusedAndNothingIsSent(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	var n int64
	find := func(query any, args ...any) func() *gorm.DB {
		return func() *gorm.DB { return c.Where(query, args...).Find(&[]Order{}) }
	}
	missing, cross, raw, change := sharding.ErrMissingKey, sharding.ErrCrossShard, sharding.ErrRawTable, sharding.ErrKeyChange
	for name, s := range map[string]struct {
		run  func() *gorm.DB
		want error
	}{
		"no condition":            {func() *gorm.DB { return c.Find(&[]Order{}) }, missing},
		"other column":            {find("note = ?", "x"), missing},
		"OR with another column":  {find("id = ? OR note = ?", 5, "x"), missing},
		"OR in another Where":     {func() *gorm.DB { return c.Where("id = ?", 5).Or("note = ?", "x").Find(&[]Order{}) }, missing},
		"NOT":                     {func() *gorm.DB { return c.Not("id = ?", 5).Find(&[]Order{}) }, missing},
		"NOT in text":             {find("NOT id = ?", 5), missing},
		"pipes":                   {find("id = ? || note = ?", 5, "x"), missing},
		"OR after a line break":   {find("id = ?\nOR\tnote = ?", 5, "x"), missing},
		"XOR":                     {find("id = ? XOR 1", 5), raw},
		"BETWEEN":                 {find("note BETWEEN 1 AND id = ?", 5), missing},
		"range":                   {find("id > ?", 5), missing},
		"CASE":                    {find("CASE WHEN 1 AND id = ? AND 1 THEN 1 ELSE 1 END", 5), missing},
		"expression":              {find("id = ?", gorm.Expr("5 OR 1=1")), missing},
		"expression in a map":     {find(map[string]any{"id": gorm.Expr("5 OR 1=1")}), missing},
		"another table's column":  {find("items.id = ?", 5), missing},
		"text that is no integer": {find("id = ?", "5 "), missing},
		"open parenthesis":        {func() *gorm.DB { return c.Where("id = ?", 5).Where("1) OR (1").Find(&[]Order{}) }, missing},
		"open string":             {func() *gorm.DB { return c.Where("id = ?", 5).Where("note = 'x").Find(&[]Order{}) }, raw},
		"second statement":        {func() *gorm.DB { return c.Where("id = ?", 5).Order("1; DROP TABLE x").Find(&[]Order{}) }, raw},
		"join":                    {func() *gorm.DB { return c.Joins("JOIN users u ON u.id = user_id").Find(&[]Order{}, 5) }, cross},
		"subquery on home": {func() *gorm.DB {
			return c.Where("id = ? AND EXISTS (SELECT 1 FROM users WHERE users.id = orders.user_id)", 5).Find(&[]Order{})
		}, cross},
		"subquery by gorm": {func() *gorm.DB {
			return c.Where("id = ? AND EXISTS (?)", 5, c.Model(&User{}).Select("1").Where("users.id = orders.user_id")).Find(&[]Order{})
		}, cross},
		"sharded subquery": {func() *gorm.DB {
			return c.Where("EXISTS (?)", c.Model(&Order{}).Select("1").Where("orders.user_id = users.id AND orders.id = 5")).Find(&[]User{})
		}, cross},
		"schema":                 {func() *gorm.DB { return c.Table("main.orders").Where("id = ?", 5).Find(&[]map[string]any{}) }, cross},
		"joined from home":       {func() *gorm.DB { return c.Joins("JOIN orders ON orders.user_id = users.id").Find(&[]User{}) }, missing},
		"Raw":                    {func() *gorm.DB { return c.Raw("SELECT * FROM orders WHERE note = ?", 5).Scan(&[]Order{}) }, missing},
		"Raw quoted":             {func() *gorm.DB { return c.Raw(`SELECT * FROM "ORDERS"`).Scan(&[]Order{}) }, missing},
		"Raw string":             {func() *gorm.DB { return c.Raw("SELECT * FROM 'orders'").Scan(&[]Order{}) }, missing},
		"TRUNCATE":               {func() *gorm.DB { return c.Exec("TRUNCATE TABLE orders") }, raw},
		"DDL":                    {func() *gorm.DB { return &gorm.DB{Error: c.Migrator().CreateIndex(&Order{}, "Note")} }, nil},
		"Count":                  {func() *gorm.DB { return c.Model(&Order{}).Count(&n) }, missing},
		"Update by condition":    {func() *gorm.DB { return c.Model(&Order{}).Where("user_id = ?", 1).Update("note", "x") }, missing},
		"Update without primary": {func() *gorm.DB { return c.Model(&Item{OrderID: 5}).Where("sku = ?", "x").Update("sku", "y") }, missing},
		"Update all": {func() *gorm.DB {
			return c.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&Order{}).Update("note", "x")
		}, missing},
		"Delete by condition":     {func() *gorm.DB { return c.Where("user_id = ?", 1).Delete(&Order{}) }, missing},
		"Delete OR":               {func() *gorm.DB { return c.Where("note = ?", "x").Or("note = ?", "y").Delete(&Order{ID: 5}) }, missing},
		"soft Delete all":         {func() *gorm.DB { return c.Where("title = ?", "x").Delete(&Paper{}) }, missing},
		"Delete on two databases": {func() *gorm.DB { return c.Delete(&[]Order{{ID: 1}, {ID: 2}}) }, sharding.ErrCrossDatabase},
		"change of the key":       {func() *gorm.DB { return c.Model(&Item{ID: 9008, OrderID: 5}).Update("order_id", 1) }, change},
		"change by expression": {func() *gorm.DB {
			return c.Model(&Item{}).Where("order_id = ?", 5).Update("OrderID", gorm.Expr("order_id + 1"))
		}, change},
		"change for two keys":    {func() *gorm.DB { return c.Model(&Item{}).Where("order_id IN ?", []int{1, 5}).Update("order_id", 5) }, change},
		"child without parent":   {func() *gorm.DB { return c.Create(&Item{SKU: "x"}) }, missing},
		"batch on two databases": {func() *gorm.DB { return c.Create(&[]Item{{OrderID: 1}, {OrderID: 2}}) }, sharding.ErrCrossDatabase},
		"omitted key":            {func() *gorm.DB { return c.Omit("order_id").Create(&Item{OrderID: 5}) }, missing},
		"map without key":        {func() *gorm.DB { return c.Table("orders").Create(map[string]any{"note": "x"}) }, missing},
		"upsert of the key": {func() *gorm.DB {
			return c.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"order_id": 1})}).Create(&Item{OrderID: 5})
		}, change},
	} {
		t.Run(name, func(t *testing.T) {
			c.rec.take()
			err := s.run().Error
			var route *sharding.RouteError
			if err == nil || s.want != nil && !errors.Is(err, s.want) {
				t.Errorf("got %v, want %v", err, s.want)
			}
			if s.want != nil && (!errors.As(err, &route) || route.Table == "" && !errors.Is(err, sharding.ErrCrossDatabase)) {
				t.Errorf("%v is no RouteError with a table", err)
			}
			if events := c.rec.take(); len(events) > 0 {
				t.Errorf("sent %s", strings.Join(events, "\n"))
			}
		})
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	c := newCluster(t)
	for want, err := range map[string]error{
		`sharding: query orders refused: no sharding key; add a condition on id, or on a column that Table.Also says leads to the shard; or let it go to every shard with sharding.AllShards, or always with Table.OnMissing: sharding.FanOutReads`:                                                             c.Find(&[]Order{}).Error,
		`sharding: create items refused: no sharding key (order_id); row 1: set the field OrderID before Create; the zero value counts as none, unless the field is a pointer to it`:                                                                                                                            c.Create([]Item{{OrderID: 1}, {}}).Error,
		`sharding: insert items refused: transaction spans databases: this statement writes to database db0 and to database db1; insert the rows of each database with a statement of their own, grouped by Router.Target, or let transactions span databases with sharding.Transactions, Atomic or BestEffort`: c.Create([]Item{{OrderID: 1}, {OrderID: 2}}).Error,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestARefusedCreateRemovesItsIds(t *testing.T) {
	c := newCluster(t)
	items := []Item{{OrderID: 1}, {OrderID: 2}}
	if err := c.Create(&items).Error; !errors.Is(err, sharding.ErrCrossDatabase) || items[0].ID != 0 || items[1].ID != 0 {
		t.Errorf("%v: %+v", err, items)
	}
}

func TestRowAndRowsCarryTheRefusal(t *testing.T) {
	c := newCluster(t)
	var s string
	for name, row := range map[string]*sql.Row{
		"no key":     c.Model(&Order{}).Select("note").Row(),
		"unbalanced": c.Model(&Order{}).Select("note").Where("id = 5").Where("1) OR (1").Row(),
		"raw":        c.Raw("SELECT note FROM orders").Row(),
		"in a tx":    c.Begin().Raw("SELECT note FROM orders").Row(),
	} {
		var route *sharding.RouteError
		if row == nil || !errors.As(row.Scan(&s), &route) || !errors.As(row.Err(), &route) {
			t.Errorf("%s: %v", name, row)
		}
	}
	if _, err := readRows(c.Model(&Order{}).Select("note")); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("Rows: %v", err)
	}
	c.seed(t)
	if err := c.Model(&Order{}).Select("note").Where("id = ?", 5).Row().Scan(&s); err != nil || s != "note 5" {
		t.Errorf("Row: %q, %v", s, err)
	}
	if notes, err := readRows(c.Model(&Order{}).Select("note").Where("id = ?", 6)); err != nil || !slices.Equal(notes, []string{"note 6"}) {
		t.Errorf("Rows: %q, %v", notes, err)
	}
}

// readRows reads a column of text through gorm's Rows.
func readRows(tx *gorm.DB) (values []string, err error) {
	rows, err := tx.Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}

// gorm writes these conditions without parentheses. The database decides whether an OR in them
// affects the conditions beside them.
func TestRawConditionsWithoutParenthesesProveNothing(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, find := range map[string]func(db *gorm.DB) *gorm.DB{
		"OR after a tab": func(db *gorm.DB) *gorm.DB { return db.Where("note = ''\tOR\n1=1") },
		"pipes":          func(db *gorm.DB) *gorm.DB { return db.Where("0 || 1") },
		"raw in OR":      func(db *gorm.DB) *gorm.DB { return db.Where(c.Where("note = ''").Or("1\nOR 1")) },
		"Not":            func(db *gorm.DB) *gorm.DB { return db.Not("note = '' OR\n0") },
		"value": func(db *gorm.DB) *gorm.DB {
			return db.Where(clause.Eq{Column: "user_id", Value: gorm.Expr("1\nOR 1=1")})
		},
		"column": func(db *gorm.DB) *gorm.DB {
			return db.Where(clause.Neq{Column: clause.Column{Name: "1\nOR user_id", Raw: true}, Value: 7})
		},
		"clause in a clause": func(*gorm.DB) *gorm.DB {
			return c.Where(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1\nOR 1"}, clause.Eq{Column: "id", Value: 5}}})
		},
		"OR in a clause in a clause": func(*gorm.DB) *gorm.DB {
			return c.Where(clause.Where{Exprs: []clause.Expression{clause.Or(clause.Eq{Column: "id", Value: 5}), clause.Eq{Column: "id", Value: 5}}}).Where("note <> ''")
		},
		"named":           func(db *gorm.DB) *gorm.DB { return db.Where("note = @x\nOR 1", sql.Named("x", "")) },
		"before the key":  func(*gorm.DB) *gorm.DB { return c.Where("1\nOR 1").Where("id = ?", 5) },
		"single OR first": func(*gorm.DB) *gorm.DB { return c.Or("id = ?", 5).Where("id = ?", 5).Where("note <> ''\nOR 1") },
	} {
		var orders []Order
		c.rec.take()
		err := find(c.Where("id = ?", 5)).Find(&orders).Error
		sent := c.rec.take()
		if errors.Is(err, sharding.ErrMissingKey) && len(sent) == 0 {
			continue
		}
		if err != nil || len(orders) != 1 || orders[0].ID != 5 {
			t.Errorf("%s: found %+v, %v, sent %s", name, orders, err, sent)
		}
	}
}

func TestAReusedStatementKeepsItsConditions(t *testing.T) {
	c := newCluster(t)
	for id := int64(1); id <= 5; id += 4 {
		if err := c.Create(&Paper{ID: id, Title: "x"}).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(&Paper{ID: 1}).Error; err != nil {
		t.Fatal(err)
	}
	tx := c.Model(&Paper{}).Where("id IN ?", []int{1, 5})
	for range 3 {
		var n int64
		var papers []Paper
		if err := tx.Count(&n).Error; err != nil || n != 1 {
			t.Fatalf("count %d, %v", n, err)
		}
		if err := tx.Find(&papers).Error; err != nil || len(papers) != 1 || papers[0].ID != 5 {
			t.Fatalf("found %+v, %v", papers, err)
		}
	}
	if tx.Statement.Table != "papers" || tx.Statement.TableExpr != nil {
		t.Errorf("left %q and %v behind", tx.Statement.Table, tx.Statement.TableExpr)
	}
}

func TestSaveOfAChangedKeyDoesNotDoubleTheRow(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	var item Item
	if err := c.First(&item, "order_id = ?", 5).Error; err != nil {
		t.Fatal(err)
	}
	item.OrderID = 6
	if err := c.Save(&item).Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("got %v", err)
	}
	var found []Item
	if err := c.Find(&found, "order_id = ? AND id = ?", 6, item.ID).Error; err != nil || len(found) != 0 {
		t.Errorf("the row is in the new shard too: %+v, %v", found, err)
	}
	order := Order{ID: 77, Note: "new"}
	if err := c.Save(&order).Error; err != nil || c.notes(t, 77) != "new" {
		t.Errorf("Save of a new order with an id: %v, %s", err, c.notes(t, 77))
	}
}

func TestFirstOrCreateWorksByKey(t *testing.T) {
	c := newCluster(t)
	for range 2 {
		var o Order
		if err := c.Attrs(Order{Note: "made"}).FirstOrCreate(&o, Order{ID: 9}).Error; err != nil || o.ID != 9 {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if got := c.notes(t, 9); got != "made" {
		t.Error(got)
	}
}

func TestConcurrentStatementsReachTheirShards(t *testing.T) {
	c := newCluster(t)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			o := Order{Note: fmt.Sprint("n", i), Items: []Item{{SKU: fmt.Sprint("s", i)}}}
			if err := c.Create(&o).Error; err != nil {
				t.Error(err)
				return
			}
			var back Order
			if err := c.Preload("Items").First(&back, o.ID).Error; err != nil || back.Note != o.Note || len(back.Items) != 1 {
				t.Errorf("%+v, %v", back, err)
			}
		})
	}
	wg.Wait()
}

func TestDryRunShowsTheLogicalText(t *testing.T) {
	c := newCluster(t)
	got := c.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]Order{}, 5) })
	if want := "SELECT * FROM `orders` WHERE `orders`.`id` = 5"; got != want {
		t.Errorf("got %s", got)
	}
	sameEvents(t, c.rec.take())
}

func TestInitializeRunsNoSQLAndRefusesUnsupportedDatabases(t *testing.T) {
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	config := gormplugin.Config{Router: newRouter(t, dbs)}
	db := openGORM(t, rec.open(t, "home"))
	rec.take()
	if err := db.Use(gormplugin.New(config)); err != nil {
		t.Fatal(err)
	}
	sameEvents(t, rec.take())
	if err := db.Use(gormplugin.New(config)); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("used twice: %v", err)
	}
	home, err := db.DB()
	if err != nil || home.PingContext(t.Context()) != nil {
		t.Errorf("DB(): %v", err)
	}
	other := openGORM(t, rec.open(t, "other"))
	other.ConnPool = nil
	if err := other.Use(gormplugin.New(config)); err == nil || !strings.Contains(err.Error(), "*sql.DB") {
		t.Errorf("without a *sql.DB: %v", err)
	}
}

func TestStatementsOnABorrowedConnectionAreRouted(t *testing.T) {
	c := newCluster(t)
	c.seed(t)
	for name, s := range map[string]struct {
		run  func(tx *gorm.DB) error
		want error
	}{
		"raw":       {func(tx *gorm.DB) error { return tx.Exec("DELETE FROM orders").Error }, sharding.ErrMissingKey},
		"raw query": {func(tx *gorm.DB) error { return tx.Raw("SELECT 1 FROM orders").Row().Err() }, sharding.ErrMissingKey},
		"routed":    {func(tx *gorm.DB) error { return tx.First(&Order{}, 5).Error }, nil},
		"unsharded": {func(tx *gorm.DB) error { return tx.Create(&User{Name: "u"}).Error }, nil},
	} {
		if err := c.Connection(s.run); !errors.Is(err, s.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAContextThatEndedStopsAStatement(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.WithContext(ctx).Create(&Order{}).Error; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !slices.Equal(c.rec.take(), nil) {
		t.Error("something was sent")
	}
}

// fickle is a key that returns another value on each call of Value.
type fickle struct{ calls *int64 }

func (f fickle) Value() (driver.Value, error) {
	*f.calls++
	return *f.calls, nil
}

func TestAKeyThatChangesIsReadOnce(t *testing.T) {
	c := newCluster(t)
	if err := c.Table("orders").Create(map[string]any{"id": fickle{new(int64)}, "note": "n"}).Error; err != nil {
		t.Fatal(err)
	}
	if got := c.notes(t, 1); got != "n" {
		t.Errorf("order 1 holds %q", got)
	}
}
