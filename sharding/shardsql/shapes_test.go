// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/shapes"
	"github.com/shardid/shardid/sharding"
)

// Joins, subqueries, CTEs, unions, windows and writes with all of these: what shards do not
// refuse, they answer as whole tables do.
func TestRandomShapesAreAnsweredAsByWholeTables(t *testing.T) {
	for name, also := range map[string]bool{"by the key": false, "and by ids": true} {
		t.Run(name, func(t *testing.T) {
			open := files(t)
			shop, err := shapes.Open(t.Context(), sharding.DBs{"a": open("a.db"), "b": open("b.db")}, open("home.db"), open("whole.db"), also)
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
