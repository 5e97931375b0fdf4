// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func bank(east, west *sql.DB) *sharding.Router {
	m, err := sharding.Spread([]string{"east", "west"}, 2, "accounts_%d")
	check(err)
	r, err := sharding.New(sharding.DBs{"east": east, "west": west},
		sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.Atomic))
	check(err)
	return r
}

// A process runs a resolver beside its other work. Total is for metrics.
func ExampleNew() {
	router := bank(new(sql.DB), new(sql.DB))
	resolver, err := twophase.New(twophase.Config{Router: router})
	check(err)
	// go resolver.Run(ctx), until the process stops
	total, err := resolver.Total()
	fmt.Println(total.InDoubt, "branches in doubt,", total.Committed, "committed,", total.RolledBack, "rolled back,", err)
	// Output:
	// 0 branches in doubt, 0 committed, 0 rolled back, <nil>
}

// Create creates the table for decisions, and fails if a database has no two-phase commit.
func ExampleCreate() {
	east, err := sql.Open("sqlite", ":memory:")
	check(err)
	west, err := sql.Open("sqlite", ":memory:")
	check(err)
	fmt.Println(twophase.Create(context.Background(), bank(east, west), nil))
	// Output:
	// twophase: east: the server cannot prepare transactions: SQLite commits several files separately; keep rows that are written together in one file
}

// DDL is for programs that create tables themselves; Create also adds the row of identity.
func ExampleDDL() {
	text, err := twophase.DDL("postgres")
	check(err)
	fmt.Print(text)
	// Output:
	// CREATE TABLE IF NOT EXISTS "shardid_transactions" ("id" VARCHAR(32) NOT NULL PRIMARY KEY, "state" VARCHAR(10) NOT NULL, "participants" TEXT NOT NULL, "decided" BIGINT NOT NULL);
}
