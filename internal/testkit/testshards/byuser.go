// SPDX-License-Identifier: Apache-2.0

package testshards

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// ByUser returns the snapshot of a router of tables that are sharded by user_id into four tables of one database, which
// is never queried, and of a broadcast table. The caller registers the driver sqlite.
func ByUser(t testing.TB, broadcast string, tables ...string) *sharding.Snapshot {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	options := []sharding.Option{sharding.Broadcast(broadcast)}
	for _, name := range tables {
		m, err := sharding.Spread([]string{"a"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: m})
	}
	router, err := sharding.New(sharding.DBs{"a": db}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return router.Snapshot()
}
