package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
)

// exampleStore stands for the application's database.
func exampleStore(ctx context.Context) (*sql.DB, *sqlstore.Store) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // a database in memory is that of one connection
	if err := schema.Apply(ctx, db); err != nil {
		log.Fatal(err)
	}
	if _, err := schema.Seed(ctx, db, "orders", 70_000, 1000); err != nil {
		log.Fatal(err)
	}
	store, err := sqlstore.New(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	return db, store
}

func ExampleStore_Tag() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	ids, err := segment.New(ctx, segment.Config{Source: store.Tag("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	fmt.Println(ids.Next(ctx))
	// Output: 70000 <nil>
}

func ExampleStore_GuardedTag() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	ids, err := segment.New(ctx, segment.Config{Source: store.GuardedTag("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	fmt.Println(ids.Next(ctx)) // the first use begins ten steps higher
	// Output: 80000 <nil>
}

func ExampleStore_WorkerNode() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	for range 2 { // each start has a worker id of its own
		lease, err := store.WorkerNode("web-1", "8080").Acquire(ctx, keygen.Twitter())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.ID())
	}
	// Output:
	// 1
	// 2
}

func ExampleStore_Leases() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := snowflake.New(ctx, snowflake.Config{Worker: worker})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }() // hands the worker id back
	id, err := ids.Next(ctx)
	fmt.Println(id > 0, err, ids.Stats().Worker)
	// Output: true <nil> 0
}
