// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A router says why it cannot place a row. Each error names the table and the column.
func Example_errorsOfKeys() {
	tables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	check(err)
	countries, err := sharding.MapOf(sharding.Target{DB: "east", Table: "users_0"}, sharding.Target{DB: "west", Table: "users_1"})
	check(err)
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: tables},
		sharding.Table{Name: "users", Key: "country", Rule: sharding.List(map[string]sharding.Slot{"de": 0, "fr": 1}), Map: countries})
	check(err)

	_, err = router.Target("goods", 5)
	fmt.Println(errors.Is(err, sharding.ErrUnknownTable), err)
	_, err = router.Target("orders", 1.5)
	fmt.Println(errors.Is(err, sharding.ErrKeyType), err)
	_, err = router.Target("users", "it")
	fmt.Println(errors.Is(err, sharding.ErrNoSlot), err)
	_, err = router.TargetBy("orders", "id", 5)
	fmt.Println(errors.Is(err, sharding.ErrMissingKey), err)
	old := tables.At(3)
	check(router.Swap(map[string]sharding.Map{"orders": tables.At(4)}))
	err = router.Swap(map[string]sharding.Map{"orders": old})
	fmt.Println(errors.Is(err, sharding.ErrStaleMap), err)
	// Output:
	// true sharding: route goods refused: not a sharded table; add it to the router's tables
	// true sharding: route orders refused: float64: not a sharding key; an integer is expected (user_id)
	// true sharding: route users refused: "it": no slot for the key (country); give the rule a slot for it, or correct the key
	// true sharding: route orders refused: no sharding key: column "id" does not lead to a shard (id); add a condition on user_id
	// true sharding: Swap: table "orders": version 3 is not above 4: map of slots is out of date; give the new map a higher one with Map.At
}

// A statement that the shards cannot answer as one table does is refused, with what to do.
func Example_errorsOfStatements() {
	spread := func(pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"east", "west"}, 4, pattern)
		check(err)
		return m
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: spread("orders_%d"), OnMissing: sharding.Refuse},
		sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: spread("users_%d"),
			Lookups: []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}}},
		sharding.Broadcast("regions"))
	check(err)
	for _, c := range []struct {
		reason    error
		statement string
	}{
		{sharding.ErrMissingKey, "SELECT id FROM orders"},
		{sharding.ErrCrossShard, "SELECT * FROM orders JOIN users ON users.id = orders.seller WHERE orders.user_id = 5"},
		{sharding.ErrKeyChange, "UPDATE orders SET user_id = 6 WHERE user_id = 5"},
		{sharding.ErrRawTable, "TRUNCATE orders"},
		{sharding.ErrUnmergeable, "SELECT group_concat(email) FROM users"},
		{sharding.ErrLookup, "INSERT INTO users (id) VALUES (5)"},
		{sharding.ErrCopies, "INSERT INTO regions (id, made) VALUES (1, RAND())"},
		{sharding.ErrCrossDatabase, "INSERT INTO orders (id, user_id) VALUES (1, 5), (2, 6)"},
	} {
		e, err := shardsql.Plan(router, "mysql", c.statement)
		check(err)
		fmt.Println(errors.Is(e.Err, c.reason), e.Err)
	}
	// Output:
	// true sharding: query orders refused: no sharding key; add a condition on user_id, or on a column that Table.Also says leads to the shard; or let it go to every shard with sharding.AllShards, or always with Table.OnMissing: sharding.FanOutReads
	// true sharding: query users refused: rows of more than one shard; it is not in one group with orders; read one of them first and give its values as arguments, or give both tables the same Group if their rows belong together
	// true sharding: update orders refused: sharding key would change; the row would belong to another shard; insert a new row and delete the old one, or leave user_id out
	// true sharding: TRUNCATE of orders refused: its text leads to no shard: DDL of sharded and broadcast tables is not routed; empty its tables with DELETE and sharding.AllShards, or run the statement for each of Router.Targets on Router.DB
	// true sharding: query users refused: answers of several shards cannot be merged; group_concat(email) needs all rows of a group, and a database has only its own; add the sharding key to GROUP BY, or a condition on the sharding key, or run it as a report (docs/reports.md)
	// true sharding: insert users refused: lookup table would not be kept; name the column email; a value that the database gives it is not known beforehand
	// true sharding: insert regions refused: copies of the table would differ; rand may have another value in each database; compute it first, and pass it as an argument
	// true sharding: insert orders refused: transaction spans databases: this statement writes to database west and to database east; insert the rows of each database with a statement of their own, grouped by Router.Target, or let transactions span databases with sharding.Transactions, Atomic or BestEffort
}
