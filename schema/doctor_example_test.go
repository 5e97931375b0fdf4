// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// Somebody has moved an order to another user, and left the row in its old shard.
func ExampleDoctor() {
	dir, err := os.MkdirTemp("", "shardid")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	ctx := context.Background()
	_, err = db.ExecContext(ctx, `
		CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, user_id INTEGER);
		CREATE TABLE orders_1 (id INTEGER PRIMARY KEY, user_id INTEGER);
		INSERT INTO orders_0 VALUES (1, 10), (2, 12);
		INSERT INTO orders_1 VALUES (3, 11);
		UPDATE orders_0 SET user_id = 13 WHERE id = 2`)
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := sharding.Spread([]string{"shop"}, 2, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"shop": db},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: layout})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := schema.Doctor(ctx, router, schema.DoctorConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range diagnosis.Findings {
		fmt.Printf("%s %v: %s\n", f.Severity, f.Place, f.Message)
		fmt.Println("key", f.Examples[0].Key, "belongs to", f.Examples[0].Belongs)
	}
	// Output:
	// error shop/orders_0: 1 row is here that the router looks for in another table
	// key 13 belongs to shop/orders_1
}
