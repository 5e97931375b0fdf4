// SPDX-License-Identifier: Apache-2.0

package lookups_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
)

// A column that is no lookup, and a lookup whose table is not made yet.
func Example_errors() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	tables, err := sharding.Spread([]string{"east"}, 2, "users_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": db}, sharding.Table{
		Name: "users", Key: "id", Rule: sharding.Mod(2), Map: tables,
		Lookups: []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lookups.Config{Router: router, Home: db, Table: "users", Column: "city"}.Check()
	fmt.Println(errors.Is(err, lookups.ErrNotALookup), err)
	_, err = lookups.Verify(context.Background(), lookups.Config{Router: router, Home: db, Table: "users", Column: "email"})
	fmt.Println(errors.Is(err, lookups.ErrNotMade), err)
	// Output:
	// true lookups: table "users", column "city": no such lookup; declare it in sharding.Table.Lookups
	// true lookups: the lookup table does not exist: create users_by_email with shardid lookup create, lookups.Create or gormplugin.Migrate: SQL logic error: no such table: users_by_email (1)
}
