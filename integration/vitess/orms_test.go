// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
	"github.com/shardid/shardid/sqlxhook"
)

// Order is a row of the sharded table, numbered by a store in the unsharded keyspace.
type Order struct {
	ID     int64  `keygen:"" db:"id"`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

// shopByVtgate is a table of orders in four shards, and where ids come from.
func shopByVtgate(t *testing.T) (r *sharding.Router, m *server.MySQL, e exported, shop *sql.DB, ids keygen.Set) {
	t.Helper()
	layout, err := sharding.Spread([]string{"east"}, 4, "orders_%02d")
	if err != nil {
		t.Fatal(err)
	}
	if r, err = sharding.New(sharding.DBs{"east": new(sql.DB)}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: layout}); err != nil {
		t.Fatal(err)
	}
	out, err := export.Vitess(r, export.VitessConfig{Keyspace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	e, m = newExported(t, out), server.RunMySQL(t, forVitess...)
	s := newCombo(t, m, keyspace{"ids", []string{"0"}}, keyspace{"shop", e.names()})
	s.ctl(t, "ApplyVSchema", "--vschema-file", s.write(t, "vschema.json", e.file(t, "vschema.json")), "shop")
	shop = s.open(t, "shop")
	execf(t, shop, "CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint NOT NULL, note varchar(64) NOT NULL)")
	s.serves(t, "shop", "SELECT user_id FROM orders")

	store := s.open(t, "ids")
	if err := schema.Apply(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), store, "orders", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	tags, err := sqlstore.New(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	g, err := segment.New(t.Context(), segment.Config{Source: tags.Tag("orders")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return r, m, e, shop, keygen.Set{Default: g}
}

// placed compares the rows of each shard with those that the rule puts there.
func placed(t *testing.T, r *sharding.Router, m *server.MySQL, e exported, want map[int64]Order) {
	t.Helper()
	n := 0
	for _, s := range e.shards {
		var rows []Order
		if err := sqlx.NewDb(m.Open(t, database("shop", s.Shard)), "mysql").Select(&rows, "SELECT id, user_id, note FROM orders"); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			at, err := r.Target("orders", row.UserID)
			if err != nil {
				t.Fatal(err)
			}
			if row != want[row.ID] || at.String() != s.Tables["orders"] {
				t.Errorf("shard %s has %+v, which the rule puts into %s; want %+v", s.Shard, row, at, want[row.ID])
			}
		}
		n += len(rows)
	}
	if n != len(want) {
		t.Errorf("%d rows lie in the shards, want %d", n, len(want))
	}
}

func TestGORMWithoutARouterWritesByVtgateWithKeysOfTheStore(t *testing.T) {
	r, m, e, shop, ids := shopByVtgate(t)
	db, err := gorm.Open(gormmysql.New(gormmysql.Config{Conn: shop}), &gorm.Config{TranslateError: true, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: ids})); err != nil {
		t.Fatal(err)
	}
	want := map[int64]Order{}
	keep := func(rows ...Order) {
		for _, row := range rows {
			if row.ID < 1000 {
				t.Errorf("%+v has no key of the store", row)
			}
			want[row.ID] = row
		}
	}
	batch := make([]Order, 200)
	for i := range batch {
		batch[i] = Order{UserID: int64(i), Note: "batch"}
	}
	one := Order{UserID: 7, Note: "one"}
	for _, err := range []error{db.Create(&one).Error, db.CreateInBatches(batch, 64).Error} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A transaction over several shards is kept whole, and taken back whole.
	const took = 40
	spread := []Order{{UserID: 1, Note: "tx"}, {UserID: 2, Note: "tx"}, {UserID: took, Note: "tx"}}
	if err := db.Transaction(func(tx *gorm.DB) error { return tx.Create(&spread).Error }); err != nil {
		t.Fatal(err)
	}
	back := []Order{{UserID: 3}, {UserID: 4}}
	errBack := errors.New("taken back")
	if err := db.Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Create(&back).Error, errBack) }); !errors.Is(err, errBack) {
		t.Fatal(err)
	}
	if err := db.Model(&Order{}).Where("user_id = ?", took).Update("note", "changed").Error; err != nil {
		t.Fatal(err)
	}
	spread[2].Note, batch[took].Note = "changed", "changed"
	if err := db.Where("user_id = ?", 9).Delete(&Order{}).Error; err != nil {
		t.Fatal(err)
	}
	keep(one)
	keep(spread...)
	keep(batch[:9]...)
	keep(batch[10:]...)
	placed(t, r, m, e, want)

	var found Order
	if err := db.Where("user_id = ?", 7).Order("id DESC").First(&found, batch[7].ID).Error; err != nil || found != batch[7] {
		t.Errorf("%+v, %v", found, err)
	}
	var all []Order
	if err := db.Find(&all).Error; err != nil || len(all) != len(want) {
		t.Errorf("%d of %d rows, %v", len(all), len(want), err)
	}
	again := one
	if err := db.Create(&again).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Errorf("a key that is there: %v", err)
	}
}

func TestSqlxWritesByVtgateWithKeysOfTheStore(t *testing.T) {
	r, m, e, shop, ids := shopByVtgate(t)
	db := sqlx.NewDb(shop, "mysql")
	h, err := sqlxhook.New(sqlxhook.Config{Generators: ids})
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]Order, 200)
	for i := range batch {
		batch[i] = Order{UserID: int64(i), Note: "it's a note"}
	}
	res, err := h.NamedExec(t.Context(), db, "INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)", batch)
	if err != nil || res.RowsAffected != int64(len(batch)) {
		t.Fatal(res, err)
	}
	one := Order{UserID: 7, Note: "one"}
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(t.Context(), tx, "orders", &one); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	want := map[int64]Order{one.ID: one}
	for _, row := range batch {
		want[row.ID] = row
	}
	placed(t, r, m, e, want)
	var found []Order
	if err := db.SelectContext(t.Context(), &found, "SELECT id, user_id, note FROM orders WHERE user_id = ? ORDER BY id", 7); err != nil || len(found) != 2 || found[0] != batch[7] || found[1] != one {
		t.Errorf("%+v, %v", found, err)
	}
}
