// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

// A column is added to all four physical tables of orders. The plan shows the statements
// before they are sent; Up may be called again after an interruption.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	dbs := sharding.DBs{}
	for _, name := range []string{"east", "west"} {
		dbs[name], err = sql.Open("sqlite", filepath.Join(dir, name+".db"))
		check(err)
		defer func() { check(dbs[name].Close()) }()
	}
	tables, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	check(err)
	router, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: tables})
	check(err)

	files := fstest.MapFS{ // os.DirFS("versions") or an embed.FS
		"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL);\n")},
		"00002_note.sql":   {Data: []byte("-- +goose Up\nALTER TABLE orders ADD COLUMN note TEXT;\n")},
	}
	runner, err := versions.New(ctx, versions.Config{Router: router, Files: files})
	check(err)
	check(runner.Up(ctx, 1))
	plan, err := runner.Plan(ctx, 0)
	check(err)
	for _, step := range plan {
		fmt.Println(step.Target.DB, step.SQL)
	}
	check(runner.Up(ctx, 0))
	status, err := runner.Status(ctx)
	check(err)
	fmt.Println("all versions on all databases:", status.Complete())
	// Output:
	// east ALTER TABLE "orders_0" ADD COLUMN note TEXT
	// east ALTER TABLE "orders_2" ADD COLUMN note TEXT
	// west ALTER TABLE "orders_1" ADD COLUMN note TEXT
	// west ALTER TABLE "orders_3" ADD COLUMN note TEXT
	// all versions on all databases: true
}

// check keeps the example short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
