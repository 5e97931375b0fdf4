// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/shapes"
	"github.com/shardid/shardid/sharding"
)

// What shards of MariaDB and MySQL do not refuse, they answer as whole tables do.
func TestRandomShapesAreAnsweredAsByWholeTables(t *testing.T) {
	dialects := map[string]shapes.Dialect{"MariaDB": shapes.MariaDB, "MySQL": shapes.MySQL}
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "shapes_a"), "b": open(t, "shapes_b")}
			shop, err := shapes.Open(t.Context(), dbs, open(t, "shapes_home"), open(t, "shapes_whole"), shapes.Layout{Rule: sharding.Mod(4), IDs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = shop.Routed.Close() }()
			var tally shapes.Tally
			for seed := range effort.Cases[uint64](500, 20_000) {
				if err := shop.Try(sharding.AllShards(t.Context()), shapes.New(seed, dialects[name]).Statement(), &tally); err != nil {
					t.Errorf("seed %d: %.1500v", seed, err)
				}
			}
			if t.Logf("%+v", tally); tally.Answered < tally.Refused/3 {
				t.Error("too few are answered")
			}
		})
	}
}
