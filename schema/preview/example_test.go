// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
)

// A process of the application records which of its statements the shards will refuse. An
// operator reads the records of all processes before the switch.
func ExampleStart() {
	ctx := context.Background()
	source, err := sql.Open("sqlite", "file:start?mode=memory&cache=shared")
	check(err)
	defer func() { check(source.Close()) }()

	// In each process of the application. The Router's Migration has the same Preview, and
	// the database of package shardsql adds to it; here one statement is added by hand.
	var found sharding.Preview
	recorder, err := preview.Start(ctx, preview.Config{Source: source, Preview: &found})
	check(err)
	found.Add("DELETE FROM orders WHERE note = ?", sharding.WillBeRefused, sharding.ErrMissingKey)
	check(recorder.Close(ctx)) // when the process ends

	// In the operator's program, or by `shardid migrate preview`.
	all, err := preview.Read(ctx, source, "autumn")
	check(err)
	for _, s := range all.Statements {
		fmt.Printf("%s: %s: %s\n", s.Becomes, s.Text, s.Reason)
	}
	fmt.Println("not yet seen by an operator:", all.Unseen)
	check(preview.NoteLook(ctx, source, "autumn", all)) // the switch warns no longer
	all, err = preview.Read(ctx, source, "autumn")
	check(err)
	fmt.Println("not yet seen by an operator:", all.Unseen)
	// Output:
	// refused: DELETE FROM orders WHERE note = ?: no sharding key
	// not yet seen by an operator: 1
	// not yet seen by an operator: 0
}

// The application's user may not create tables: an administrator makes them once, by
// Create or by the statements that DDL returns.
func ExampleCreate() {
	ctx := context.Background()
	source, err := sql.Open("sqlite", "file:create?mode=memory&cache=shared")
	check(err)
	defer func() { check(source.Close()) }()

	check(preview.Create(ctx, source))
	rows, err := source.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
	check(err)
	defer func() { check(rows.Close()) }()
	for rows.Next() {
		var name string
		check(rows.Scan(&name))
		fmt.Println(name)
	}
	check(rows.Err())
	// Output:
	// shardid_preview
	// shardid_preview_look
}

// The statements go into the migrations of the application, for databases to which the
// program has no right to CREATE.
func ExampleDDL() {
	text, err := preview.DDL("sqlite")
	check(err)
	fmt.Println(text)
	_, err = preview.DDL("oracle")
	fmt.Println(err)
	// Output:
	// CREATE TABLE IF NOT EXISTS shardid_preview (id VARCHAR(64) NOT NULL PRIMARY KEY, outcome INTEGER NOT NULL DEFAULT 0, times BIGINT NOT NULL DEFAULT 0, found BIGINT NOT NULL, seen BIGINT NOT NULL, statement BLOB, reason BLOB);
	// CREATE TABLE IF NOT EXISTS shardid_preview_look (job VARCHAR(64) NOT NULL PRIMARY KEY, looked BIGINT NOT NULL DEFAULT 0, refused BIGINT NOT NULL DEFAULT 0);
	//
	// preview: unknown database; supported are MySQL, MariaDB, PostgreSQL and SQLite, not "oracle"
}

// check keeps the examples short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
