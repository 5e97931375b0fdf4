// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// The ids of a table come from a row of leaf_alloc in the application's own database, a
// thousand per round trip.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:segment?mode=memory&cache=shared")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	if err := schema.Apply(ctx, db); err != nil { // once, or by a DBA
		fmt.Println(err)
		return
	}
	if _, err := schema.Seed(ctx, db, "orders", 5001, 1000); err != nil { // the table's highest id is 5000
		fmt.Println(err)
		return
	}

	store, err := sqlstore.New(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := segment.New(ctx, segment.Config{Source: store.Tag("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()

	for range 3 {
		id, err := orders.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id)
	}
	fmt.Println(orders.Stats().Remaining, "more without asking the database")
	// Output:
	// 5001
	// 5002
	// 5003
	// 997 more without asking the database
}

// Usage says how large a step leaf_alloc should have, so that every process can work for
// ten minutes without the database from its first segment on.
func ExampleGenerator_Usage() {
	ctx := context.Background()
	orders, err := segment.New(ctx, segment.Config{Source: &row{maxID: 1, step: 2000}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()
	u := orders.Usage()
	fmt.Printf("segments of %d ids, %.0f a second now, %.0f at most: set step to %d\n", u.Step, u.Rate, u.Peak, max(u.Advice, 1000))
	// Output: segments of 2000 ids, 0 a second now, 0 at most: set step to 1000
}
