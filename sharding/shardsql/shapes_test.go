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
			try(t, shop, effort.Cases[uint64](2000, 200_000), 2, func(seed uint64, d shapes.Dialect) shapes.Statement { return shapes.New(seed, d).Statement() })
		})
	}
}

// Queries that compare values of different types.
func TestRandomQueriesOfManyTypesReturnTheResultsOfWholeTables(t *testing.T) {
	open := files(t)
	shop, err := shapes.Open(t.Context(), shapes.SQLite, sharding.DBs{"a": open("a.db"), "b": open("b.db")}, open("home.db"), open("whole.db"), shapes.Layout{Rule: sharding.Mod(4)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shop.Routed.Close() }()
	try(t, shop, effort.Cases[uint64](1000, 100_000), 9, shapes.Mixed)
}

// Recursive queries, before and while slots move.
func TestRandomTreesReturnTheResultsOfWholeTables(t *testing.T) {
	for name, layout := range map[string]shapes.Layout{"by the key": {Rule: sharding.Mod(4)}, "and by ids": {Rule: sharding.Mod(4), IDs: true}} {
		t.Run(name, func(t *testing.T) {
			open := files(t)
			shop, err := shapes.Open(t.Context(), shapes.SQLite, sharding.DBs{"a": open("a.db"), "b": open("b.db")}, open("home.db"), open("whole.db"), layout)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = shop.Routed.Close() }() // another one after Move
			try(t, shop, effort.Cases[uint64](1000, 100_000), 5, shapes.Trees)
			if err := shop.Move(t.Context()); err != nil {
				t.Fatal(err)
			}
			try(t, shop, effort.Cases[uint64](1000, 100_000), 5, shapes.Trees)
		})
	}
}

// Shards then have rows of each other, which no query may read.
func TestRandomQueriesReturnTheResultsOfWholeTablesWhileSlotsMove(t *testing.T) {
	open := files(t)
	shop, err := shapes.Open(t.Context(), shapes.SQLite, sharding.DBs{"a": open("a.db"), "b": open("b.db")}, open("home.db"), open("whole.db"), shapes.Layout{Rule: sharding.Mod(4), IDs: true})
	if err == nil {
		err = shop.Move(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shop.Routed.Close() }()
	try(t, shop, effort.Cases[uint64](2000, 100_000), 3, shapes.Read)
}

// try executes random statements, of which all but some refusals for each answer are answered.
func try(t *testing.T, shop *shapes.Shop, seeds uint64, refusals int, next func(seed uint64, d shapes.Dialect) shapes.Statement) {
	t.Helper()
	var tally shapes.Tally
	for seed := range seeds {
		if err := shop.Try(sharding.AllShards(t.Context()), next(seed, shapes.SQLite), &tally); err != nil {
			t.Errorf("seed %d: %.1500v", seed, err)
		}
	}
	if t.Logf("%+v", tally); tally.Answered < tally.Refused/refusals {
		t.Error("too few are answered")
	}
}
