// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/schema/rebalance"
)

// New code takes even ids from a generator, and connections with the parameters let the
// table give odd ones. Two rows came over a connection without the parameters.
func ExampleFindStrays() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(countStrays(context.Background(), filepath.Join(dir, "shop.db")), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// auto_increment_increment=2&auto_increment_offset=1
	// 2 rows are not of the class, from 102 to 104
}

func countStrays(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (98), (99), (101), (102), (103), (104)"); err != nil {
		return err
	}
	odd := rebalance.Class{Offset: 1, Step: 2}
	fmt.Println(odd.Parameters()) // of the DSN
	strays, err := rebalance.FindStrays(ctx, db, "orders", "id", 100, odd)
	fmt.Printf("%d rows are not of the class, from %d to %d\n", strays.Count, strays.First, strays.Last)
	return err
}
