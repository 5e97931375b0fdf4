// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema"
)

// memory opens an empty database of one connection, as each connection to
// :memory: has a database of its own.
func memory() *sql.DB {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

func ExampleApply() {
	ctx, db := context.Background(), memory()
	defer func() { _ = db.Close() }()
	for range 2 { // at every start of every process
		if err := schema.Apply(ctx, db); err != nil {
			fmt.Println(err)
			return
		}
	}
	var tables int
	row := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('leaf_alloc', 'WORKER_NODE')")
	fmt.Println(row.Scan(&tables), tables)
	// Output: <nil> 2
}

func ExampleInspect() {
	ctx, db := context.Background(), memory()
	defer func() { _ = db.Close() }()
	_, _ = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, total DECIMAL);
		CREATE TABLE tags (order_id INTEGER REFERENCES orders (id), tag TEXT, PRIMARY KEY (order_id, tag));
		INSERT INTO orders (total) VALUES (19.95), (0.05)`)

	report, err := schema.Inspect(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range report.Tables {
		if t.Key != nil {
			fmt.Printf("%s: %s %s, next id %d\n", t.Name, t.Key.Type, t.Key.Column, t.Key.Next)
		}
		for _, f := range t.Findings {
			fmt.Printf("%s: %s: %s\n", t.Name, f.Severity, f.Message)
		}
	}
	// Output:
	// orders: INTEGER id, next id 3
	// tags: error: the primary key is (order_id, tag)
}

func ExampleSeed() {
	ctx, db := context.Background(), memory()
	defer func() { _ = db.Close() }()
	_, _ = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, total DECIMAL);
		INSERT INTO orders (id, total) VALUES (41, 19.95)`)
	if err := schema.Apply(ctx, db); err != nil {
		fmt.Println(err)
		return
	}

	next, err := schema.NextID(ctx, db, "orders", "id")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Generated ids start 1000 above what the table has given, and a second
	// seed, say of a process started later, does not take any back.
	fmt.Println(schema.Seed(ctx, db, "orders", next+1000, 500))
	fmt.Println(schema.Seed(ctx, db, "orders", next, 500))
	// Output:
	// 1042 <nil>
	// 1042 <nil>
}

func ExampleDDL() {
	text, err := schema.DDL("sqlite")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text[:50])
	// Output: -- The tables of shardid on SQLite 3.37 and newer.
}
