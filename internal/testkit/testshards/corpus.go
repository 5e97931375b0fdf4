// SPDX-License-Identifier: Apache-2.0

package testshards

import (
	"maps"
	"slices"
	"testing"

	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/sharding"
)

// RouterOf returns the router of a corpus' expectations, which package corpus describes, for the
// databases db0 and db1: with ids that carry the slot, or with tables that have only their key.
func RouterOf(t testing.TB, f corpus.File, dbs sharding.DBs, carry bool) *sharding.Router {
	t.Helper()
	var tables []sharding.Table
	var broadcast []string
	for _, table := range f.Tables {
		switch table.Placement {
		case corpus.Sharded:
			tables = append(tables, shardedOf(t, table, carry))
		case corpus.Broadcast:
			broadcast = append(broadcast, table.Name)
		case corpus.Home:
		}
	}
	r, err := sharding.New(dbs, sharding.Tables(tables...), sharding.Broadcast(broadcast...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func shardedOf(t testing.TB, table corpus.Table, carry bool) sharding.Table {
	t.Helper()
	m, err := sharding.Spread([]string{"db0", "db1"}, 8, table.Name+"_%d")
	if err != nil {
		t.Fatal(err)
	}
	s := sharding.Table{Name: table.Name, Key: table.Key, Group: table.Group, Map: m, Rule: sharding.Hash(1024), OnMissing: sharding.FanOutReads}
	for _, column := range slices.Sorted(maps.Keys(table.Parents)) {
		s.Parents = append(s.Parents, sharding.Parent{Column: column, Table: table.Parents[column]})
	}
	if carry {
		s.Rule = sharding.Low(10)
		for _, column := range table.Also {
			s.Also = append(s.Also, sharding.Alt{Column: column, Rule: s.Rule})
		}
	}
	return s
}
