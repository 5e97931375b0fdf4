// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/sharding"
)

func TestTheRouteRowSaysWhichTablesServe(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "source.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	want := func(row sharding.RouteRow) {
		t.Helper()
		if got, err := sharding.ReadRoute(t.Context(), db, "Orders"); err != nil || got != row {
			t.Errorf("got %+v, %v; want %+v", got, err, row)
		}
	}
	do := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	want(sharding.RouteRow{Table: "orders", Route: sharding.OnSource}) // no migration was ever begun
	do("CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	want(sharding.RouteRow{Table: "orders", Route: sharding.OnSource})
	do("INSERT INTO shardid_route VALUES ('ORDERS', 'autumn', 7, 'shards')")
	want(sharding.RouteRow{Table: "orders", Job: "autumn", Epoch: 7, Route: sharding.OnShards})
	do("UPDATE shardid_route SET route = 'mars'")
	if _, err := sharding.ReadRoute(t.Context(), db, "orders"); !errors.Is(err, sharding.ErrRoute) {
		t.Errorf("an unknown route: %v", err)
	}
	do("DROP TABLE shardid_route")
	do("CREATE TABLE shardid_route (other TEXT)")
	if _, err := sharding.ReadRoute(t.Context(), db, "orders"); err == nil {
		t.Error("a table of routes that is none is accepted")
	}
}
