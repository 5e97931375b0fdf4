// SPDX-License-Identifier: Apache-2.0

package lookups_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
)

// check keeps the examples short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// people opens two databases with users, who are sharded by id and must also be found by email.
func people(dir string, building bool) (c lookups.Config, dbs sharding.DBs) {
	dbs = sharding.DBs{}
	for i, name := range []string{"east", "west"} {
		db, err := sql.Open("sqlite", filepath.Join(dir, name+".db"))
		check(err)
		_, err = db.Exec(fmt.Sprintf(`CREATE TABLE IF NOT EXISTS users_%d (id INTEGER PRIMARY KEY, email VARCHAR(100) UNIQUE)`, i))
		check(err)
		dbs[name] = db
	}
	tables, err := sharding.Spread([]string{"east", "west"}, 2, "users_%d")
	check(err)
	router, err := sharding.New(dbs, sharding.Table{
		Name: "users", Key: "id", Rule: sharding.Low(1), Map: tables,
		Lookups: []sharding.Lookup{{Column: "email", Table: "users_email", Unique: true, Building: building}},
	})
	check(err)
	return lookups.Config{Router: router, Home: dbs["east"], Table: "users", Column: "email"}, dbs
}

// A table with rows gets a lookup by email: the lookup table is created, all writers maintain it,
// and Build enters the existing rows.
func ExampleBuild() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "people")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	c, dbs := people(dir, true)
	defer func() { check(errors.Join(dbs["east"].Close(), dbs["west"].Close())) }()
	_, err = dbs["east"].Exec("INSERT INTO users_0 VALUES (2, 'ann@example.org')")
	check(err)
	_, err = dbs["west"].Exec("INSERT INTO users_1 VALUES (3, 'bob@example.org'), (5, 'ann@example.org')")
	check(err)

	check(lookups.Create(ctx, c))
	// The program that has Lookups with Building is rolled out everywhere. Then:
	_, err = lookups.Build(ctx, c)
	fmt.Println(errors.Is(err, lookups.ErrDuplicates), err)

	_, err = dbs["west"].Exec("UPDATE users_1 SET email = 'ann.5@example.org' WHERE id = 5")
	check(err)
	report, err := lookups.Build(ctx, c) // again after whatever ended it
	check(err)
	fmt.Println(report.Rows, "rows,", report.Entries, "entries,", report.Missing, "missing")
	// Output:
	// true lookups: values that must be unique have several owners: 1 rows of users have the email of another row: ann@example.org (id 2, east/users_0) and ann@example.org (id 5, west/users_1)
	// 3 rows, 3 entries, 0 missing
}

// A program that was killed between two statements has left an entry without its row.
// Verify counts it, and Tidy removes it.
func ExampleTidy() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "people")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	building, dbs := people(dir, true)
	defer func() { check(errors.Join(dbs["east"].Close(), dbs["west"].Close())) }()
	_, err = dbs["east"].Exec("INSERT INTO users_0 VALUES (2, 'ann@example.org')")
	check(err)
	check(lookups.Create(ctx, building))
	_, err = lookups.Build(ctx, building)
	check(err)
	c, dbs := people(dir, false) // once it is built
	defer func() { check(errors.Join(dbs["east"].Close(), dbs["west"].Close())) }()
	_, err = dbs["east"].Exec("DELETE FROM users_0 WHERE id = 2") // past package shardsql
	check(err)

	report, err := lookups.Verify(ctx, c)
	fmt.Println(report.LeftOver, "left over,", report.Removed, "removed", err)
	report, err = lookups.Tidy(ctx, c)
	fmt.Println(report.LeftOver, "left over,", report.Removed, "removed", err)

	_, err = dbs["west"].Exec("INSERT INTO users_1 VALUES (3, 'bob@example.org')") // so, too
	check(err)
	report, err = lookups.Verify(ctx, c)
	fmt.Println(errors.Is(err, lookups.ErrMissing), report.Missing, "missing")
	// Output:
	// 1 left over, 0 removed <nil>
	// 1 left over, 1 removed <nil>
	// true 1 missing
}

// The statements go into the migrations of the application.
func ExampleDDL() {
	dir, err := os.MkdirTemp("", "people")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	c, dbs := people(dir, true)
	defer func() { check(errors.Join(dbs["east"].Close(), dbs["west"].Close())) }()

	statements, err := lookups.DDL(context.Background(), c)
	check(err)
	for _, s := range statements {
		fmt.Println(s.Text)
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS "users_email" ("email" VARCHAR(100) NOT NULL, "id" INTEGER NOT NULL, "claim" BIGINT NOT NULL, PRIMARY KEY ("email"))
}
