// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema"
)

// NextID and Seed say what is wrong with the table or the number. They have written
// nothing.
func Example_errors() {
	ctx, db := context.Background(), memory()
	defer func() { _ = db.Close() }()
	_, err := db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT);
		CREATE TABLE full (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO full VALUES (9223372036854775807)`)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = schema.NextID(ctx, db, "goods", "id")
	fmt.Println(errors.Is(err, schema.ErrNoTable), err)
	_, err = schema.NextID(ctx, db, "orders", "note")
	fmt.Println(errors.Is(err, schema.ErrNoIntegerKey), err)
	_, err = schema.NextID(ctx, db, "full", "id")
	fmt.Println(errors.Is(err, schema.ErrKeyExhausted), err)
	// Output:
	// true schema: no such table; check the spelling and which database the DSN names: goods
	// true schema: no such integer column; name the table's integer key: orders.note
	// true schema: no id left: the column holds or counts up to the largest int64; move the outlying rows to lower ids first: full.id
}
