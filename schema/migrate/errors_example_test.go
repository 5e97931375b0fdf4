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
	"time"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// The verbs of a job return an error when its phase does not allow them, or when findings
// block it.
func Example_errors() {
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
	if _, err = source.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	tables, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%02d")
	if err != nil {
		log.Fatal(err)
	}
	cfg := migrate.Config{
		Source: source, Shards: shards,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: tables}}},
	}
	_, err = migrate.New(migrate.Config{Shards: shards, Tables: cfg.Tables})
	fmt.Println(errors.Is(err, migrate.ErrConfig), err)

	job, err := migrate.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	_, err = job.Verify(ctx)
	fmt.Println(errors.Is(err, migrate.ErrPhase), err)
	_, err = job.Cutover(ctx, time.Second)
	fmt.Println(errors.Is(err, migrate.ErrNotReady), err)
	_, err = job.Rollback(ctx, time.Second)
	fmt.Println(errors.Is(err, migrate.ErrPhase), err)

	if _, err := shards["a"].ExecContext(ctx, "CREATE TABLE orders_00 (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL); INSERT INTO orders_00 VALUES (1, 4)"); err != nil {
		log.Fatal(err)
	}
	err = job.Run(ctx)
	var blocked *migrate.BlockedError
	fmt.Println(errors.As(err, &blocked) && len(blocked.Findings) == 1, err)
	_ = os.RemoveAll(dir)
	// Output:
	// true migrate: configuration: Source: is nil
	// true migrate: job orders: verify: migrate: wrong phase: the job is "not begun"; rows can be compared from the begin of Run until Finalize
	// true migrate: job orders: migrate: not ready: the job is "not begun"; Run must have copied the tables
	// true migrate: job orders: migrate: wrong phase: the job is "not begun"; a rollback is possible from the cutover until finalize
	// true migrate: job orders: inspect has blocking findings: a/orders_00: the table exists and has rows that no job has written (drop it, or give the job tables of its own: it begins with empty ones)
}
