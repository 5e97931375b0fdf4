// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func ExampleJob() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	open := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		if err != nil {
			log.Fatal(err)
		}
		return db
	}
	source, shards := open("shop.db"), sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	_, err = source.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL);
		INSERT INTO orders (user_id) VALUES (7), (8), (9)`)
	if err != nil {
		log.Fatal(err)
	}

	tables, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		log.Fatal(err)
	}
	job, err := migrate.New(migrate.Config{
		Source: source,
		Shards: shards,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: tables}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := job.Run(ctx); err != nil { // again after whatever ended it
		log.Fatal(err)
	}
	compared, err := job.Verify(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := job.Cutover(ctx, 10*time.Second); err != nil {
		log.Fatal(err)
	}
	route, err := sharding.ReadRoute(ctx, source, "orders")
	if err != nil {
		log.Fatal(err)
	}
	var id int
	if err := shards["b"].QueryRowContext(ctx, "SELECT id FROM orders_01 WHERE user_id = 9").Scan(&id); err != nil {
		log.Fatal(err)
	}
	fmt.Println(compared.Rows, "rows compared:", compared.Clean())
	fmt.Println("orders are served by the", route.Route, "- user 9 has order", id)
	_ = os.RemoveAll(dir)

	// Output:
	// 3 rows compared: true
	// orders are served by the shards - user 9 has order 3
}
