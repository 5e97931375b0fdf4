// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// A row without a sharding key has no shard to go to. Inspect finds it before anything is
// changed, and Status says that nothing has begun.
func ExampleJob_Inspect() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(inspectedBefore(context.Background(), dir), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// block no_sharding_key
	// none
}

func inspectedBefore(ctx context.Context, dir string) (err error) {
	source, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	shard, err := sql.Open("sqlite", filepath.Join(dir, "a.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(), shard.Close()) }()
	if _, err := source.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER); INSERT INTO orders (user_id) VALUES (7), (NULL)"); err != nil {
		return err
	}
	tables, err := sharding.Spread([]string{"a"}, 2, "orders_%d")
	if err != nil {
		return err
	}
	job, err := migrate.New(migrate.Config{
		Source: source, Shards: sharding.DBs{"a": shard},
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables}}},
	})
	if err != nil {
		return err
	}
	found, err := job.Inspect(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Severity == migrate.Block {
			fmt.Println(f.Severity, f.Code)
		}
	}
	status, err := job.Status(ctx)
	fmt.Println(status.Phase)
	return err
}
