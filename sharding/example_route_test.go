// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// check keeps the examples short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// ordersInTwoTables returns a database in which orders lie in two tables, by their user.
func ordersInTwoTables() *sql.DB {
	east, err := sql.Open("sqlite", ":memory:")
	check(err)
	east.SetMaxOpenConns(1) // a database in memory is its connection's
	_, err = east.Exec(`CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL);
		CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL);
		INSERT INTO orders_0 VALUES (1, 6); INSERT INTO orders_1 VALUES (2, 7)`)
	check(err)
	tables, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"east": east},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	check(err)
	return shardsql.OpenDB(shardsql.Config{Router: router, Home: east})
}

// The statement has no condition on the sharding key. Its context names the row's key.
func ExampleOnKey() {
	db := ordersInTwoTables()
	ctx := context.Background()
	_, err := db.ExecContext(ctx, "DELETE FROM orders WHERE id > 1")
	fmt.Println(errors.Is(err, sharding.ErrMissingKey))

	result, err := db.ExecContext(sharding.OnKey(ctx, "orders", 7), "DELETE FROM orders WHERE id > 1")
	check(err)
	fmt.Println(result.RowsAffected())
	// Output:
	// true
	// 1 <nil>
}

// A report counts the rows of one physical table after another.
func ExampleOn() {
	db := ordersInTwoTables()
	for _, at := range []sharding.Target{{DB: "east", Table: "orders_0"}, {DB: "east", Table: "orders_1"}} {
		var id int
		check(db.QueryRowContext(sharding.On(context.Background(), at), "SELECT id FROM orders").Scan(&id))
		fmt.Println(at, "has order", id)
	}
	// Output:
	// east/orders_0 has order 1
	// east/orders_1 has order 2
}

// A program that sends statements to the source itself reads the route before it sends a statement
// again. A source without migrations serves its tables itself.
func ExampleReadRoute() {
	ctx := context.Background()
	source, err := sql.Open("sqlite", ":memory:")
	check(err)
	source.SetMaxOpenConns(1)
	row, err := sharding.ReadRoute(ctx, source, "orders")
	check(err)
	fmt.Println(row.Route == sharding.OnSource, row.Epoch)

	// A switch of the migration "autumn" writes this on the source:
	_, err = source.Exec(`CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT);
		INSERT INTO shardid_route VALUES ('orders', 'autumn', 1, 'shards')`)
	check(err)
	row, err = sharding.ReadRoute(ctx, source, "Orders")
	check(err)
	fmt.Println(row.Table, row.Job, row.Epoch, row.Route)
	// Output:
	// true 0
	// orders autumn 1 shards
}

// The triggers of package slotstore refuse writes to a slot that is moving. A program that sends
// statements to the physical tables itself gets ErrSlotMoving, and retries after it has the new
// map.
func ExampleSlotMoving() {
	db, err := sql.Open("sqlite", ":memory:")
	check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE orders_0 (id INTEGER PRIMARY KEY);
		CREATE TRIGGER moving BEFORE INSERT ON orders_0 BEGIN SELECT RAISE(ABORT, '` + sharding.FenceMessage + `'); END`)
	check(err)
	_, err = db.Exec("INSERT INTO orders_0 VALUES (1)")
	fmt.Println(errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving))

	_, err = db.Exec("INSERT INTO orders_1 VALUES (1)") // another error stays as it is
	fmt.Println(errors.Is(sharding.SlotMoving(err), sharding.ErrSlotMoving), errors.Is(sharding.SlotMoving(err), err))
	// Output:
	// true
	// false true
}

// The ids of new orders carry the slots of their users, so that an id alone finds its shard.
func ExampleRouter_FillIDs() {
	ctx := context.Background()
	byID := sharding.Low(3)
	tables, err := sharding.Spread([]string{"east"}, 8, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB)}, sharding.Table{
		Name: "orders", Key: "user_id", Rule: sharding.Mod(8), Map: tables,
		Also: []sharding.Alt{{Column: "id", Rule: byID}},
	})
	check(err)
	generator, err := snowflake.New(ctx, snowflake.Config{Worker: workerid.Static(1), Layout: keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 8}, {Kind: keygen.Sequence, Bits: 11}, {Kind: keygen.Bucket, Bits: 3}},
	}})
	check(err)
	defer func() { check(generator.Close()) }()

	ids := make([]int64, 3)
	check(router.FillIDs(ctx, generator, "orders", "id", ids, []any{9, 10, 15})) // the users
	for _, id := range ids {
		fmt.Println(byID.Slot(id))
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 7 <nil>
}
