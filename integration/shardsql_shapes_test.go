// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"maps"
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/shapes"
	"github.com/shardid/shardid/sharding"
)

// Every statement that shards do not refuse has the result of one table.
func TestRandomShapesReturnTheResultsOfWholeTables(t *testing.T) {
	onShops(t, effort.Cases[uint64](500, 20_000), 3, func(seed uint64, d shapes.Dialect) shapes.Statement { return shapes.New(seed, d).Statement() })
}

// So has every query that compares values of different types.
func TestRandomQueriesOfManyTypesReturnTheResultsOfWholeTables(t *testing.T) {
	onShops(t, effort.Cases[uint64](400, 20_000), 9, shapes.Mixed)
}

// Recursive queries, too. Two in three are refused, because most of them read several shards.
func TestRandomTreesReturnTheResultsOfWholeTables(t *testing.T) {
	onShops(t, effort.Cases[uint64](200, 10_000), 5, shapes.Trees)
}

// Shards then have rows of each other, which no query may read.
func TestRandomQueriesReturnTheResultsOfWholeTablesWhileSlotsMove(t *testing.T) {
	eachShop(t, func(t *testing.T, shop *shapes.Shop, d shapes.Dialect) {
		if err := shop.Move(t.Context()); err != nil {
			t.Fatal(err)
		}
		tryOn(t, shop, d, effort.Cases[uint64](500, 20_000), 3, shapes.Read)
	})
}

// onShops tries statements on each server, of which all but some refusals for each answer are answered.
func onShops(t *testing.T, seeds uint64, refusals int, next func(seed uint64, d shapes.Dialect) shapes.Statement) {
	t.Helper()
	eachShop(t, func(t *testing.T, shop *shapes.Shop, d shapes.Dialect) { tryOn(t, shop, d, seeds, refusals, next) })
}

func tryOn(t *testing.T, shop *shapes.Shop, d shapes.Dialect, seeds uint64, refusals int, next func(seed uint64, d shapes.Dialect) shapes.Statement) {
	t.Helper()
	var tally shapes.Tally
	for seed := range seeds {
		if err := shop.Try(sharding.AllShards(t.Context()), next(seed, d), &tally); err != nil {
			t.Errorf("seed %d: %.900v", seed, err)
		}
	}
	if t.Logf("%+v", tally); tally.Answered < tally.Refused/refusals {
		t.Error("too few are answered")
	}
}

// eachShop runs a test with the tables on each server, on PostgreSQL with each driver.
func eachShop(t *testing.T, test func(*testing.T, *shapes.Shop, shapes.Dialect)) {
	t.Helper()
	dialects := map[string]shapes.Dialect{"MariaDB": shapes.MariaDB, "MySQL": shapes.MySQL, "pgx": shapes.PostgreSQL, "pq": shapes.PostgreSQL}
	servers := writing(t)
	maps.Copy(servers, postgresDrivers(t))
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			open = open.of("shapes_" + name)
			dbs := sharding.DBs{"a": open(t, "a"), "b": open(t, "b")}
			shop, err := shapes.Open(t.Context(), dialects[name], dbs, open(t, "home"), open(t, "whole"), shapes.Layout{Rule: sharding.Mod(4), IDs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = shop.Routed.Close() }() // another one after Move
			test(t, shop, dialects[name])
		})
	}
}
