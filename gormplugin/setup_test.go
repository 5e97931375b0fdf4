// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Order is sharded by its own id, Item by that of its order.
type Order struct {
	ID     int64 `keygen:""`
	UserID int64
	Note   string
	Items  []Item
}

type Item struct {
	ID      int64 `keygen:"item"`
	OrderID int64
	SKU     string
}

// Paper is sharded and deleted softly.
type Paper struct {
	ID        int64 `keygen:""`
	Title     string
	DeletedAt gorm.DeletedAt
}

// User is not sharded and numbered by the database.
type User struct {
	ID   int64
	Name string
}

const (
	createOrders = "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)"
	createItems  = "CREATE TABLE %s (id INTEGER PRIMARY KEY, order_id INTEGER, sku TEXT UNIQUE)"
	createPapers = "CREATE TABLE %s (id INTEGER PRIMARY KEY, title TEXT, deleted_at DATETIME)"
	createUsers  = "CREATE TABLE %s (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE)"
)

// cluster is a home database and two shards with four tables of each kind.
type cluster struct {
	*gorm.DB
	rec    *recorder
	home   *sql.DB
	router *sharding.Router
}

func newCluster(t testing.TB, options ...sharding.Option) *cluster {
	t.Helper()
	return newClusterWith(t, sharding.Refuse, options...)
}

// newClusterWith has tables of one group, with this policy for reads without a key.
func newClusterWith(t testing.TB, policy sharding.Policy, options ...sharding.Option) *cluster {
	t.Helper()
	c := &cluster{rec: &recorder{}}
	c.home = c.rec.open(t, "home")
	dbs := sharding.DBs{"db0": c.rec.open(t, "db0"), "db1": c.rec.open(t, "db1")}
	c.router = newRouterWith(t, dbs, policy, options...)
	for _, table := range c.router.Tables() {
		ddl := map[string]string{"orders": createOrders, "items": createItems, "papers": createPapers}[table.Name]
		for _, target := range c.router.Targets(table.Name) {
			must(t, dbs[target.DB], fmt.Sprintf(ddl, target.Table))
		}
		// The unsharded table still exists, and has rows.
		must(t, c.home, fmt.Sprintf(ddl, table.Name))
	}
	must(t, c.home, fmt.Sprintf(createUsers, "users"))
	must(t, c.home, "INSERT INTO orders (id, user_id, note) VALUES (1, 1, 'stale'), (2, 1, 'stale'), (5, 1, 'stale')")
	c.DB = openGORM(t, c.home)
	if err := c.Use(gormplugin.New(gormplugin.Config{
		Generators: keygen.Set{
			Default: keygen.Counting(100, 1),
			Named:   map[string]keygen.Generator[int64]{"item": keygen.Counting(9000, 1)},
		},
		Router: c.router,
	})); err != nil {
		t.Fatal(err)
	}
	c.rec.take()
	return c
}

func newRouter(t testing.TB, dbs sharding.DBs) *sharding.Router {
	t.Helper()
	return newRouterWith(t, dbs, sharding.Refuse)
}

func newRouterWith(t testing.TB, dbs sharding.DBs, policy sharding.Policy, options ...sharding.Option) *sharding.Router {
	t.Helper()
	for name, key := range map[string]string{"orders": "id", "items": "order_id", "papers": "id"} {
		m, err := sharding.Spread([]string{"db0", "db1"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: name, Key: key, Rule: sharding.Low(4), Map: m, Group: "shop", OnMissing: policy})
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

func openGORM(t testing.TB, db *sql.DB) *gorm.DB {
	t.Helper()
	g, err := gorm.Open(sqlite.Dialector{Conn: db}, &gorm.Config{Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func sqliteOn(db *sql.DB) gorm.Dialector { return sqlite.Dialector{Conn: db} }

func must(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// notes returns id=note of all rows of one physical orders table.
func (c *cluster) notes(t testing.TB, id int64) string {
	t.Helper()
	target, err := c.router.Target("orders", id)
	if err != nil {
		t.Fatal(err)
	}
	var note string
	err = c.router.DB(target.DB).QueryRow("SELECT note FROM "+target.Table+" WHERE id = ?", id).Scan(&note)
	if errors.Is(err, sql.ErrNoRows) {
		return "no row"
	}
	if err != nil {
		t.Fatal(err)
	}
	return note
}

// seed creates orders 1 to 8 with two items each.
func (c *cluster) seed(t testing.TB) {
	t.Helper()
	for id := int64(1); id <= 8; id++ {
		o := Order{ID: id, UserID: id % 3, Note: fmt.Sprint("note ", id), Items: []Item{{SKU: fmt.Sprint("a", id)}, {SKU: fmt.Sprint("b", id)}}}
		if err := c.Create(&o).Error; err != nil {
			t.Fatal(err)
		}
	}
	c.rec.take()
}

// nextWord returns a generator of the words w1, w2 and so on.
func nextWord() func(context.Context) (string, error) {
	n := 0
	return func(context.Context) (string, error) {
		n++
		return fmt.Sprint("w", n), nil
	}
}
