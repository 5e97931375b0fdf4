// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shardid/shardid/schema/rebalance"
)

// A call that failed because of a lock, or of a server that restarts, is repeated later.
// One whose configuration cannot work would fail forever.
func ExampleTransient() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	other, err := db.Conn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = other.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		fmt.Println(err)
		return
	}
	_, err = db.ExecContext(ctx, "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY)")
	fmt.Println("a locked database:", rebalance.Transient(err))

	_, err = rebalance.NewMover(rebalance.MoverConfig{})
	fmt.Println("an empty configuration:", rebalance.Transient(err), errors.Is(err, rebalance.ErrConfig))
	// Output:
	// a locked database: true
	// an empty configuration: false true
}
