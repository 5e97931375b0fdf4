// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/shapes"
	"github.com/shardid/shardid/sharding"
)

// Joins, subqueries, CTEs, unions, windows and writes with all of these: the shards refuse a
// statement or return the result of whole tables.
func TestRandomShapesReturnTheResultsOfWholeTables(t *testing.T) {
	layouts := map[string]shapes.Layout{
		"by the key": {Rule: sharding.Mod(4)}, "and by ids": {Rule: sharding.Mod(4), IDs: true}, "by ranges": {Rule: sharding.Ranges(1, 3, 6)},
		"by a list": {Rule: sharding.List(map[int64]sharding.Slot{0: 1, 1: 0, 2: 3, 3: 2, 4: 1, 5: 1, 6: 0, 7: 2})}, "by a hash": {Rule: sharding.Hash(4)},
	}
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			open := files(t)
			shop, err := shapes.Open(t.Context(), shapes.SQLite, sharding.DBs{"a": open("a.db"), "b": open("b.db")}, open("home.db"), open("whole.db"), layout)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = shop.Routed.Close() }()
			var tally shapes.Tally
			for seed := range effort.Cases[uint64](2000, 200_000) {
				if err := shop.Try(sharding.AllShards(t.Context()), shapes.New(seed, shapes.SQLite).Statement(), &tally); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if t.Logf("%+v", tally); tally.Answered < tally.Refused/2 {
				t.Error("too few are answered")
			}
		})
	}
}
