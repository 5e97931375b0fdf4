// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// Vitess takes over the live tables in place: each database becomes a shard, in which the physical
// table is renamed to the logical one.
func ExampleVitessAdoption() {
	orders, err := sharding.MapOf(sharding.Target{DB: "east", Table: "orders_0"}, sharding.Target{DB: "west", Table: "orders_1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := export.VitessAdoption(router, export.VitessConfig{Keyspace: "shop"},
		map[string]string{"east": "shop_east", "west": "shop_west"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files.Files {
		fmt.Println(f.Name)
		if strings.HasSuffix(f.Name, ".sql") {
			fmt.Println(f.Text)
		}
	}
	// Output:
	// adopt.east.sql
	// -- Keep the writers stopped from here until they use Vitess' address.
	// CREATE DATABASE IF NOT EXISTS `shop_start_80`;
	// RENAME TABLE
	//   `shop_east`.`orders_0` TO `shop_start_80`.`orders`;
	//
	// adopt.east.undo.sql
	// -- Stop the writers and the vttablets first. The databases stay, because Vitess may have created tables there.
	// RENAME TABLE
	//   `shop_start_80`.`orders` TO `shop_east`.`orders_0`;
	//
	// adopt.west.sql
	// -- Keep the writers stopped from here until they use Vitess' address.
	// CREATE DATABASE IF NOT EXISTS `shop_80_end`;
	// RENAME TABLE
	//   `shop_west`.`orders_1` TO `shop_80_end`.`orders`;
	//
	// adopt.west.undo.sql
	// -- Stop the writers and the vttablets first. The databases stay, because Vitess may have created tables there.
	// RENAME TABLE
	//   `shop_80_end`.`orders` TO `shop_west`.`orders_1`;
	//
	// vttablets.sh
	// apply.sh
}

// Before Vitess takes over tables, their rows are checked: Vitess would not find a row with a
// negative key, and would report no error.
func ExampleCheckVitessRows() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // a database in memory is its connection's
	_, err = db.Exec(`CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER); CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER);
		INSERT INTO orders_0 VALUES (1, 6), (2, -2)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": db},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = export.CheckVitessRows(context.Background(), router, export.VitessConfig{Keyspace: "shop"})
	var refused *export.RefusedError
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// true export: vitess: table orders: no exact equivalent: east/orders_0 has 1 rows whose user_id is negative (-2 is the lowest), and the vindex reverse_bits gives negative numbers no shard: Vitess would find none of these rows by its key, and report no error; store the slot in a column of the table and name it in Buckets, or give these rows keys that are 0 or above
}
