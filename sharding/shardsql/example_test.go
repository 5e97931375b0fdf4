// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// While the source of a migration serves a table, its preview lists the statements of the program
// that the shards will execute otherwise.
func Example_preview() {
	legacy, err := sql.Open("sqlite", "file:preview?mode=memory&cache=shared")
	check(err)
	defer func() { check(legacy.Close()) }()
	_, err = legacy.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	check(err)
	east, err := sql.Open("sqlite", "file::memory:")
	check(err)
	defer func() { check(east.Close()) }()
	tables, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	check(err)

	preview := new(sharding.Preview)
	router, err := sharding.New(sharding.DBs{"legacy": legacy, "east": east},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables},
		sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id"}, Preview: preview})
	check(err)
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: legacy})
	defer func() { check(db.Close()) }()

	for user := range 3 {
		_, err = db.Exec("UPDATE orders SET note = 'seen' WHERE user_id = ?", user)
		check(err)
		_, err = db.Exec("UPDATE orders SET note = 'late' WHERE note <> ?", user)
		check(err)
	}
	for _, s := range preview.Statements() {
		fmt.Printf("%s, %d times: %s\n%v\n", s.Change, s.Times, s.Text, s.Err)
	}
	// Output:
	// refused, 3 times: UPDATE orders SET note = ? WHERE note <> ?
	// sharding: update orders refused: no sharding key; add a condition on user_id, choose the shard with sharding.OnKey or sharding.On, or let it go to every shard with sharding.AllShards
}

// Statements on several shards cost a program most.
func ExampleObserver() {
	db, err := sql.Open("sqlite", "file:observed?mode=memory&cache=shared")
	check(err)
	defer func() { check(db.Close()) }()
	tables, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	check(err)
	for _, at := range tables.Targets() {
		_, err = db.Exec("CREATE TABLE " + at.Table + " (id INTEGER PRIMARY KEY, user_id INTEGER)")
		check(err)
	}
	router, err := sharding.New(sharding.DBs{"east": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	check(err)

	var mu sync.Mutex
	scatters := map[string]int{}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db, Observer: shardsql.Observer{
		Statement: func(_ context.Context, s shardsql.Statement) {
			if s.Kind == shardsql.Scatter {
				mu.Lock()
				defer mu.Unlock()
				scatters[s.Fingerprint]++
			}
		},
	}})
	defer func() { check(routed.Close()) }()

	for user := range 3 {
		var n int
		check(routed.QueryRow("SELECT COUNT(*) FROM orders WHERE user_id = ?", user).Scan(&n))
		check(routed.QueryRow("SELECT COUNT(*) FROM orders WHERE id < 10").Scan(&n))
		check(routed.QueryRow("SELECT COUNT(*) FROM orders WHERE id < 20").Scan(&n))
	}
	fmt.Println(scatters)
	// Output: map[SELECT COUNT(*) FROM orders WHERE id < ?:6]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Plan shows the execution of a statement without a database.
func ExamplePlan() {
	orders, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := shardsql.Plan(router, "mysql", "SELECT id FROM orders WHERE user_id = ?", 6)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, shard := range plan.Shards {
		fmt.Println(plan.Kind, shard.Target, shard.Text)
	}
	plan, err = shardsql.Plan(router, "mysql", "DELETE FROM orders WHERE id < 7")
	fmt.Println(plan.Kind, errors.Is(plan.Err, sharding.ErrMissingKey), err)
	// Output:
	// one east/orders_2 SELECT id FROM `orders_2` AS orders WHERE user_id = ?
	// refused true <nil>
}

// A planner shows what will become of statements before there are shards, by the columns of today's database.
func ExampleNewPlanner() {
	ctx := context.Background()
	today, err := sql.Open("sqlite", "file:planned?mode=memory&cache=shared")
	check(err)
	defer func() { check(today.Close()) }()
	_, err = today.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, status TEXT NOT NULL)")
	check(err)
	tables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)}, // they are not used
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: tables})
	check(err)
	planner, err := shardsql.NewPlanner(ctx, router, today)
	check(err)
	for _, text := range []string{
		"SELECT COUNT(DISTINCT status) FROM orders", // by the type of status
		"UPDATE orders SET status = 'x' WHERE status = 'y'",
		"SELECT name FROM customers", // which it does not have
	} {
		e, err := planner.Plan(ctx, text)
		check(err)
		fmt.Println(e.Kind, len(e.Shards))
	}
	fmt.Println(planner.Absent())
	// Output:
	// scatter 4
	// refused 0
	// home 1
	// [customers]
}

// Explain shows the execution of a statement on the databases of a program, with the columns of
// their tables. It sends only the query about columns.
func ExampleExplain() {
	ctx := context.Background()
	east, err := sql.Open("sqlite", "file:explained?mode=memory&cache=shared")
	check(err)
	defer func() { check(east.Close()) }()
	tables, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	check(err)
	for _, at := range tables.Targets() {
		_, err = east.Exec("CREATE TABLE " + at.Table + " (id INTEGER PRIMARY KEY, user_id INTEGER)")
		check(err)
	}
	router, err := sharding.New(sharding.DBs{"east": east}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	check(err)
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: east})
	defer func() { check(db.Close()) }()

	e, err := shardsql.Explain(ctx, db, "SELECT user_id FROM orders ORDER BY id LIMIT 5")
	check(err)
	fmt.Println(e.Kind, e.Err)
	for _, shard := range e.Shards {
		fmt.Println(shard.Target, shard.Text)
	}
	fmt.Println(e.Merge)
	e, err = shardsql.Explain(ctx, db, "DELETE FROM orders WHERE id = ?", 1) // the row may be on any shard
	check(err)
	fmt.Println(e.Kind, e.Lookups[0].Text)
	e, err = shardsql.Explain(ctx, db, "UPDATE orders SET user_id = 8 WHERE user_id = 1")
	check(err)
	fmt.Println(e.Kind, errors.Is(e.Err, sharding.ErrMissingKey), errors.Is(e.Err, sharding.ErrKeyChange))
	// Output:
	// scatter <nil>
	// east/orders_0 SELECT user_id, +id AS shardid_1 FROM "orders_0" AS orders ORDER BY id LIMIT 5
	// east/orders_1 SELECT user_id, +id AS shardid_1 FROM "orders_1" AS orders ORDER BY id LIMIT 5
	// rows are merged in their order; 5 rows after the first 0
	// lookup SELECT 0, "id", "user_id" FROM "orders_0" WHERE "id" IN (?) UNION ALL SELECT 1, "id", "user_id" FROM "orders_1" WHERE "id" IN (?)
	// refused false true
}
