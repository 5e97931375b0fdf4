// SPDX-License-Identifier: Apache-2.0

package database

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// RoutedOrders creates the table of package changes twice: as shards, with ids that carry the slot, and
// as one table in another database. It returns the routed database of the shards.
func RoutedOrders(t *testing.T, dbs sharding.DBs, m sharding.Map, whole *sql.DB) *sql.DB {
	t.Helper()
	for _, at := range m.Targets() {
		Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+changes.Columns)
	}
	Exec(t, whole, "CREATE TABLE orders"+changes.Columns)
	router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{
		Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads,
		Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}
