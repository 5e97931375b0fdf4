// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// moveOrders copies two orders from a database to its shard, and returns the job.
func moveOrders(ctx context.Context, dir string, ids migrate.IDs) (*migrate.Job, func() error, error) {
	source, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		return nil, nil, err
	}
	shard, err := sql.Open("sqlite", filepath.Join(dir, "a.db"))
	if err != nil {
		return nil, nil, err
	}
	closeBoth := func() error { return errors.Join(source.Close(), shard.Close()) }
	_, err = source.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL);
		INSERT INTO orders (user_id) VALUES (7), (8)`)
	if err != nil {
		return nil, nil, errors.Join(err, closeBoth())
	}
	tables, err := sharding.Spread([]string{"a"}, 4, "orders_%d")
	if err != nil {
		return nil, nil, errors.Join(err, closeBoth())
	}
	job, err := migrate.New(migrate.Config{
		Source: source,
		Shards: sharding.DBs{"a": shard},
		Tables: []migrate.Table{{
			Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: tables},
			IDs:   ids,
		}},
	})
	if err != nil {
		return nil, nil, errors.Join(err, closeBoth())
	}
	return job, closeBoth, job.Run(ctx)
}

// Rows get ids of a generator on the shards. Links and receipts with old ids still work:
// the table of both ids stays on the source.
func ExampleMapTable() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	generator := keygen.Counting(9_000_000, 1) // snowflake, say: the one of the application
	job, done, err := moveOrders(ctx, dir, migrate.MapTable(generator))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, old := range []int64{1, 2, 3} {
		id, err := job.ResolveOld(ctx, "orders", old)
		fmt.Println(old, "is now", id, errors.Is(err, migrate.ErrNoID))
	}
	fmt.Println(done())
	// Output:
	// 1 is now 9000000 false
	// 2 is now 9000001 false
	// 3 is now 0 true
	// <nil>
}

// Ids stay as they are, which is the default. KeepIDs excludes one table from the ids that
// Config.IDs gives all others.
func ExampleKeepIDs() {
	ids := migrate.Config{
		IDs: migrate.Affine(2, 1), // of all tables: 5 becomes 11
		Tables: []migrate.Table{
			{Table: sharding.Table{Name: "orders"}},
			{Table: sharding.Table{Name: "countries"}, IDs: migrate.KeepIDs()},
		},
	}
	fmt.Println(ids.IDs.New(5))
	fmt.Println(ids.Tables[1].IDs.New(5))
	// Output:
	// 11 <nil>
	// 5 <nil>
}
