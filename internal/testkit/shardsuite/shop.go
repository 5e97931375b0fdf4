// SPDX-License-Identifier: Apache-2.0

package shardsuite

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

// Databases opens the databases of the tests.
type Databases struct {
	// Open returns three empty databases: the one that gorm opens, and two shards.
	Open func(t testing.TB) (home, east, west *sql.DB)
	// Dialector returns gorm's dialector for a pool.
	Dialector func(*sql.DB) gorm.Dialector
}

// Order is sharded by its id, and has items on the same shard.
type Order struct {
	ID     int64 `keygen:"" gorm:"autoIncrement:false"`
	UserID int64
	Note   string `gorm:"size:40"`
	Items  []Item
}

// Item is sharded by its order's id.
type Item struct {
	ID      int64 `keygen:"" gorm:"autoIncrement:false"`
	OrderID int64
	SKU     string `gorm:"size:40"`
	Order   *Order
}

// Region is in every database.
type Region struct {
	ID   int64  `keygen:"" gorm:"autoIncrement:false"`
	Name string `gorm:"size:40"`
}

// shop is two databases with two tables each of orders and items, eight orders with one item, and
// two regions.
type shop struct {
	*gorm.DB

	t      *testing.T
	home   *sql.DB
	router *sharding.Router
}

// open creates a shop. policy decides whether reads may go to all shards.
func open(t *testing.T, d Databases, policy sharding.Policy, options ...sharding.Option) *shop {
	t.Helper()
	home, east, west := d.Open(t)
	for name, key := range map[string]string{"orders": "id", "items": "order_id"} {
		m, err := sharding.Spread([]string{"east", "west"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: name, Key: key, Rule: sharding.Low(10), Map: m, Group: "shop", OnMissing: policy})
	}
	router, err := sharding.New(sharding.DBs{"east": east, "west": west}, append(options, sharding.Broadcast("regions"))...)
	if err != nil {
		t.Fatal(err)
	}
	db, err := gorm.Open(d.Dialector(home), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1000, 1)}, Router: router}))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{DB: db, t: t, home: home, router: router}
	s.stock()
	return s
}

func (s *shop) stock() {
	s.t.Helper()
	if err := gormplugin.Migrate(context.Background(), s.DB, &Order{}, &Item{}, &Region{}); err != nil {
		s.t.Fatalf("migrate: %v", err)
	}
	for id := int64(1); id <= 8; id++ {
		o := Order{ID: id, UserID: id % 3, Note: fmt.Sprint("note ", id), Items: []Item{{ID: 100 + id, SKU: fmt.Sprint("sku ", id)}}}
		s.ok(s.Create(&o))
	}
	for id := int64(1); id <= 2; id++ {
		s.ok(s.Create(&Region{ID: id, Name: fmt.Sprint("region ", id)}))
	}
}

// ok fails the test if a statement failed.
func (s *shop) ok(tx *gorm.DB) *gorm.DB {
	s.t.Helper()
	if tx.Error != nil {
		s.t.Fatal(tx.Error)
	}
	return tx
}

// affects fails the test if a statement did not affect that many rows.
func (s *shop) affects(n int64, tx *gorm.DB) {
	s.t.Helper()
	if s.ok(tx).RowsAffected != n {
		s.t.Errorf("%d rows, not %d", tx.RowsAffected, n)
	}
}

// refuses fails the test if a statement was not refused for that reason, with an error that says
// what to do.
func (s *shop) refuses(why error, err error) {
	s.t.Helper()
	var route *sharding.RouteError
	if !errors.Is(err, why) || !errors.As(err, &route) || route.Hint == "" {
		s.t.Errorf("got %v, want %v", err, why)
	}
}

// stored returns the note of an order in its physical table, "-" if there is none.
func (s *shop) stored(id int64) string {
	s.t.Helper()
	target, err := s.router.Target("orders", id)
	if err != nil {
		s.t.Fatal(err)
	}
	var note string
	err = s.router.DB(target.DB).QueryRowContext(s.t.Context(), fmt.Sprintf("SELECT note FROM %s WHERE id = %d", target.Table, id)).Scan(&note)
	if errors.Is(err, sql.ErrNoRows) {
		return "-"
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return note
}

// holds fails the test if the stored orders differ.
func (s *shop) holds(notes map[int64]string) {
	s.t.Helper()
	for id, want := range notes {
		if got := s.stored(id); got != want {
			s.t.Errorf("order %d holds %q, not %q", id, got, want)
		}
	}
}

// regions returns the number of regions with a name in each database.
func (s *shop) regions(name string) string {
	s.t.Helper()
	var text strings.Builder
	for _, db := range s.router.Databases() {
		var n int
		if err := s.router.DB(db).QueryRowContext(s.t.Context(), "SELECT count(*) FROM regions WHERE name = '"+name+"'").Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprint(&text, n)
	}
	return text.String()
}

// ids returns the ids of orders, in their order.
func (s *shop) ids(tx *gorm.DB) string {
	s.t.Helper()
	var ids []int64
	s.ok(tx.Model(&Order{}).Pluck("id", &ids))
	return fmt.Sprint(ids)
}

// same fails the test if two values are printed differently.
func (s *shop) same(got, want any) {
	s.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("got %v, want %v", got, want)
	}
}

// ignore returns the word with which an INSERT skips existing rows, if the database has one.
func (s *shop) ignore() string {
	return map[string]string{"sqlite": "OR IGNORE", "mysql": "IGNORE"}[s.Name()]
}

func (s *shop) with(hint func(context.Context) context.Context) *gorm.DB {
	return s.WithContext(hint(s.t.Context()))
}

// at returns the hint of an order's shard.
func at(id int64) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context { return sharding.OnKey(ctx, "orders", id) }
}
