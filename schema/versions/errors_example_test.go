// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing/fstest"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

// Files are read, and their statements checked, before anything is sent.
func Example_errors() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	check(err)
	defer func() { check(db.Close()) }()
	db.SetMaxOpenConns(1)
	tables, err := sharding.Spread([]string{"east"}, 2, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"east": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: tables})
	check(err)
	runner := func(text string) (*versions.Runner, error) {
		return versions.New(ctx, versions.Config{Router: router, Files: fstest.MapFS{"00001_orders.sql": {Data: []byte(text)}}})
	}
	_, err = runner("CREATE TABLE orders (user_id BIGINT)")
	fmt.Println(errors.Is(err, versions.ErrFiles), err)
	r, err := runner("-- +goose Up\nDELETE FROM orders;\n")
	check(err)
	_, err = r.Plan(ctx, 0)
	fmt.Println(errors.Is(err, versions.ErrStatement), err)
	r, err = runner("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n")
	check(err)
	check(r.Up(ctx, 0))
	_, err = r.Down(ctx)
	fmt.Println(errors.Is(err, versions.ErrNoDown), err)
	r, err = runner("-- +goose Up\nCREATE TABLE orders (user_id BIGINT, note TEXT);\n")
	check(err)
	err = r.Up(ctx, 0)
	fmt.Println(errors.Is(err, versions.ErrChanged), err)
	// Output:
	// true versions: the files cannot be read: 00001_orders.sql has no line -- +goose Up; write its statements below that line
	// true 00001_orders.sql: versions: this statement cannot be run on shards: only CREATE, ALTER, DROP and RENAME TABLE, CREATE and DROP INDEX, and COMMENT ON TABLE and COLUMN are allowed; create types, extensions and functions in each database before, and triggers on each physical table after: DELETE FROM orders
	// true versions: this version has no Down statements: 00001_orders.sql
	// true east: versions: a file was changed after it was run: statement 1 of 00001_orders.sql; restore it, and write the change as a new version
}
