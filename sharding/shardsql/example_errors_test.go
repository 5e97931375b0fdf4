// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// What shards cannot answer as one table does is refused before anything is sent. A program
// tells the reasons apart by errors.Is, and finds in a RouteError which table it is and what to do.
func Example_refusedStatements() {
	dbs := sharding.DBs{}
	for _, name := range []string{"east", "west"} {
		db, err := sql.Open("sqlite", "file:refused-"+name+"?mode=memory&cache=shared")
		check(err)
		defer func() { check(db.Close()) }()
		dbs[name] = db
	}
	tables, err := sharding.Spread([]string{"east", "west"}, 2, "orders_%d")
	check(err)
	for _, at := range tables.Targets() {
		_, err = dbs[at.DB].Exec("CREATE TABLE " + at.Table + " (id INTEGER PRIMARY KEY, user_id INTEGER, first INTEGER)")
		check(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	check(err)
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["east"]})
	defer func() { check(db.Close()) }()

	reasons := map[string]error{
		"ErrMissingKey": sharding.ErrMissingKey, "ErrKeyChange": sharding.ErrKeyChange, "ErrRawTable": sharding.ErrRawTable,
		"ErrUnmergeable": sharding.ErrUnmergeable, "ErrCrossDatabase": sharding.ErrCrossDatabase,
	}
	report := func(err error) {
		for name, reason := range reasons {
			if errors.Is(err, reason) {
				fmt.Println(name)
			}
		}
	}
	for _, statement := range []string{
		"UPDATE orders SET first = 1 WHERE first = 7",                                    // which shard? all: sharding.AllShards
		"UPDATE orders SET user_id = 5 WHERE user_id = 4",                                // the row would have to move
		"SELECT COUNT(*) FROM orders_0 WHERE user_id = 4",                                // the physical table
		"SELECT a.id FROM orders a JOIN orders b ON b.id = a.first WHERE a.user_id <> 4", // rows of different shards
	} {
		_, err := db.Exec(statement)
		report(err)
	}
	tx, err := db.BeginTx(context.Background(), nil)
	check(err)
	_, err = tx.Exec("INSERT INTO orders (id, user_id) VALUES (1, 4)")
	check(err)
	_, err = tx.Exec("INSERT INTO orders (id, user_id) VALUES (2, 5)") // the other database: sharding.Transactions
	report(err)
	check(tx.Rollback())

	_, err = db.Exec("DELETE FROM orders")
	var refused *sharding.RouteError
	fmt.Println(errors.As(err, &refused), refused.Op, refused.Table)
	// Output:
	// ErrMissingKey
	// ErrKeyChange
	// ErrRawTable
	// ErrUnmergeable
	// ErrCrossDatabase
	// true delete orders
}
