// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// copies returns the rows of the broadcast table in each database.
func (c *cluster) copies(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, name := range c.router.Databases() {
		var held sql.NullString
		query := "SELECT group_concat(id || name, ' ') FROM (SELECT id, name FROM regions ORDER BY id)"
		if err := c.router.DB(name).QueryRowContext(t.Context(), query).Scan(&held); err != nil {
			t.Fatal(err)
		}
		text.WriteString(held.String + "|")
	}
	return text.String()
}

// newBroadcastHome is newBroadcast with gorm opened on the first shard, as in most programs.
func newBroadcastHome(t *testing.T) (*cluster, *gorm.DB) {
	t.Helper()
	c := newBroadcast(t, sharding.Transactions(sharding.BestEffort))
	must(t, c.router.DB("db0"), fmt.Sprintf(createUsers, "users"))
	db, err := gorm.Open(sqliteOn(c.router.DB("db0")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1), Named: map[string]keygen.Generator[int64]{"item": keygen.Counting(9000, 1)}}, Router: c.router})); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&[]Region{{ID: 1, Name: "n"}, {ID: 2, Name: "s"}}).Error; err != nil {
		t.Fatal(err)
	}
	return c, db
}

func TestRawSQLChangesEveryCopyOfABroadcastTableOrNone(t *testing.T) {
	c, db := newBroadcastHome(t)
	for _, text := range []string{
		"INSERT INTO regions (name) VALUES ('raw')",
		`insert into "regions" (id, name) select 9, sku from items`,
		"UPDATE regions SET name = random()",
		"DELETE FROM regions WHERE id IN (SELECT id FROM users)",
		"SELECT 1; DELETE FROM regions",
		"DROP TABLE regions",
		"CREATE INDEX i ON regions (name)",
		"ALTER TABLE regions ADD COLUMN x INTEGER",
	} {
		for name, run := range map[string]func() error{
			"Exec":         func() error { return db.Exec(text).Error },
			"prepared":     func() error { return db.Session(&gorm.Session{PrepareStmt: true}).Exec(text).Error },
			"transaction":  func() error { return db.Transaction(func(tx *gorm.DB) error { return tx.Exec(text).Error }) },
			"connection":   func() error { return db.Connection(func(tx *gorm.DB) error { return tx.Exec(text).Error }) },
			"another home": func() error { return c.Exec(text).Error },
		} {
			var refused *sharding.RouteError
			if err := run(); !errors.As(err, &refused) {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
	if got := c.copies(t); got != "1n 2s|1n 2s|" {
		t.Error(got)
	}
	for _, text := range []string{
		"UPDATE regions SET name = 'raw' WHERE id = 1",
		"UPDATE `Regions` AS r SET name = 'raw' WHERE r.id = 1",
		"INSERT INTO regions (id, name) VALUES (1, 'raw') ON CONFLICT (id) DO UPDATE SET name = 'raw'",
		"REPLACE INTO regions (id, name) VALUES (1, 'raw')",
		"WITH x AS (SELECT 3 AS id) DELETE FROM regions WHERE id IN (SELECT id FROM x)",
	} {
		if err := db.Exec(text).Error; err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := c.copies(t); got != "1raw 2s|1raw 2s|" && got != "1n 2s|1n 2s|" || got[:2] == "1n" && strings.HasPrefix(text, "UPDATE") {
			t.Errorf("%s: %s", text, got)
		}
		if err := db.Table("regions AS r").Where("id = 1").Update("name", "n").Error; err != nil || c.copies(t) != "1n 2s|1n 2s|" {
			t.Errorf("%v, %s", err, c.copies(t))
		}
	}
}

func TestAutoMigrateOfABroadcastTableIsMigrates(t *testing.T) {
	c := newCluster(t, sharding.Broadcast("regions"))
	err := c.AutoMigrate(&Region{})
	if !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "gormplugin.Migrate") {
		t.Error(err)
	}
	if err := gormplugin.Migrate(t.Context(), c.DB, &Region{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(&Region{ID: 1, Name: "n"}).Error; err != nil || c.copies(t) != "1n|1n|" {
		t.Errorf("%v, %s", err, c.copies(t))
	}
}

func TestRawSQLForAllShardsChangesEveryCopyOfABroadcastTable(t *testing.T) {
	c, db := newBroadcastHome(t)
	all := db.WithContext(sharding.AllShards(t.Context()))
	if tx := all.Exec("UPDATE regions SET name = ? WHERE id = ?", "raw", 1); tx.Error != nil || tx.RowsAffected != 1 {
		t.Errorf("%d, %v", tx.RowsAffected, tx.Error)
	}
	if err := all.Exec("DELETE FROM regions WHERE id = 2").Error; err != nil {
		t.Error(err)
	}
	if got := c.copies(t); got != "1raw|1raw|" {
		t.Error(got)
	}
}

func TestRawSQLReadsOneCopyOfABroadcastTable(t *testing.T) {
	_, db := newBroadcastHome(t)
	for _, text := range []string{
		"SELECT count(*) FROM regions", "(SELECT 2)", "WITH x AS (SELECT id FROM regions) SELECT count(*) FROM x",
		"SELECT replace(max(id), 'x', 'y') FROM regions",
	} {
		var n int
		if err := db.Raw(text).Scan(&n).Error; n != 2 && text[0] != '(' || text[0] != '(' && err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{
		"INSERT INTO users (name) SELECT name FROM regions",
		"UPDATE users SET name = (SELECT max(name) FROM regions) || 'a' WHERE id = 1",
		"DELETE FROM users WHERE id IN (SELECT id FROM regions)",
	} {
		if tx := db.Exec(text); tx.Error != nil || tx.RowsAffected == 0 {
			t.Errorf("%s: %d, %v", text, tx.RowsAffected, tx.Error)
		}
	}
}

func TestRawSQLWithAHintChangesTheHintedTableOnly(t *testing.T) {
	c, db := newBroadcastHome(t)
	if err := db.Create(&[]Item{{ID: 1, OrderID: 4, SKU: "x"}, {ID: 2, OrderID: 1, SKU: "y"}}).Error; err != nil {
		t.Fatal(err)
	}
	target, err := c.router.Target("items", 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, ctx := range map[string]context.Context{
		"AllShards": sharding.AllShards(t.Context()),
		"OnKey":     sharding.OnKey(t.Context(), "items", 4),
		"On":        sharding.On(t.Context(), target),
	} {
		for _, text := range []string{
			"DELETE FROM regions WHERE id IN (SELECT id FROM items)",
			"UPDATE regions SET name = 'raw' WHERE id IN (SELECT id FROM items)",
			"UPDATE regions SET name = items.sku FROM items WHERE items.id = regions.id",
		} {
			if err := db.WithContext(ctx).Exec(text).Error; !errors.Is(err, sharding.ErrCrossShard) {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
		// A row of another shard may have the same sku, which is unique.
		if err := db.WithContext(ctx).Exec("UPDATE items SET sku = sku || (SELECT name FROM regions WHERE id = 1) WHERE id = 1").Error; !errors.Is(err, sharding.ErrCrossShard) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := c.copies(t); got != "1n 2s|1n 2s|" {
		t.Error(got)
	}
}

func TestRawSQLWithAHintPutsNoRowWhereItDoesNotBelong(t *testing.T) {
	c := newCluster(t)
	if err := c.Create(&[]Item{{ID: 1, OrderID: 3, SKU: "x"}}).Error; err != nil {
		t.Fatal(err)
	}
	target, err := c.router.Target("items", 3)
	if err != nil {
		t.Fatal(err)
	}
	of3, on3 := sharding.OnKey(t.Context(), "items", 3), sharding.On(t.Context(), target)
	for name, ctx := range map[string]context.Context{"OnKey": of3, "On": on3} {
		db := c.WithContext(ctx)
		for _, r := range []struct {
			why  error
			text string
			args []any
		}{
			{sharding.ErrMisplaced, "INSERT INTO items (id, order_id, sku) VALUES (?, ?, 'raw')", []any{77, 2}},
			{sharding.ErrMisplaced, "INSERT INTO items (id, order_id) VALUES (77, 3), (78, 2)", nil},
			{sharding.ErrMisplaced, "REPLACE INTO `items` (`order_id`, id) VALUES ('2', 77)", nil},
			{sharding.ErrMisplaced, "INSERT OR IGNORE INTO items (id, sku, order_id) VALUES (77, ?, ?)", []any{"?", 2}},
			{sharding.ErrMissingKey, "INSERT INTO items VALUES (77, 3, 'raw')", nil},
			{sharding.ErrMissingKey, "INSERT INTO items (id) VALUES (77)", nil},
			{sharding.ErrMissingKey, "INSERT INTO items (id, order_id) VALUES (77, 1 + 1)", nil},
			{sharding.ErrMisplaced, "INSERT INTO items (id, order_id) VALUES (77, ?2)", []any{3, 2}},
			{sharding.ErrKeyType, "INSERT INTO items (id, order_id) VALUES (77, NULL)", nil},
			{sharding.ErrMissingKey, "INSERT INTO items DEFAULT VALUES", nil},
			{sharding.ErrKeyChange, "INSERT INTO items (id, order_id) VALUES (1, 3) ON CONFLICT (id) DO UPDATE SET order_id = 2", nil},
			{sharding.ErrKeyChange, "UPDATE items SET order_id = 2", nil},
			{sharding.ErrKeyChange, "UPDATE items AS i SET sku = 'raw', `Order_ID` = i.id", nil},
			{sharding.ErrKeyChange, "UPDATE items SET (sku, order_id) = ('raw', 2)", nil},
		} {
			if err := db.Exec(r.text, r.args...).Error; !errors.Is(err, r.why) {
				t.Errorf("%s: %s: %v", name, r.text, err)
			}
			if err := db.Raw(r.text+" RETURNING id", r.args...).Scan(new(int)).Error; !errors.Is(err, r.why) {
				t.Errorf("%s: %s: %v", name, r.text, err)
			}
		}
		const selected = "INSERT INTO items (id, order_id) SELECT 77, 2"
		if err := db.Exec(selected).Error; !errors.Is(err, sharding.ErrMisplaced) && !errors.Is(err, sharding.ErrCrossShard) {
			t.Errorf("%s: %s: %v", name, selected, err)
		}
		for _, text := range []string{
			"INSERT INTO items (id, order_id, sku) VALUES (?, ?, 'r''aw?'), (?, 19, ?)",
			"INSERT INTO items (id, order_id, sku) VALUES (?, ?, 'a'), (?, '3', ?) ON CONFLICT (id) DO UPDATE SET order_id = order_id, sku = excluded.sku",
		} {
			if err := db.Exec(text, 80, 3, 81, "b").Error; err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
		if err := db.Exec("DELETE FROM items WHERE id >= 80").Error; err != nil {
			t.Error(err)
		}
	}
	if err := c.WithContext(sharding.AllShards(t.Context())).Exec("UPDATE items SET order_id = 2").Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
	var items []Item
	if err := c.WithContext(sharding.AllShards(t.Context())).Find(&items).Error; err != nil || len(items) != 1 || items[0].OrderID != 3 {
		t.Errorf("%+v, %v", items, err)
	}
}

func TestRawInsertsOfIDsThatCarryASlotKeepToIt(t *testing.T) {
	db, _ := newShop(t, bucketed(t, 4))
	of3 := db.WithContext(sharding.OnKey(t.Context(), "sales", 3))
	const text = "INSERT INTO sales (id, user_id) VALUES (?, 3)"
	if err := of3.Exec(text, 16002).Error; !errors.Is(err, sharding.ErrMisplaced) {
		t.Error(err)
	}
	for _, id := range []int64{16003, 5} { // 5 is from before they carried slots
		if err := of3.Exec(text, id).Error; err != nil {
			t.Error(err)
		}
	}
	if err := of3.Exec("UPDATE sales SET id = 16002").Error; !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
}

// Guest is at home, with a foreign key to a broadcast table.
type Guest struct {
	ID       int64
	RegionID int64
	Region   Region
}

func TestMigrateMakesBroadcastTablesBeforeThoseAtHomeThatReferToThem(t *testing.T) {
	c := newCluster(t, sharding.Broadcast("regions"))
	db, err := gorm.Open(sqliteOn(c.router.DB("db0")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: c.router})); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := gormplugin.Migrate(t.Context(), db, &Guest{}, &Region{}); err != nil {
			t.Error(err)
		}
	}
	must(t, c.router.DB("db0"), "INSERT INTO regions VALUES (1, 'n'); INSERT INTO guests VALUES (1, 1)")
}
