// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
)

// check keeps the examples short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleNew() {
	type Customer struct {
		ID   int64 `keygen:""`
		Name string
	}
	type Invoice struct {
		ID         int64 `keygen:"invoice"`
		CustomerID int64
	}
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	check(db.Exec("CREATE TABLE customers (id BIGINT PRIMARY KEY, name TEXT)").Error)
	check(db.Exec("CREATE TABLE invoices (id BIGINT PRIMARY KEY, customer_id BIGINT)").Error)

	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{
		Default: keygen.Counting(1_000_000, 1), // snowflake, say
		Named: map[string]keygen.Generator[int64]{
			"invoice": keygen.Counting(500, 1), // segment, say
		},
	}})))

	customers := []Customer{{Name: "Ada"}, {ID: 7, Name: "Grace"}, {Name: "Edsger"}}
	check(db.Create(&customers).Error)
	invoice := Invoice{CustomerID: customers[0].ID}
	check(db.Create(&invoice).Error)
	fmt.Println(customers)
	fmt.Println(invoice)
	// Output:
	// [{1000000 Ada} {7 Grace} {1000001 Edsger}]
	// {500 1000000}
}

// exampleShards opens two SQLite databases with four tables of orders, and returns the router and a
// function that removes them.
func exampleShards() (*sharding.Router, func()) {
	dir, err := os.MkdirTemp("", "shards")
	check(err)
	dbs := sharding.DBs{}
	for _, name := range []string{"east", "west"} {
		dbs[name], err = sql.Open("sqlite", filepath.Join(dir, name+".db"))
		check(err)
	}
	orders, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	check(err)
	for _, target := range orders.Targets() {
		_, err := dbs[target.DB].Exec("CREATE TABLE " + target.Table + " (id BIGINT PRIMARY KEY, note TEXT)")
		check(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(4), Map: orders})
	check(err)
	return router, func() {
		check(dbs["east"].Close())
		check(dbs["west"].Close())
		check(os.RemoveAll(dir))
	}
}

func Example_sharding() {
	type Order struct {
		ID   int64 `keygen:""`
		Note string
	}
	router, cleanUp := exampleShards() // orders, in two databases and four tables
	defer cleanUp()
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{
		Generators: keygen.Set{Default: keygen.Counting(10, 1)},
		Router:     router,
	})))

	for _, note := range []string{"apples", "pears", "plums", "figs"} {
		order := Order{Note: note}
		check(db.Create(&order).Error)
		target, err := router.Target("orders", order.ID)
		check(err)
		fmt.Println(order.ID, order.Note, "in", target)
	}
	var order Order
	check(db.First(&order, 12).Error)
	check(db.Model(&order).Update("note", "sold").Error)
	check(db.Transaction(func(tx *gorm.DB) error {
		return tx.Where("id = ? AND note = ?", 12, "sold").Delete(&Order{}).Error
	}))
	fmt.Println(db.First(&order, 12).Error)
	// Output:
	// 10 apples in east/orders_2
	// 11 pears in west/orders_3
	// 12 plums in east/orders_0
	// 13 figs in west/orders_1
	// record not found
}

// readmeShards is the second example of the README, without the last line.
func readmeShards(ctx context.Context) error {
	type Order struct {
		ID     keygen.ID `keygen:""` // its last bits are the user's slot, so the id alone finds the shard
		UserID int64
	}

	east, err := sql.Open("sqlite", "east.db") // or "mysql" or "pgx", with the data source name of a server
	check(err)
	west, err := sql.Open("sqlite", "west.db")
	check(err)
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", Conn: east}, &gorm.Config{})
	check(err)
	worker := workerid.Static(1) // for a test: processes of a service lease worker ids by workerid.NewLeased
	ids, err := snowflake.New(ctx, snowflake.Config{Worker: worker, Layout: keygen.Twitter().WithBucket(3)})
	check(err)
	defer func() { check(ids.Close()) }()
	tables, err := sharding.Spread([]string{"east", "west"}, 8, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"east": east, "west": west},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: tables,
			Also: []sharding.Alt{{Column: "id", Rule: sharding.Low(3)}}})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: ids}, Router: router})))
	check(gormplugin.Migrate(ctx, db, &Order{})) // orders_0, …, orders_7
	check(gormplugin.Check(db, &Order{}))

	orders := []Order{{UserID: 10}, {UserID: 18}}
	check(db.Create(&orders).Error)                                // both go to orders_2 in east
	check(db.First(&Order{}, orders[0].ID).Error)                  // reads orders_2 alone
	check(db.Where("user_id = ?", 10).Find(&orders).Error)         // reads orders_2 alone
	check(db.Find(&orders, "user_id IN ?", []int64{10, 13}).Error) // reads two shards and merges
	check(db.Order("id DESC").Limit(20).Find(&orders).Error)       // reads all shards and merges
	refused := db.Where("user_id > 0").Delete(&Order{}).Error      // the error says why, and what helps
	return refused
}

func Example_shards() {
	dir, err := os.MkdirTemp("", "shards")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	before, err := os.Getwd()
	check(err)
	check(os.Chdir(dir))
	defer func() { check(os.Chdir(before)) }()

	fmt.Println(readmeShards(context.Background()))
	east, err := sql.Open("sqlite", "east.db")
	check(err)
	defer func() { check(east.Close()) }()
	var here int
	check(east.QueryRow("SELECT COUNT(*) FROM orders_2").Scan(&here))
	fmt.Println(here, "orders in orders_2")
	// Output:
	// sharding: delete orders refused: no sharding key: the condition on user_id leads to no single shard; user_id = … or user_id IN (…) does, beside other conditions with AND; add a condition on user_id or id, choose the shard with sharding.OnKey or sharding.On, or let it go to every shard with sharding.AllShards, which needs sharding.Transactions(sharding.Atomic) or BestEffort, because the shards are in several databases
	// 2 orders in orders_2
}

func Example_refused() {
	type Order struct {
		ID   int64
		Note string
	}
	router, cleanUp := exampleShards()
	defer cleanUp()
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Router: router})))

	var orders []Order
	fmt.Println(db.Select("group_concat(note)").Find(&orders, []int{1, 2}).Error)
	fmt.Println(db.Create(&Order{Note: "no id"}).Error)
	fmt.Println(db.Exec("DELETE FROM orders").Error)
	// Output:
	// sharding: query orders refused: answers of several shards cannot be merged; group_concat(note) needs all rows of a group, and a database has only its own; add the sharding key to GROUP BY, or a condition on the sharding key, or run it as a report (docs/reports.md)
	// sharding: create orders refused: no sharding key (id); row 0: set the field ID before Create; the zero value counts as none, unless the field is a pointer to it
	// sharding: delete orders refused: no sharding key; add a condition on id, choose the shard with sharding.OnKey or sharding.On, or let it go to every shard with sharding.AllShards, which needs sharding.Transactions(sharding.Atomic) or BestEffort, because the shards are in several databases
}

// The tables of orders are created on all shards from the model.
func ExampleMigrate() {
	type Order struct {
		ID   int64
		Note string
		Paid bool
	}
	router, cleanUp := exampleShards()
	defer cleanUp()
	db, err := gorm.Open(sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}, &gorm.Config{Logger: logger.Discard})
	check(err)
	check(db.Use(gormplugin.New(gormplugin.Config{Router: router})))
	check(gormplugin.Migrate(context.Background(), db, &Order{}))
	_, err = router.DB("east").Exec("UPDATE orders_2 SET paid = true")
	fmt.Println(err)
	// Output: <nil>
}
