// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/periodic"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema"
)

// exampleStore represents the application's database.
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

// Orders are numbered from 1 on in each month and each shop.
func ExampleStore_Periods() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	orders, err := periodic.New(periodic.Config{Counters: store.Periods(), Name: "order", Period: periodic.Month, Zone: time.UTC, Digits: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = orders.Close() }()
	for _, shop := range []string{"shop7", "shop7", "shop8"} {
		number, err := orders.Next(ctx, shop)
		fmt.Println(shop, number.Count, err) // number is 2026-11-000001
	}
	// Output:
	// shop7 1 <nil>
	// shop7 2 <nil>
	// shop8 1 <nil>
}

// Two databases of tinyid, one of which counts the odd ids.
func ExampleStore_TinyID() {
	ctx := context.Background()
	var servers []ticket.Server
	for remainder := range int64(2) {
		db, store := exampleStore(ctx)
		defer func() { _ = db.Close() }()
		if err := makeTinyIDs(ctx, db, remainder); err != nil {
			fmt.Println(err)
			return
		}
		source, err := store.TinyID("order", 2, remainder)
		if err != nil {
			fmt.Println(err)
			return
		}
		servers = append(servers, source)
	}
	ids, err := ticket.New(ctx, ticket.Config{Servers: servers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	for range 4 {
		fmt.Println(ids.Next(ctx))
	}
	// Output:
	// 1001 <nil>
	// 1002 <nil>
	// 1003 <nil>
	// 1004 <nil>
}

// makeTinyIDs creates the table that tinyid has created in its own databases.
func makeTinyIDs(ctx context.Context, db *sql.DB, remainder int64) error {
	for _, text := range []string{
		`CREATE TABLE tiny_id_info (biz_type TEXT PRIMARY KEY, max_id BIGINT, step INT, delta INT, remainder INT, update_time TIMESTAMP, version BIGINT)`,
		fmt.Sprintf(`INSERT INTO tiny_id_info VALUES ('order', 1000, 100000, 2, %d, NULL, 0)`, remainder),
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func ExampleStore_CosID() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()
	for _, text := range []string{ // what CosId has made already where it runs
		"CREATE TABLE cosid (name TEXT PRIMARY KEY, last_max_id BIGINT, last_fetch_time BIGINT)",
		"INSERT INTO cosid VALUES ('shop.order', 41, 0)",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			fmt.Println(err)
			return
		}
	}
	ids, err := segment.New(ctx, segment.Config{Source: store.CosID("shop.order")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	fmt.Println(ids.Next(ctx))
	// Output: 42 <nil>
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

// wuid's table has the high bits, on MySQL and MariaDB. This store is on SQLite, where a
// tag of leaf_alloc takes its place.
func ExampleStore_WUID() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	highs, err := store.WUID("wuid")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, source := range []keygen.Source{highs, store.Tag("orders")} {
		sections, err := keygen.Sections(source, 36)
		if err != nil {
			fmt.Println(err)
			return
		}
		ids, err := segment.New(ctx, segment.Config{Source: sections})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(ids.Next(ctx))
		_ = ids.Close()
	}
	// Output:
	// segment: keygen: reserve a section: sqlstore: wuid's table wuid: wuid's table exists only on MySQL and MariaDB, and the database is neither; take the high bits from a Tag of leaf_alloc
	// 4810363371520000 <nil>
}

// Worker ids that a lost server may have given are skipped on the next server. The first
// use of a table with rows skips a thousand as well.
func ExampleStore_GuardedWorkerNode() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	for _, assigner := range []keygen.Assigner{store.WorkerNode("web-1", "8080"), store.GuardedWorkerNode("web-1", "8080"), store.GuardedWorkerNode("web-2", "8080")} {
		lease, err := assigner.Acquire(ctx, keygen.Disposable())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(lease.ID())
	}
	// Output:
	// 1
	// 1002
	// 1003
}

// This lists which ids are in no segment yet.
func ExampleStore_TagRows() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	if _, err := store.Tag("orders").Reserve(ctx, 500); err != nil {
		fmt.Println(err)
		return
	}
	rows, err := store.TagRows(ctx, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		fmt.Println(row.Tag, row.Next, row.Step, row.Unchanged < time.Minute)
	}
	// Output: orders 70500 1000 true
}

// This lists who has which worker id, and for how long.
func ExampleStore_LeaseRows() {
	ctx := context.Background()
	db, store := exampleStore(ctx)
	defer func() { _ = db.Close() }()

	workers, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: store.Leases(), Namespace: "orders", Instance: "10.0.0.7:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := workers.Acquire(ctx, keygen.Twitter()); err != nil { // as snowflake.New does
		fmt.Println(err)
		return
	}
	rows, err := store.LeaseRows(ctx, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range rows {
		fmt.Println(row.Namespace, row.Worker, row.Holder, row.Held, row.Left > 0)
	}
	// Output: orders 0 10.0.0.7:8080 true true
}

// A store asks its database for its kind. The tables may be created later.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // a database in memory is that of one connection
	store, err := sqlstore.New(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := schema.Apply(ctx, db); err != nil {
		fmt.Println(err)
		return
	}
	_, err = segment.New(ctx, segment.Config{Source: store.Tag("orders")})
	fmt.Println(errors.Is(err, keygen.ErrUnknownTag)) // schema.Seed makes it
	// Output: true
}
