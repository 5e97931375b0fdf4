// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// UidGenerator's layout with an epoch of one's own, and a worker id that is new
// at each start.
func ExampleNew() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:cached?mode=memory&cache=shared")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	if err := schema.Apply(ctx, db); err != nil { // once, or by a DBA
		fmt.Println(err)
		return
	}
	store, err := sqlstore.New(ctx, db)
	if err != nil {
		fmt.Println(err)
		return
	}

	layout := keygen.Baidu()
	layout.Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids, err := cached.New(ctx, cached.Config{Layout: layout, Worker: store.WorkerNode("web-1", "8080")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()

	id, err := ids.Next(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	parts, err := layout.Parse(id)
	fmt.Println(parts.Worker, time.Until(parts.Time) < 8*time.Second, err)
	// Output: 1 true <nil>
}

// Ring shows the ring in UidGenerator's words.
func ExampleGenerator_Ring() {
	ctx := context.Background()
	ids, err := cached.New(ctx, cached.Config{Layout: uid(), Worker: fresh(1), RejectedTake: cached.Fail})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	if err := ids.Fill(ctx, make([]int64, 100)); err != nil {
		fmt.Println(err)
		return
	}
	r := ids.Ring()
	fmt.Printf("%d ids left a ring for %d, which is filled when fewer than %d remain\n", r.Cursor, r.Capacity, r.Threshold)
	// Output: 100 ids left a ring for 65536, which is filled when fewer than 32768 remain
}
